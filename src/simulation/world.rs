//! The simulated world, and its course.
//!
//! Everything happens in one thread. The [`Hub`] is what tasks share; its world is locked for a
//! moment at a time, and no task waits while it holds that lock. [`Hub::drive`] is the one task
//! that moves bytes, executes commands and causes faults, each at its time. The world's parts do
//! not know each other: the agenda, the network, the nodes, the machines, the oracle. Only what
//! takes more than one of them is here.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use super::agenda::{Agenda, Event};
use super::barriers::Barriers;
use super::chance::{self, Chance};
use super::counts::{Action, Counts};
use super::holds::Overlap;
use super::latches::Latches;
use super::machine::Machine;
use super::network::{Network, Parcel, Way};
use super::node::{Found, Node, State, moment};
use super::oracle::Oracle;
use super::places::Places;
use super::plan::{Plan, Waits};
use super::protected::Protected;
use super::requests::Requests;
use super::trace::Trace;
use super::value_owners::Values;
use super::violation::Kind;
use super::waiters::Waiters;
use crate::clock::{Clock, Driven};
use crate::report::WaitStats;
use crate::testing::store::{Effects, SessionId};
use crate::testing::wire;

/// What all tasks of a run share.
pub(super) struct Hub {
    world: Mutex<World>,
    /// True time, from the beginning of the run.
    clock: Clock,
    pub(super) origin: tokio::time::Instant,
}

/// The state of everything.
pub(super) struct World {
    pub(super) plan: Plan,
    clock: Clock,
    pub(super) trace: Trace,
    pub(super) agenda: Agenda,
    pub(super) network: Network,
    pub(super) nodes: Vec<Node>,
    pub(super) machines: Vec<Machine>,
    pub(super) oracle: Oracle,
    /// For faults and for machines.
    pub(super) chance: Chance,
    /// Places where clients are to start.
    starting: Vec<usize>,
    /// Machines whose runtimes are to end.
    ending: Vec<Arc<Driven>>,
    /// How many adoptions, and tasks that adopt, there have been.
    pub(super) adoptions: u64,
    pub(super) counts: Counts,
    pub(super) waiters: Waiters,
    pub(super) places: Places,
    pub(super) requests: Requests,
    pub(super) protected: Protected,
    pub(super) latches: Latches,
    pub(super) barriers: Barriers,
    /// The clients shall come to an end.
    pub(super) is_over: bool,
    /// How many faults there were.
    pub(super) faults: u64,
    /// How many violations stand in the trace.
    told: usize,
    /// Where the keys of two holders stood when there was a second one.
    pub(super) overlaps: Vec<Standing>,
}

/// Of so many nodes, those on which the key of each of two holders stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Standing {
    pub(super) nodes: usize,
    pub(super) stands: [Vec<usize>; 2],
}

impl Hub {
    pub(super) fn new(plan: Plan, printed: bool) -> Arc<Self> {
        let origin = Driven::origin();
        let (clock, _) = Driven::since(origin);
        let seed = plan.seed;
        // Where it is known when a lock must be had, it ends on all nodes at the same instant.
        let drift = plan.waits != Waits::Alone;
        let world = World {
            clock: clock.clone(),
            trace: Trace::new(printed),
            agenda: Agenda::new(seed),
            // One more place, for the operator.
            network: Network::new(plan.clients + 1, plan.nodes, plan.latency, seed),
            nodes: (0..plan.nodes).map(|index| Node::new(index, &plan, drift)).collect(),
            machines: Vec::new(),
            oracle: Oracle::new(plan.nodes, plan.local_handover > 0),
            chance: Chance::new(seed, chance::FAULTS),
            starting: Vec::new(),
            ending: Vec::new(),
            adoptions: 0,
            counts: Counts::default(),
            waiters: Waiters::default(),
            places: Places::default(),
            requests: Requests::default(),
            protected: Protected::default(),
            latches: Latches::default(),
            barriers: Barriers::default(),
            is_over: false,
            faults: 0,
            told: 0,
            overlaps: Vec::new(),
            plan,
        };
        Arc::new(Self { world: Mutex::new(world), clock, origin })
    }

    pub(super) fn with<R>(&self, work: impl FnOnce(&mut World) -> R) -> R {
        work(&mut self.world.lock().unwrap())
    }

    /// Of true time.
    pub(super) fn clock(&self) -> Clock {
        self.clock.clone()
    }

    /// Milliseconds since the beginning.
    pub(super) fn now(&self) -> u64 {
        self.clock.now().as_nanos() / 1_000_000
    }

    pub(super) async fn sleep_until(&self, at: u64) {
        self.clock.sleep_until(moment(at)).await;
    }

    pub(super) async fn sleep(&self, millis: u64) {
        self.sleep_until(self.now() + millis).await;
    }

