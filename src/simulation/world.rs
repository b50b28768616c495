//! All there is: nodes, machines, the network between them, and what is to happen when.
//!
//! Everything happens in one thread. The [`Hub`] is what tasks share; its world is locked for a
//! moment at a time, and nobody waits with it in hand. The *fabric* is the one task that moves
//! bytes, executes commands and strikes with faults, each at its time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::chance::Chance;
use super::client;
use super::network::{Line, Path, Way};
use super::node::{Node, Parcel, State};
use super::oracle::Oracle;
use super::plan::Plan;
use super::trace::Trace;
use crate::Locker;
use crate::clock::{Clock, Driven, Moment};
use crate::testing::wire;

/// What all tasks of a run share.
pub(super) struct Hub {
    world: Mutex<World>,
    /// True time, from the beginning of the run.
    pub(super) clock: Clock,
    pub(super) origin: tokio::time::Instant,
}

/// A client's machine, from its start to its end.
pub(super) struct Machine {
    /// Its place in the network. When it is gone another one takes that.
    pub(super) slot: usize,
    pub(super) owner: String,
    pub(super) driven: Arc<Driven>,
    /// Kept here, so that it lives until everything has come to rest.
    pub(super) locker: Option<Locker>,
    pub(super) is_gone: bool,
    /// Its tasks that have not ended.
    pub(super) workers: usize,
    /// It stands still.
    pub(super) still_since: Option<u64>,
    /// For how long it has stood still before.
    pub(super) still: u64,
    /// How much faster than true time its clocks run, in millionths.
    pub(super) rate: i64,
}

impl Machine {
    /// How long it has stood still by now.
    pub(super) fn stood_still(&self, now: u64) -> u64 {
        self.still + self.still_since.map_or(0, |since| now - since)
    }
}

/// What is to happen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Event {
    /// Something may have arrived on a line.
    Arrival { line: usize, up: bool },
    /// The next fault strikes.
    Fault,
    /// A node may be up again.
    Node(usize),
    /// A machine may go on.
    Machine(usize),
    /// A client starts in this place.
    Start(usize),
}

/// The state of everything.
pub(super) struct World {
    pub(super) plan: Plan,
    pub(super) chance: Chance,
    clock: Clock,
    pub(super) trace: Trace,
    pub(super) oracle: Oracle,
    /// So many violations stand in the trace.
    told: usize,
    pub(super) nodes: Vec<Node>,
    pub(super) machines: Vec<Machine>,
    pub(super) lines: Vec<Line>,
    /// Lines on which something may happen.
    live: Vec<usize>,
    /// By place and node.
    pub(super) paths: Vec<Vec<Path>>,
    agenda: BinaryHeap<Reverse<(u64, u64, u64, Event)>>,
    order: u64,
    /// Clients that are to start.
    pub(super) starting: Vec<usize>,
    bell: Option<Waker>,
    /// The clients shall come to an end.
    pub(super) is_over: bool,
    pub(super) faults: u64,
}

impl Hub {
    pub(super) fn new(plan: Plan, printed: bool) -> Arc<Self> {
        let origin = Driven::origin();
        let (clock, _) = Driven::since(origin);
        let mut chance = Chance::new(plan.seed, 2);
        let world = World {
            nodes: (0..plan.nodes).map(|index| Node::new(index, &mut chance)).collect(),
            // One more place, for the operator.
            paths: (0..=plan.clients)
                .map(|_| (0..plan.nodes).map(|_| Path::new(plan.latency, &mut chance)).collect())
                .collect(),
            machines: Vec::new(),
            lines: Vec::new(),
            live: Vec::new(),
            agenda: BinaryHeap::new(),
            order: 0,
            starting: Vec::new(),
            bell: None,
            is_over: false,
            faults: 0,
            clock: clock.clone(),
            trace: Trace::new(printed),
            oracle: Oracle::new(plan.nodes),
            told: 0,
            plan,
            chance,
        };
        Arc::new(Self { world: Mutex::new(world), clock, origin })
    }

    pub(super) fn with<R>(&self, work: impl FnOnce(&mut World) -> R) -> R {
        work(&mut self.world.lock().unwrap())
    }

    /// Milliseconds since the beginning.
    pub(super) fn now(&self) -> u64 {
        millis(self.clock.now())
    }

    pub(super) async fn sleep_until(&self, at: u64) {
        self.clock.sleep_until(moment(at)).await;
    }

    pub(super) async fn sleep(&self, millis: u64) {
        self.sleep_until(self.now() + millis).await;
    }

