//! A node: its keys, its clock, and what it has not read yet.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use quorlock_resp::Frame;

use super::chance::{self, Chance};
use super::network::Parcel;
use super::plan::Plan;
use super::readers::{self, READERS};
use super::scripts;
use crate::clock::{Driven, Moment};
use crate::testing::NodeClock;
use crate::testing::store::{Dialect, Effects, LATEST, SessionId, Setup, Store, Version};

/// How a node is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Up,
    /// Its process does nothing; what comes waits for it.
    Still,
    /// Its process has ended: connections are refused.
    Ended,
    /// Its machine is off: connections get no answer.
    Off,
}

/// What asks a holder to let go.
const REVOKE: &str = include_str!("../lease/script/revoke.lua");

/// What stands under a key, for a client that has put a value there or means to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Found {
    Ours,
    Gone,
    Others,
}

/// What a command about a key and a value found there, and what it left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Observation {
    pub(super) node: usize,
    pub(super) value: String,
    pub(super) before: Found,
    pub(super) after: Found,
    /// It deletes the key if the value is there.
    pub(super) is_release: bool,
    /// It is `DELIFEQ`. Unless it has deleted the key, who awaits its answer sends the script, too.
    pub(super) is_native: bool,
    /// The values before and after it.
    pub(super) stood: Option<String>,
    pub(super) stands: Option<String>,
}

impl Observation {
    /// Whether there is another value now, or none.
    pub(super) fn is_change(&self) -> bool {
        self.stood != self.stands
    }

    /// What a release found, of which each key that is still there was not released.
    pub(super) fn released(&self) -> Found {
        let is_kept = self.before == Found::Ours && self.after == Found::Ours;
        if is_kept { Found::Others } else { self.before }
    }
}

/// How the keys end in which a node keeps a queue: who waits, and who of them lives.
const QUEUES: [&[u8]; 2] = [b":quorlock:queue", b":quorlock:beats"];

/// A key of a queue on a node, or the one of a lock's readers.
pub(super) struct Queue {
    pub(super) key: String,
    /// The values that wait. Of readers those are not here that have the lock.
    pub(super) values: Vec<String>,
    /// It has no end.
    pub(super) is_endless: bool,
}

/// One node. Connections are known by their numbers in the network.
pub(super) struct Node {
    index: usize,
    store: Store,
    state: State,
    /// Until when it is in a state other than up.
    until: u64,
    /// How often it was started.
    process: u64,
    clock: NodeClock,
    sessions: BTreeMap<SessionId, usize>,
    unread: VecDeque<(usize, Parcel)>,
    chance: Chance,
    /// How many of a hundred processes know native commands.
    native: u64,
    versions: Chance,
}

