//! The floor: what bare sockets can do, with the same commands and the same majority.
//!
//! | file | job |
//! |---|---|
//! | `connection` | one node's connection |
//! | `template` | commands that are encoded once |
//!
//! One thread polls non-blocking sockets. There is no runtime, task, per-node deadline, undo or
//! allocation in a cycle: nothing that makes a lock robust, so a client can hardly be faster. A
//! pass starts the cycles that are due, writes what is queued (one write per node), waits, and
//! reads each readable node once. When no caller waits for a reply any more, the pass ends; later
//! passes read the replies that are late.

mod connection;
mod template;

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use quorlock::report::NodeHealth;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::figures::Sample;
use super::place::Place;
use super::sweep::{Leftovers, TTL};
use super::timer::be_exact;
use super::timetable::{Next, Round, Timetable, nanos, timespec};
use crate::clock;
use crate::exit::{Cause, Failure};
use connection::Connection;
use template::Template;

/// Compare-and-delete, as the specification of Redlock has it, for servers without `DELIFEQ`.
const RELEASE: &str = "if redis.call('GET',KEYS[1])==ARGV[1] then \
                       return redis.call('DEL',KEYS[1]) else return 0 end";

/// A value of the same length as our locks' values. It need not be random, because no other client
/// uses these keys.
const VALUE: &[u8] = b"0123456789abcdef0123456789abcdef01234567@quorlock-bench:1";

/// How long the nodes may be silent while callers wait.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long to wait for late replies after a round: our lock's default timeout for a node.
const SETTLING: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct Floor {
    sockets: Vec<OwnedFd>,
    event_loop: EventLoop,
    prefix: Vec<u8>,
}

/// The state of the event loop, without the sockets, which are borrowed while they are polled.
#[derive(Debug)]
struct EventLoop {
    connections: Vec<Connection>,
    callers: Vec<Caller>,
    /// How many of the callers take part in this round.
    active: usize,
    /// Callers without a cycle under way.
    idle: Vec<usize>,
    /// The callers whose operation has just got its majority.
    decided: Vec<usize>,
    needed: usize,
    acquire: Template,
    /// How a key is deleted: by the script, and natively.
    release: [Template; 2],
    /// Keys used so far: none is used twice.
    keys: u64,
    /// Cycles begun in this round.
    started: u64,
    cycles_ns: Vec<(u64, u64)>,
}

#[derive(Clone, Debug)]
struct Caller {
    /// Acquisitions are even, releases are odd.
    operation: u32,
    votes: usize,
    key: u64,
    /// When the acquisition began, or was to begin.
    began: Instant,
    granted: Instant,
}

impl Floor {
    /// Connects to every node that can be connected to; `needed` of all have to be.
    pub(crate) fn connect(places: &[Place], needed: usize, prefix: &[u8]) -> Result<Self, Failure> {
        let (mut sockets, mut connections, mut digest) = (Vec::new(), Vec::new(), Vec::new());
        let mut failure = None;
        for place in places {
            match Connection::open(place, RELEASE) {
                Ok((socket, connection, name)) => {
                    sockets.push(socket);
                    connections.push(connection);
                    digest = name;
                }
                Err(failed) => failure = Some(failed),
            }
        }
        if let Some(failure) = failure.filter(|_| connections.len() < needed) {
            return Err(failure);
        }
        let ttl = TTL.as_millis().to_string();
        let event_loop = EventLoop {
            connections,
            callers: Vec::new(),
            active: 0,
            idle: Vec::new(),
            decided: Vec::new(),
            needed,
            acquire: Template::new(&[b"SET", prefix, VALUE, b"NX", b"PX", ttl.as_bytes()], 1),
            release: [
                Template::new(&[b"EVALSHA", &digest, b"1", prefix, VALUE], 3),
                Template::new(&[b"DELIFEQ", prefix, VALUE], 1),
            ],
            keys: 0,
            started: 0,
            cycles_ns: Vec::new(),
        };
        Ok(Self { sockets, event_loop, prefix: prefix.to_vec() })
    }

    /// Deletes keys from now on as our lock does on each node. That may change: our lock finds out
    /// by a refusal that a user has no right to a command.
    pub(crate) fn delete_as(&mut self, ours: &[NodeHealth]) {
        self.event_loop.connections.iter_mut().for_each(|connection| connection.delete_as(ours));
    }

    /// One round. Each caller ends with a release.
    pub(crate) fn run(&mut self, round: &Round) -> Result<Sample, Failure> {
        be_exact(true);
        let sample = self.run_exactly(round);
        be_exact(false);
        sample
    }

    fn run_exactly(&mut self, round: &Round) -> Result<Sample, Failure> {
        let Self { sockets, event_loop, .. } = self;
        let mut polled = polled(sockets);
        let mut heard = clock::now();
        let table = Timetable::new(round, heard);
        event_loop.begin(round.callers, heard);
        loop {
            let now = clock::now();
            if event_loop.waiting() == 0 {
                heard = now;
            }
            let next = event_loop.start_due(&table, now);
            let waiting = event_loop.waiting();
            if waiting == 0 && next == Next::Over {
                break;
            }
            event_loop.flush(sockets)?;
            let patience = match next {
                Next::At(moment) => PATIENCE.min(moment.saturating_duration_since(now)),
                _ => PATIENCE,
            };
            if wait(&mut polled, patience)? {
                heard = now;
                event_loop.read(sockets, &polled, waiting)?;
            } else if waiting > 0 && clock::now().saturating_duration_since(heard) >= PATIENCE {
                let what = format!("the floor: too many nodes were silent for {PATIENCE:?}");
                return Err(Failure::new(Cause::Unavailable, what));
            }
        }
        Ok(Sample {
            cycles_ns: std::mem::take(&mut event_loop.cycles_ns),
            elapsed: clock::now().saturating_duration_since(table.began),
            missed: table.starts.saturating_sub(event_loop.started),
            ..Sample::default()
        })
    }