    /// Moves bytes and time's events, for ever.
    pub(super) async fn fabric(self: Arc<Self>) {
        let mut timer = self.clock.sleep_until(moment(0));
        let mut armed = 0;
        let mut staging = vec![0; 1 << 14];
        poll_fn(|cx| {
            loop {
                let (next, starting) = self.with(|world| {
                    let next = world.work(cx, &mut staging);
                    world.bell = Some(cx.waker().clone());
                    (next, std::mem::take(&mut world.starting))
                });
                starting.into_iter().for_each(|slot| client::start(&self, slot));
                let Some(next) = next else { return Poll::Pending::<()> };
                if armed != next {
                    armed = next;
                    self.clock.reset(timer.as_mut(), moment(next));
                }
                if timer.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                armed = u64::MAX;
            }
        })
        .await;
    }
}

pub(super) fn moment(millis: u64) -> Moment {
    Moment::from_nanos(0).plus(Duration::from_millis(millis))
}

fn millis(moment: Moment) -> u64 {
    moment.as_nanos() / 1_000_000
}

impl World {
    pub(super) fn now(&self) -> u64 {
        millis(self.clock.now())
    }

    pub(super) fn tell(&mut self, what: std::fmt::Arguments<'_>) {
        let now = self.now();
        self.trace.tell(now, what);
    }

    /// Enters what is to happen. What happens at the same time does so in any order.
    pub(super) fn plan_at(&mut self, at: u64, event: Event) {
        self.order += 1;
        let any = self.chance.next() % 16;
        self.agenda.push(Reverse((at, any, self.order, event)));
    }

    /// Has the fabric look again.
    pub(super) fn ring(&mut self) {
        if let Some(bell) = self.bell.take() {
            bell.wake();
        }
    }

    /// True time, in nanoseconds.
    pub(super) fn nanos(&self) -> u64 {
        self.clock.now().as_nanos()
    }

    /// Has the oracles look, and enters what they have found.
    pub(super) fn look(&mut self) {
        self.oracle.look(self.nanos());
        let now = self.now();
        for violation in &self.oracle.violations[self.told..] {
            self.trace.tell(now, format_args!("WRONG: {}", violation.what));
        }
        self.told = self.oracle.violations.len();
    }

    /// Does all that is to be done by now. Returns when there will be more.
    fn work(&mut self, cx: &mut Context<'_>, staging: &mut [u8]) -> Option<u64> {
        loop {
            self.collect(cx, staging);
            self.look();
            let now = self.now();
            let due = self.agenda.peek().is_some_and(|Reverse((at, ..))| *at <= now);
            let Some(Reverse((_, _, _, event))) = due.then(|| self.agenda.pop()).flatten() else {
                return self.agenda.peek().map(|Reverse((at, ..))| *at);
            };
            match event {
                Event::Arrival { line, up: true } => self.arrive(line, Way::Up),
                Event::Arrival { line, up: false } => self.arrive(line, Way::Down),
                Event::Fault => self.strike(),
                Event::Node(node) => self.revive(node),
                Event::Machine(machine) => self.thaw(machine),
                Event::Start(slot) => self.starting.push(slot),
            }
        }
    }

    /// Takes what the clients have written.
    fn collect(&mut self, cx: &mut Context<'_>, staging: &mut [u8]) {
        let mut index = 0;
        while let Some(&line) = self.live.get(index) {
            while let Some(parcel) = self.lines[line].written(cx, staging) {
                if matches!(parcel, Parcel::End) {
                    self.hang_up(line);
                } else {
                    self.send(line, Way::Up, parcel);
                    self.strike_behind(line);
                }
            }
            if self.lines[line].is_over() {
                self.live.remove(index);
            } else {
                index += 1;
            }
        }
    }

    /// The client's end is closed. Its machine may take back what is still under way, or not.
    pub(super) fn hang_up(&mut self, line: usize) {
        self.tell(format_args!("l{line} closed by the client"));
        self.lines[line].down.clear();
        self.lines[line].writer = None;
        if self.chance.percent(40) {
            self.lines[line].up.clear();
        }
        self.send(line, Way::Up, Parcel::End);
    }

    pub(super) fn path(&mut self, line: usize) -> &mut Path {
        let Line { machine, node, .. } = self.lines[line];
        &mut self.paths[self.machines[machine].slot][node]
    }

    /// Sends something on a line.
    pub(super) fn send(&mut self, line: usize, way: Way, parcel: Parcel) {
        let (now, latency) = (self.now(), self.plan.latency);
        let Line { machine, node, .. } = self.lines[line];
        let route = self.paths[self.machines[machine].slot][node].route(way);
        let arrival = route.arrival(now, latency, &mut self.chance);
        let at = self.lines[line].lane(way).send(parcel, arrival);
        self.plan_at(at, Event::Arrival { line, up: way == Way::Up });
    }