    /// Moves bytes and handles events at their time, forever; `start` starts the client of a place.
    pub(super) async fn drive(self: Arc<Self>, start: fn(&Arc<Self>, usize)) {
        let mut timer = self.clock.sleep_until(moment(0));
        let mut armed = 0;
        let mut staging = vec![0; 1 << 14];
        poll_fn(|cx| {
            loop {
                let (next, starting, ending) = self.with(|world| {
                    let next = world.work(cx, &mut staging);
                    world.agenda.wait(cx.waker().clone());
                    let starting = std::mem::take(&mut world.starting);
                    (next, starting, std::mem::take(&mut world.ending))
                });
                ending.iter().for_each(|driven| driven.end_runtime());
                starting.into_iter().for_each(|place| start(&self, place));
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

impl World {
    /// True time, in nanoseconds.
    pub(super) fn nanos(&self) -> u64 {
        self.clock.now().as_nanos()
    }

    /// The same in milliseconds.
    pub(super) fn now(&self) -> u64 {
        self.nanos() / 1_000_000
    }

    /// Whether a client that asks must be told: there has been no fault yet.
    pub(super) fn must_answer(&self) -> bool {
        self.faults == 0 && self.plan.is_quick()
    }

    pub(super) fn tell(&mut self, what: std::fmt::Arguments<'_>) {
        let now = self.now();
        self.trace.tell(now, what);
    }

    /// A machine's runtime is to end, as soon as no caller works on the world.
    pub(super) fn end_runtime(&mut self, machine: usize) {
        self.tell(format_args!("m{machine}: its runtime ends"));
        self.count(Action::RuntimeEnded);
        self.ending.push(self.machines[machine].driven.clone());
    }

    pub(super) fn count(&mut self, action: Action) {
        self.counts.add(action);
    }

    /// Of what those that waited were told.
    pub(super) fn count_waits(&mut self, waits: &WaitStats) {
        self.counts.add_so_many(Action::HandedOver, waits.handed_over);
        self.counts.add_so_many(Action::ToldOfChange, waits.changed);
        self.counts.add_so_many(Action::CameInLine, waits.in_line);
    }

    /// What each node has under this key, in whatever state the node is.
    pub(super) fn values(&self, key: &str) -> Values {
        let (nodes, now) = (self.nodes.iter().enumerate(), self.now());
        nodes.filter_map(|(index, node)| Some((index, node.value_at(key, now)?))).collect()
    }

    /// Whether the lock of this key was revoked, as some node has it.
    pub(super) fn is_revoked(&self, key: &str) -> bool {
        self.nodes.iter().any(|node| node.is_revoked(key, self.now()))
    }

    /// Has the oracles look, and enters what they have found.
    pub(super) fn look(&mut self) {
        self.oracle.look(self.nanos());
        let now = self.now();
        for Overlap { values, .. } in self.oracle.overlaps.drain(..) {
            let stands = values.map(|value| {
                let nodes = self.nodes.iter().enumerate();
                let holding = nodes.filter(|(_, node)| node.holds(&value, now));
                holding.map(|(index, _)| index).collect()
            });
            let nodes = self.nodes.len();
            self.trace.tell(now, format_args!("their keys stand on {stands:?}"));
            self.overlaps.push(Standing { nodes, stands });
        }
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
            let Some(event) = self.agenda.take(self.now()) else { return self.agenda.next() };
            match event {
                Event::Arrival { line, way } => self.arrive(line, way),
                Event::Fault => self.cause_fault(),
                Event::Node(node) => self.revive(node),
                Event::Machine(machine) => self.thaw(machine),
                Event::Start(place) => self.starting.push(place),
                Event::Look => self.look_at_waiters(),
            }
        }
    }

    /// Takes what the clients have written.
    fn collect(&mut self, cx: &mut Context<'_>, staging: &mut [u8]) {
        let mut at = 0;
        while let Some((line, parcel)) = self.network.written(&mut at, cx, staging) {
            if matches!(parcel, Parcel::End) {
                self.tell(format_args!("l{line} closed by the client"));
                self.network.hang_up(line);
                self.send(line, Way::Up, Parcel::End);
            } else {
                self.send(line, Way::Up, parcel);
                self.cause_fault_after_send(line);
            }
        }
    }

    /// Sends something on a line.
    pub(super) fn send(&mut self, line: usize, way: Way, parcel: Parcel) {
        let at = self.network.send(self.now(), line, way, parcel);
        self.agenda.enter(at, Event::Arrival { line, way });
    }

    fn arrive(&mut self, line: usize, way: Way) {
        let now = self.now();
        loop {
            let parcel = match self.network.receive(now, line, way) {
                Ok(Some(parcel)) => parcel,
                Ok(None) => return,
                Err(until) => return self.agenda.enter(until, Event::Arrival { line, way }),
            };
            if way == Way::Up {
                self.arrive_at_node(line, parcel);
            } else if !self.network.hand_over(now, line, parcel) {
                return self.agenda.enter(now + 1, Event::Arrival { line, way });
            }
        }
    }

    fn arrive_at_node(&mut self, line: usize, parcel: Parcel) {
        let (node, session) = (self.network.line(line).node, self.network.line(line).session);
        match (self.nodes[node].state(), session) {
            (State::Off, _) => {}
            (State::Up, Some(_)) => self.serve(line, parcel),
            (State::Still, Some(_)) => self.nodes[node].put_off(line, parcel),
            // The node no longer has this connection.
            (_, None) | (State::Ended, _) => self.send(line, Way::Down, Parcel::End),
        }
    }

    /// A node that was still reads what has come meanwhile.
    pub(super) fn catch_up(&mut self, node: usize) {
        while let Some((line, parcel)) = self.nodes[node].read() {
            if self.network.line(line).session.is_some() {
                self.serve(line, parcel);
            }
        }
    }

    /// A node reads, executes and answers.
    fn serve(&mut self, line: usize, parcel: Parcel) {
        let (node, session) = (self.network.line(line).node, self.network.line(line).session);
        let Some(session) = session else { return };
        let Parcel::Bytes(bytes) = parcel else {
            self.nodes[node].disconnect(session);
            self.network.line(line).session = None;
            return;
        };
        self.network.line(line).requests.push(&bytes);
        let mut answer = Vec::new();
        while let Ok(Some(words)) = self.network.line(line).requests.next() {
            let words: Vec<&[u8]> = words.iter().map(|word| &word[..]).collect();
            let now = self.now();
            let (effects, observations) = self.execute(node, session, &words);
            let machine = self.network.line(line).machine;
            self.oracle.see(now, machine, &observations);
            for observation in observations.iter().filter(|observation| observation.is_native) {
                self.count(match observation.before {
                    Found::Ours => Action::DeletedNatively,
                    Found::Gone | Found::Others => Action::NothingNatively,
                });
            }
            // Its version is another one only on another connection.
            if words.first() == Some(&&b"DELIFEQ"[..]) && observations.is_empty() {
                let what = format!("n{node} was sent DELIFEQ, which it does not know");
                self.oracle.violate(Kind::Unknown, what);
            }
            let from = answer.len();
            let own = effects.messages.iter().filter(|(to, _)| *to == session);
            let dialect = self.nodes[node].dialect(session);
            own.for_each(|(_, frame)| wire::put(&mut answer, frame, dialect));
            self.tell_command(node, line, &words, &answer[from..]);
            self.pass_on(node, effects, Some(session));
            if self.network.line(line).session.is_none() {
                break;
            }
        }
        if !answer.is_empty() {
            self.send(line, Way::Down, Parcel::Bytes(answer));
        }
    }

    /// What a command says to others than who has sent it, and whose connections it ends.
    fn pass_on(&mut self, node: usize, effects: Effects, sender: Option<SessionId>) {
        for (to, frame) in effects.messages.iter().filter(|(to, _)| Some(*to) != sender) {
            if let Some(line) = self.nodes[node].connection(*to) {
                let mut told = Vec::new();
                wire::put(&mut told, frame, self.nodes[node].dialect(*to));
                self.send(line, Way::Down, Parcel::Bytes(told));
            }
        }
        for ended in effects.ended {
            if let Some(line) = self.nodes[node].forget(ended) {
                self.network.line(line).session = None;
                self.send(line, Way::Down, Parcel::End);
            }
        }
    }

    /// A client of another library has a node execute a command. Whether the node has done it, if
    /// it can be reached.
    pub(super) fn execute_foreign(&mut self, node: usize, words: &[&[u8]]) -> Option<bool> {
        if self.nodes[node].state() != State::Up {
            return None;
        }
        let now = self.now();
        let (is_done, effects) = self.nodes[node].execute_foreign(words, now);
        self.pass_on(node, effects, None);
        self.agenda.wake();
        Some(is_done)
    }

    fn tell_command(&mut self, node: usize, line: usize, words: &[&[u8]], answer: &[u8]) {
        let short = |bytes: &[u8]| bytes[..bytes.len().min(16)].escape_ascii().to_string();
        let words: Vec<String> = words.iter().take(6).map(|word| short(word)).collect();
        let (said, answer) = (words.join(" "), short(answer));
        self.tell(format_args!("n{node} l{line} {said} -> {answer}"));
    }

    /// How many tasks of the machines that are there have not ended.
    pub(super) fn workers_left(&self) -> usize {
        self.machines.iter().map(Machine::workers_left).sum()
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
