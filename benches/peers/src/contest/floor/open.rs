//! The floor in an open loop: the timer is one more descriptor of the same epoll.

use std::time::{Duration, Instant};

use rustix::event::epoll;

use super::{Caller, Floor, Node};
use crate::clock;
use crate::contest::Failure;
use crate::contest::open::{Open, since, timer};

/// The timer's name among the nodes' numbers.
const TIMER: u64 = u64::MAX;

/// What an open loop keeps beside the floor's own.
struct Loop {
    began: Instant,
    every: Duration,
    total: usize,
    started: usize,
    ended: usize,
    /// Callers without a cycle.
    idle: Vec<usize>,
    decided: Vec<usize>,
    open: Open,
}

/// Runs it. A caller takes the next cycle that is due as soon as it has none.
pub(super) fn run(floor: &mut Floor, rate: u32, time: Duration) -> Result<Open, Failure> {
    let every = Duration::from_secs(1) / rate;
    let total = (time.as_nanos() / every.as_nanos()).max(1) as usize;
    let timer = timer(every)?;
    epoll::add(&floor.poll, &timer, epoll::EventData::new_u64(TIMER), epoll::EventFlags::IN)?;
    let mut state = Loop {
        began: clock::now(),
        every,
        total,
        started: 0,
        ended: 0,
        idle: (0..floor.callers.len()).collect(),
        decided: Vec::new(),
        open: Open::default(),
    };
    while state.ended < total {
        floor.wait()?;
        for position in 0..floor.ready.len() {
            match floor.ready[position].data.u64() {
                // How often it has expired is of no interest: the clock says what is due.
                TIMER => drop(rustix::io::read(&timer, &mut [0; 8])),
                node => state.read(floor, node as usize)?,
            }
        }
        state.start(floor);
        floor.nodes.iter_mut().try_for_each(Node::flush)?;
    }
    epoll::delete(&floor.poll, &timer)?;
    Ok(state.open)
}

impl Loop {
    /// Reads a node; callers whose operation is decided go on to the release, or have ended.
    fn read(&mut self, floor: &mut Floor, node: usize) -> Result<(), Failure> {
        floor.nodes[node].read(&mut floor.callers, floor.needed, &mut self.decided)?;
        for number in self.decided.drain(..) {
            let caller = &mut floor.callers[number];
            caller.operation = caller.operation.wrapping_add(1);
            if caller.operation % 2 == 1 {
                self.open.acquires_ns.push(since(caller.began));
                floor.release(number);
            } else {
                self.open.cycles_ns.push(since(caller.began));
                self.ended += 1;
                self.idle.push(number);
            }
        }
        Ok(())
    }

    /// Starts the cycles that are due.
    fn start(&mut self, floor: &mut Floor) {
        let due = self.began.elapsed().as_nanos() / self.every.as_nanos() + 1;
        while self.started < self.total.min(due as usize) {
            let number = self.idle.pop().unwrap_or_else(|| {
                floor.callers.push(Caller::new(&floor.digest, floor.by));
                floor.callers.len() - 1
            });
            floor.acquire(number);
            // Its latency counts from when it was to begin.
            let began = self.began + self.every * u32::try_from(self.started).unwrap_or(u32::MAX);
            floor.callers[number].began = began;
            self.open.starts_ns.push(since(began));
            self.started += 1;
        }
    }
}