    /// A connection is made.
    pub(super) fn open(&mut self, line: Line) -> usize {
        let number = self.lines.len();
        self.lines.push(line);
        self.live.push(number);
        let session = self.nodes[self.lines[number].node].connect(number);
        self.lines[number].session = Some(session);
        self.ring();
        number
    }

    fn arrive(&mut self, line: usize, way: Way) {
        let now = self.now();
        let lost_until = self.path(line).route(way).lost_until;
        if lost_until > now {
            return self.plan_at(lost_until, Event::Arrival { line, up: way == Way::Up });
        }
        while let Some(parcel) = self.lines[line].lane(way).receive(now) {
            match way {
                Way::Up => self.arrive_at_node(line, parcel),
                Way::Down => self.arrive_at_client(line, parcel),
            }
        }
    }

    fn arrive_at_client(&mut self, line: usize, parcel: Parcel) {
        let now = self.now();
        let Parcel::Bytes(mut bytes) = parcel else {
            self.lines[line].writer = None;
            return;
        };
        let Some(writer) = &self.lines[line].writer else { return };
        while !bytes.is_empty() {
            match writer.try_write(&bytes) {
                Ok(count) => drop(bytes.drain(..count)),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    self.lines[line].down.put_back(Parcel::Bytes(bytes), now + 1);
                    return self.plan_at(now + 1, Event::Arrival { line, up: false });
                }
                Err(_) => return, // it has closed its end
            }
        }
    }

    fn arrive_at_node(&mut self, line: usize, parcel: Parcel) {
        let node = self.lines[line].node;
        match (self.nodes[node].state, self.lines[line].session) {
            (State::Off, _) => {}
            (State::Up, Some(_)) => self.serve(line, parcel),
            (State::Still, Some(_)) => self.nodes[node].put_off(line, parcel),
            // Nobody has this connection any more.
            (_, None) | (State::Ended, _) => self.send(line, Way::Down, Parcel::End),
        }
    }

    /// A node that was still reads what has come meanwhile.
    pub(super) fn catch_up(&mut self, node: usize) {
        while let Some((line, parcel)) = self.nodes[node].read(&mut self.chance) {
            if self.lines[line].session.is_some() {
                self.serve(line, parcel);
            }
        }
    }

    /// A node reads, executes and answers.
    fn serve(&mut self, line: usize, parcel: Parcel) {
        let (node, now) = (self.lines[line].node, self.now());
        let Some(session) = self.lines[line].session else { return };
        let Parcel::Bytes(bytes) = parcel else {
            self.nodes[node].disconnect(session);
            self.lines[line].session = None;
            return;
        };
        self.lines[line].requests.push(&bytes);
        let mut answer = Vec::new();
        while let Ok(Some(words)) = self.lines[line].requests.next() {
            let words: Vec<&[u8]> = words.iter().map(|word| &word[..]).collect();
            let (effects, sight) = self.nodes[node].execute(session, &words, now);
            if let Some(sight) = sight {
                self.oracle.see(&sight);
            }
            let from = answer.len();
            for (_, frame) in &effects.messages {
                wire::put(&mut answer, frame, self.nodes[node].store.speaks_resp3(session));
            }
            self.tell_command(node, line, &words, &answer[from..]);
            for ended in effects.ended {
                if let Some(line) = self.nodes[node].sessions.remove(&ended) {
                    self.lines[line].session = None;
                    self.send(line, Way::Down, Parcel::End);
                }
            }
            if self.lines[line].session.is_none() {
                break;
            }
        }
        if !answer.is_empty() {
            self.send(line, Way::Down, Parcel::Bytes(answer));
        }
    }

    fn tell_command(&mut self, node: usize, line: usize, words: &[&[u8]], answer: &[u8]) {
        let now = self.now();
        let short = |bytes: &[u8]| bytes[..bytes.len().min(16)].escape_ascii().to_string();
        let words: Vec<String> = words.iter().take(6).map(|word| short(word)).collect();
        let (said, answer) = (words.join(" "), short(answer));
        self.trace.tell(now, format_args!("n{node} l{line} {said} -> {answer}"));
    }

    /// How many tasks of the machines that are there have not ended.
    pub(super) fn workers_left(&self) -> usize {
        let there = self.machines.iter().filter(|machine| !machine.is_gone);
        there.map(|machine| machine.workers).sum()
    }

    /// Whether bytes are under way, or unread.
    pub(super) fn is_quiet(&self) -> bool {
        self.lines.iter().all(|line| line.up.is_empty() && line.down.is_empty())
    }

    /// The keys that are there and should not be.
    pub(super) fn forgotten(&self) -> Vec<String> {
        let now = self.now();
        let mut found = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            for (key, value) in node.held(now) {
                if self.oracle.is_forgotten(&value) {
                    found.push(format!("`{key}` on n{index}: {value}"));
                }
            }
        }
        found
    }
}