impl Node {
    pub(super) fn new(index: usize, plan: &Plan, drifts: bool) -> Self {
        let Plan { seed, native, .. } = *plan;
        let mut chance = Chance::new(seed, chance::NODES + index as u64);
        let mut versions = Chance::new(seed, chance::VERSIONS + index as u64);
        let (runs_lua, version) = (scripts::are_run_by_lua(), draw_version(&mut versions, native));
        let setup = Setup { run_id: run_id(index, 1), runs_lua, version, ..Setup::default() };
        // With the slowest client: within the margin of 1 %.
        let rate = if drifts { chance.between(0, 12_000) as i32 - 6_000 } else { 0 };
        let mut clock = NodeClock::showing(Driven::WALL_AT_START);
        clock.drift(Moment::default(), rate);
        clock.step(Moment::default(), plan.node_ahead(index));
        Self {
            index,
            store: Store::new(setup),
            state: State::Up,
            until: 0,
            process: 1,
            clock,
            sessions: BTreeMap::new(),
            unread: VecDeque::new(),
            chance,
            native,
            versions,
        }
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    /// Until when it is in a state other than up.
    pub(super) fn until(&self) -> u64 {
        self.until
    }

    /// It is in another state for a while, unless it is so already.
    pub(super) fn stop(&mut self, state: State, until: u64) -> bool {
        let can = self.state == State::Up;
        if can {
            (self.state, self.until) = (state, until);
        }
        can
    }

    /// It is up again, if its time has come, or if all faults are over.
    pub(super) fn revive(&mut self, now: u64, all_is_over: bool) -> bool {
        let can = self.state != State::Up && (all_is_over || self.until <= now);
        if can {
            self.state = State::Up;
        }
        can
    }

    /// Its clock is set, by so many milliseconds.
    pub(super) fn step(&mut self, now: u64, millis: i64) {
        self.clock.step(moment(now), millis);
    }

    pub(super) fn dialect(&self, session: SessionId) -> Dialect {
        self.store.dialect(session)
    }

    pub(super) fn connect(&mut self, connection: usize) -> SessionId {
        let session = self.store.connect();
        self.sessions.insert(session, connection);
        session
    }

    pub(super) fn disconnect(&mut self, session: SessionId) {
        self.store.disconnect(session);
        self.sessions.remove(&session);
    }

    /// The number of a connection.
    pub(super) fn connection(&self, session: SessionId) -> Option<usize> {
        self.sessions.get(&session).copied()
    }

    /// It has ended a connection itself. Returns which it was.
    pub(super) fn forget(&mut self, session: SessionId) -> Option<usize> {
        self.sessions.remove(&session)
    }

    /// Its process ends, and another one starts, which may be of another version.
    pub(super) fn restart(&mut self, keeps_data: bool) {
        self.process += 1;
        self.store.set_version(draw_version(&mut self.versions, self.native));
        self.store.restart(run_id(self.index, self.process), keeps_data);
        self.sessions.clear();
        self.unread.clear();
    }

    /// Something has come that it does not read now.
    pub(super) fn put_off(&mut self, connection: usize, parcel: Parcel) {
        self.unread.push_back((connection, parcel));
    }

    /// What it reads first: of any connection that has something, the oldest.
    pub(super) fn read(&mut self) -> Option<(usize, Parcel)> {
        let any = (!self.unread.is_empty()).then(|| self.chance.below(self.unread.len()))?;
        let connection = self.unread[any].0;
        let oldest = self.unread.iter().position(|(of, _)| *of == connection)?;
        self.unread.remove(oldest)
    }

    /// Executes a command, and says what it found and left under each key, if it is about a lock.
    pub(super) fn execute(
        &mut self,
        session: SessionId,
        words: &[&[u8]],
        at: u64,
    ) -> (Effects, Vec<Observation>) {
        let now = self.clock.read(moment(at));
        let Some(Subject { keys, value, is_release, is_native, readers }) = subject(words) else {
            return (self.execute_any(session, words, now), Vec::new());
        };
        let stands = |node: &Self, key: &[u8]| match readers {
            Some(readers) => node.value_of_reader((key, readers), value, now),
            None => node.value(key, now),
        };
        let stood: Vec<_> = keys.iter().map(|key| stands(self, key)).collect();
        let effects = self.execute_any(session, words, now);
        if effects.messages.iter().any(|(_, frame)| frame.as_error().is_some()) {
            return (effects, Vec::new());
        }
        let observe = |(key, stood): (&&[u8], Option<String>)| {
            let stands = stands(self, key);
            let [before, after] = [&stood, &stands].map(|found| find(found.as_deref(), value));
            let (node, value) = (self.index, String::from_utf8_lossy(value).into_owned());
            Observation { node, value, before, after, is_release, is_native, stood, stands }
        };
        let observations = keys.iter().zip(stood).map(observe).collect();
        (effects, observations)
    }

    /// Executes a command of a client of another library, which connects for it alone.
    pub(super) fn execute_foreign(&mut self, words: &[&[u8]], at: u64) -> (bool, Effects) {
        let now = self.clock.read(moment(at));
        let session = self.store.connect();
        let mut effects = self.store.execute(session, words, now);
        let is_done = effects.messages.iter().any(|(to, frame)| {
            let is_ok = matches!(frame, Frame::Simple(_) | Frame::Integer(1));
            *to == session && is_ok
        });
        effects.messages.retain(|(to, _)| *to != session);
        self.store.disconnect(session);
        (is_done, effects)
    }

    /// The queues that are there.
    pub(super) fn queues(&self, at: u64) -> Vec<Queue> {
        let now = self.clock.read(moment(at));
        let keys = self.store.keys().into_iter();
        let is_beside = |key: &bytes::Bytes| {
            readers::lock_of(key).is_some() || QUEUES.iter().any(|end| key.ends_with(end))
        };
        let keys = keys.filter(is_beside);
        let queue = |key: bytes::Bytes| {
            let (mut members, end) = self.store.members(&key, now)?;
            if readers::lock_of(&key).is_some() {
                members.clear();
            }
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let values = members.iter().map(|(member, _)| readers::value_in_queue(&text(member)));
            Some(Queue { key: text(&key), values: values.collect(), is_endless: end.is_none() })
        };
        keys.filter_map(queue).collect()
    }

    /// All that stand in queues and count as living: each queue by its name, with a member of it.
    pub(super) fn standing(&self, at: u64) -> Vec<(String, String)> {
        let keys = self.store.keys();
        let queues = keys.iter().filter_map(|key| queue_name(key));
        let members = |queue: String| {
            let members = self.standing_in(&queue, at).into_iter();
            members.map(move |member| (queue.clone(), member)).collect::<Vec<_>>()
        };
        queues.flat_map(members).collect()
    }

    /// The members of the queue of this name that count as living, as its scripts see it.
    pub(super) fn standing_in(&self, queue: &str, at: u64) -> Vec<String> {
        let now = self.clock.read(moment(at));
        let members = |end: &[u8]| self.store.members(&[queue.as_bytes(), end].concat(), now);
        let [queue, beats] = QUEUES.map(members);
        let Some(((waiting, _), (beats, _))) = queue.zip(beats) else { return Vec::new() };
        let millis = now.as_millis() as f64;
        let lives = |ends: f64| (millis..=millis + LATEST).contains(&ends);
        let does_live =
            |one: &bytes::Bytes| beats.iter().any(|(value, ends)| value == one && lives(*ends));
        let standing = waiting.iter().filter(|(member, _)| does_live(member));
        standing.map(|(member, _)| String::from_utf8_lossy(member).into_owned()).collect()
    }

    fn execute_any(&mut self, session: SessionId, words: &[&[u8]], now: Duration) -> Effects {
        let (head, script, rest): (&[&[u8]], _, _) = match words {
            [b"EVAL", script, rest @ ..] => (&[b"EVAL"], script, rest),
            [b"SCRIPT", b"LOAD", script, rest @ ..] => (&[b"SCRIPT", b"LOAD"], script, rest),
            _ => return self.store.execute(session, words, now),
        };
        let Some(wrong) = scripts::mutated(script) else {
            return self.store.execute(session, words, now);
        };
        let words = [head, &[wrong.as_bytes()], rest].concat();
        self.store.execute(session, &words, now)
    }

    /// A reader's value, if it has the lock of this key; another value that stands there. To one
    /// that does not read, others are nothing.
    fn value_of_reader(
        &self,
        (lock, readers): (&[u8], &[u8]),
        value: &[u8],
        now: Duration,
    ) -> Option<String> {
        let stands = self.value(lock, now)?;
        if stands.as_bytes() != READERS {
            return Some(stands);
        }
        let (members, _) = self.store.members(readers, now)?;
        let found = readers::living(&members, now).find(|member| **member == *value)?;
        Some(String::from_utf8_lossy(found).into_owned())
    }

    fn value(&self, key: &[u8], now: Duration) -> Option<String> {
        self.store.text(key, now).map(|(text, _)| value_of(&text))
    }

    /// Whether the lock of this key was revoked.
    pub(super) fn is_revoked(&self, key: &str, at: u64) -> bool {
        let stands = self.store.text(key.as_bytes(), self.clock.read(moment(at)));
        stands.is_some_and(|(text, _)| text.ends_with(b"!"))
    }

    /// What stands under this key.
    pub(super) fn value_at(&self, key: &str, at: u64) -> Option<String> {
        self.value(key.as_bytes(), self.clock.read(moment(at)))
    }

    /// Whether this value stands under some key.
    pub(super) fn holds(&self, value: &str, at: u64) -> bool {
        self.held(at).iter().any(|(_, held)| held == value)
    }

    /// The keys that are there, and what stands under them: of a lock that readers have, each.
    pub(super) fn held(&self, at: u64) -> Vec<(String, String)> {
        let now = self.clock.read(moment(at));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let held = |key: &bytes::Bytes| {
            let (value, _) = self.store.text(key, now)?;
            if value != READERS {
                return Some(vec![(text(key), value_of(&value))]);
            }
            let (members, _) =
                self.store.members(readers::readers_of(&text(key)).as_bytes(), now)?;
            Some(readers::living(&members, now).map(|value| (text(key), text(value))).collect())
        };
        self.store.keys().iter().filter_map(held).flatten().collect()
    }
}

/// A time of the world, in milliseconds, as clocks take it.
pub(super) fn moment(millis: u64) -> Moment {
    Moment::from_nanos(millis * 1_000_000)
}

/// The name of a queue, of its key.
fn queue_name(key: &[u8]) -> Option<String> {
    let name = key.strip_suffix(QUEUES[0])?;
    Some(String::from_utf8_lossy(name).into_owned())
}

/// The name of the queue that a script is given, and the value for which it runs.
pub(super) fn queue_and_value(words: &[&[u8]]) -> Option<(String, String)> {
    let [b"EVAL" | b"EVALSHA", _, count, rest @ ..] = words else { return None };
    let count: usize = std::str::from_utf8(count).ok()?.parse().ok()?;
    let (keys, arguments) = rest.split_at_checked(count)?;
    let queue = keys.iter().find_map(|key| queue_name(key))?;
    let value = arguments.first()?;
    Some((queue, String::from_utf8_lossy(value).into_owned()))
}

/// A value without the mark of a revocation.
fn value_of(text: &[u8]) -> String {
    String::from_utf8_lossy(text.strip_suffix(b"!").unwrap_or(text)).into_owned()
}

fn find(there: Option<&str>, value: &[u8]) -> Found {
    match there {
        None => Found::Gone,
        Some(there) if there.as_bytes() == value => Found::Ours,
        Some(_) => Found::Others,
    }
}

/// What a lock's command is about.
struct Subject<'a> {
    keys: &'a [&'a [u8]],
    value: &'a [u8],
    is_release: bool,
    is_native: bool,
    /// The key of the lock's readers, if it is a reader's command.
    readers: Option<&'a [u8]>,
}