    /// Reads the replies that are late, so that nothing is under way when another runs.
    pub(crate) fn settle(&mut self) -> Result<(), Failure> {
        let Self { sockets, event_loop, .. } = self;
        let mut polled = polled(sockets);
        let end = clock::now() + SETTLING;
        while !event_loop.connections.iter().all(Connection::is_settled) {
            let left = end.saturating_duration_since(clock::now());
            event_loop.flush(sockets)?;
            if left.is_zero() || !wait(&mut polled, left)? {
                break;
            }
            event_loop.read(sockets, &polled, usize::MAX)?;
        }
        Ok(())
    }

    /// The keys that a node may still hold: the last of each caller.
    pub(crate) fn leftovers(&self) -> Leftovers {
        let callers = self.event_loop.callers.iter();
        callers.map(|caller| template::key(&self.prefix, caller.key)).collect()
    }
}

fn polled(sockets: &[OwnedFd]) -> Vec<PollFd<'_>> {
    sockets.iter().map(|socket| PollFd::new(socket, PollFlags::IN)).collect()
}

/// Whether a socket becomes readable within this time.
fn wait(polled: &mut [PollFd<'_>], patience: Duration) -> Result<bool, Failure> {
    match poll(polled, Some(&timespec(patience))) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(Failure::internal("cannot wait for the nodes", &error.into())),
    }
}

impl EventLoop {
    fn begin(&mut self, callers: usize, now: Instant) {
        let fresh = Caller { operation: 0, votes: 0, key: 0, began: now, granted: now };
        // Existing callers keep their operation counter: late replies to old operations may arrive.
        self.callers.resize(callers.max(self.callers.len()), fresh);
        self.idle = (0..callers).rev().collect();
        self.active = callers;
        self.started = 0;
    }

    /// How many callers wait for the nodes.
    fn waiting(&self) -> usize {
        self.active - self.idle.len()
    }

    /// Starts as many cycles as are due and have a caller; returns the state of the next one.
    fn start_due(&mut self, table: &Timetable, now: Instant) -> Next {
        loop {
            let next = table.next(self.started, now);
            let (Next::Start(began), Some(&number)) = (next, self.idle.last()) else {
                return next;
            };
            self.idle.pop();
            self.started += 1;
            let caller = &mut self.callers[number];
            (caller.votes, caller.key, caller.began) = (0, self.keys, began);
            self.keys += 1;
            let (command, request) = (self.acquire.about(caller.key), request(number, caller));
            self.connections.iter_mut().for_each(|connection| connection.queue(command, request));
        }
    }

    fn flush(&mut self, sockets: &[OwnedFd]) -> Result<(), Failure> {
        self.connections
            .iter_mut()
            .zip(sockets)
            .try_for_each(|(connection, socket)| connection.flush(socket))
    }

    /// Reads the nodes that are ready, until none of the `waiting` callers is left.
    fn read(
        &mut self,
        sockets: &[OwnedFd],
        polled: &[PollFd<'_>],
        mut waiting: usize,
    ) -> Result<(), Failure> {
        for (number, ready) in polled.iter().enumerate() {
            if ready.revents().is_empty() {
                continue;
            }
            let Self { connections, callers, decided, needed, .. } = self;
            connections[number].read(&sockets[number], |(caller, operation)| {
                let caller_number = caller as usize;
                let caller = &mut callers[caller_number];
                if caller.operation == operation {
                    caller.votes += 1;
                    if caller.votes == *needed {
                        decided.push(caller_number);
                    }
                }
            })?;
            waiting -= self.decided.len();
            while let Some(number) = self.decided.pop() {
                self.advance(number);
            }
            if waiting == 0 {
                break;
            }
        }
        Ok(())
    }

    /// A caller's operation has its majority: after a grant it releases, after a release the cycle
    /// ends.
    fn advance(&mut self, number: usize) {
        let now = clock::now();
        let caller = &mut self.callers[number];
        caller.operation = caller.operation.wrapping_add(1);
        caller.votes = 0;
        if caller.operation % 2 == 0 {
            let acquire = nanos(caller.began, caller.granted);
            self.cycles_ns.push((acquire, nanos(caller.granted, now)));
            self.idle.push(number);
            return;
        }
        caller.granted = now;
        let request = request(number, caller);
        let commands = self.release.each_mut().map(|template| template.about(caller.key));
        for connection in &mut self.connections {
            connection.queue(commands[usize::from(connection.deletes_natively())], request);
        }
    }
}

/// Identifies the request that a reply belongs to; there are far fewer callers than 2^32.
fn request(number: usize, caller: &Caller) -> connection::RequestId {
    (u32::try_from(number).unwrap_or(u32::MAX), caller.operation)
}