fn subject<'a>(words: &'a [&'a [u8]]) -> Option<Subject<'a>> {
    match words {
        [b"SET", key, value, ..] => {
            let keys = std::slice::from_ref(key);
            Some(Subject { keys, value, is_release: false, is_native: false, readers: None })
        }
        [b"DELIFEQ", key, value] => {
            let keys = std::slice::from_ref(key);
            Some(Subject { keys, value, is_release: true, is_native: true, readers: None })
        }
        // It gives the lock to none and takes it from none.
        [b"EVAL", script, ..] if *script == REVOKE.as_bytes() => None,
        [b"EVAL" | b"EVALSHA", _, count, rest @ ..] => {
            let count: usize = std::str::from_utf8(count).ok()?.parse().ok()?;
            let (keys, arguments) = rest.split_at_checked(count)?;
            // They stand behind the keys of the node's epoch and of its quarantine.
            let is_vote = keys.first().is_some_and(|key| key.ends_with(b"quorlock:epoch"));
            let keys = if is_vote { keys.get(2..)? } else { keys };
            // Those of a queue, and of readers, stand behind their lock's.
            let readers = keys.get(1).copied().filter(|key| readers::lock_of(key).is_some());
            let is_queued = keys.get(1).is_some_and(|key| key.ends_with(QUEUES[0]));
            let keys = match keys {
                _ if is_queued || readers.is_some() => keys.get(..1)?,
                [slots @ .., queue, _] if queue.ends_with(QUEUES[0]) => slots,
                keys => keys,
            };
            let (value, more) = arguments.split_first()?;
            let is_release = more.is_empty() && !is_vote;
            Some(Subject { keys, value, is_release, is_native: false, readers })
        }
        _ => None,
    }
}

/// Which server a process is, where so many in a hundred know native commands.
fn draw_version(versions: &mut Chance, native: u64) -> Version {
    match native {
        0 => Version::default(),
        _ if versions.percent(native) => Version::valkey("9.1.2").unwrap(),
        _ => Version::valkey("8.1.4").unwrap(),
    }
}

/// Forty characters, as all servers have.
fn run_id(node: usize, process: u64) -> String {
    format!("{:040x}", (node as u64 + 1) << 32 | process)
}
