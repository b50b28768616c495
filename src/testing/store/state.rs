//! What a node keeps: its keys, its sessions, its counts; and what time does to them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quorlock_resp::Frame;

use super::call::{Call, Refusal, SessionId};
use super::keyspace::{self, Keyspace, Place};
use super::user::User;
use super::version::{Dialect, Version};

/// What a node is, from its start to its end.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// Forty characters; each process has others.
    pub(crate) run_id: String,
    pub(crate) users: BTreeMap<String, User>,
    pub(crate) is_replica: bool,
    pub(crate) is_cluster: bool,
    /// As `INFO` and `CONFIG GET` tell it. Nothing is ever evicted.
    pub(crate) maxmemory_policy: String,
    pub(crate) port: u16,
    pub(crate) version: Version,
    /// Commands that it does not know, in lower case.
    pub(crate) hidden: BTreeSet<String>,
    pub(crate) persistence: Persistence,
    /// Lua runs the scripts, not the functions that stand in for it.
    #[cfg(test)]
    pub(crate) runs_lua: bool,
}

/// What the node says that it keeps on a disk. It keeps nothing there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Persistence {
    pub(crate) appendonly: bool,
    pub(crate) appendfsync: String,
    pub(crate) save: String,
}

impl Default for Persistence {
    fn default() -> Self {
        Self { appendonly: false, appendfsync: "everysec".into(), save: String::new() }
    }
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            run_id: "0".repeat(40),
            users: BTreeMap::from([("default".into(), User::unlimited())]),
            is_replica: false,
            is_cluster: false,
            maxmemory_policy: "noeviction".into(),
            port: 0,
            version: Version::default(),
            hidden: BTreeSet::new(),
            persistence: Persistence::default(),
            #[cfg(test)]
            runs_lua: false,
        }
    }
}

/// How a connection tracks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Tracking {
    /// It is not told of its own changes.
    pub(super) noloop: bool,
    /// `BCAST`: it is told of all keys that begin so, whether it has read them or not.
    pub(super) prefixes: Option<Vec<Bytes>>,
    pub(super) choice: Choice,
    /// `CLIENT CACHING` was said: the next command is the exception from `choice`.
    pub(super) is_excepted: bool,
}

/// Which of a connection's reads are remembered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Choice {
    #[default]
    All,
    /// `OPTIN`: those behind `CLIENT CACHING YES`.
    Chosen,
    /// `OPTOUT`: all but those behind `CLIENT CACHING NO`.
    NotRefused,
}

impl Tracking {
    /// Whether a key that is read now is remembered.
    pub(super) fn remembers(&self) -> bool {
        let by_choice = match self.choice {
            Choice::All => true,
            Choice::Chosen => self.is_excepted,
            Choice::NotRefused => !self.is_excepted,
        };
        self.prefixes.is_none() && by_choice
    }
}

/// The members of a sorted set, each with its score.
#[cfg(test)]
type Scored = Vec<(Bytes, f64)>;

/// What the node knows of one connection.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) name: Bytes,
    pub(super) user: Arc<str>,
    pub(super) authenticated: bool,
    pub(super) database: u32,
    pub(super) resp3: bool,
    pub(super) tracking: Option<Tracking>,
    /// The channels that it is subscribed to.
    pub(super) channels: BTreeSet<Bytes>,
}

impl Session {
    pub(super) fn new(user: &str, authenticated: bool) -> Self {
        Self {
            name: Bytes::new(),
            user: user.into(),
            authenticated,
            database: 0,
            resp3: false,
            tracking: None,
            channels: BTreeSet::new(),
        }
    }

    /// Whether it may say little but that it is no longer subscribed.
    pub(super) fn only_listens(&self) -> bool {
        !self.resp3 && !self.channels.is_empty()
    }
}

/// What has come of a command, or of time.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Effects {
    /// What is said to whom, in this order: the reply, and pushes to any connection. `SUBSCRIBE`
    /// and `UNSUBSCRIBE` are answered by pushes alone.
    pub(crate) messages: Vec<(SessionId, Frame)>,
    /// Connections that end behind that. The store has forgotten them already.
    pub(crate) ended: Vec<SessionId>,
}

/// The state of one node.
///
/// Times are those of the node's own clock, since the Unix epoch.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(super) setup: Setup,
    pub(super) keys: Keyspace,
    pub(super) sessions: BTreeMap<SessionId, Session>,
    /// The scripts that were loaded, by their digests.
    pub(super) scripts: BTreeMap<String, Bytes>,
    /// Whether the script under way is refused what needs memory. That is settled when it starts;
    /// one that has written is not stopped halfway.
    pub(super) script_is_starved: bool,
    /// The keys that the script under way was given.
    pub(super) script_keys: Vec<Bytes>,
    /// Who has read which key since it was last told of a change.
    pub(super) readers: BTreeMap<Bytes, BTreeSet<SessionId>>,
    /// What is to be said before the reply, and behind it.
    pub(super) pushes_first: Vec<(SessionId, Frame)>,
    pub(super) pushes: Vec<(SessionId, Frame)>,
    pub(super) ended: Vec<SessionId>,
    pub(super) pause: Option<Pause>,
    pub(super) memory_max: u64,
    pub(super) counts: Counts,
}

/// What `CLIENT PAUSE` keeps waiting, and until when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pause {
    pub(super) until: Duration,
    /// Every command waits; otherwise those that may write.
    pub(super) is_of_all: bool,
}

/// What a node counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) connections: i64,
    pub(super) expired: u64,
    /// Of each command, and of each of its subcommands if it has such.
    pub(super) calls: BTreeMap<(&'static str, String), u64>,
    pub(super) scripts: BTreeMap<&'static str, u64>,
}

impl Store {
    pub(crate) fn new(setup: Setup) -> Self {
        Self {
            setup,
            keys: Keyspace::default(),
            sessions: BTreeMap::new(),
            scripts: BTreeMap::new(),
            script_is_starved: false,
            script_keys: Vec::new(),
            readers: BTreeMap::new(),
            pushes_first: Vec::new(),
            pushes: Vec::new(),
            ended: Vec::new(),
            pause: None,
            memory_max: 0,
            counts: Counts::default(),
        }
    }

    /// The process has ended, and another one has this name. Connections and scripts are gone,
    /// connections are numbered from 1 again; the keys are still there if it `keeps_data`.
    pub(crate) fn restart(&mut self, run_id: String, keeps_data: bool) {
        let keys = if keeps_data { std::mem::take(&mut self.keys) } else { Keyspace::default() };
        let setup = Setup { run_id, ..self.setup.clone() };
        *self = Self { keys, ..Self::new(setup) };
    }

    /// Its next process is another server than this one.
    #[cfg(test)]
    pub(crate) fn set_version(&mut self, version: Version) {
        self.setup.version = version;
    }

    pub(crate) fn setup(&self) -> &Setup {
        &self.setup
    }

    /// A client has connected.
    pub(crate) fn connect(&mut self) -> SessionId {
        self.counts.connections += 1;
        let open = self.setup.users.get("default").is_some_and(User::is_open);
        self.sessions.insert(self.counts.connections, Session::new("default", open));
        self.counts.connections
    }

    /// A connection has ended.
    pub(crate) fn disconnect(&mut self, session: SessionId) {
        self.sessions.remove(&session);
        self.forget_reader(session);
    }

    pub(crate) fn is_connected(&self, session: SessionId) -> bool {
        self.sessions.contains_key(&session)
    }

    /// How the connection is written to.
    pub(crate) fn dialect(&self, session: SessionId) -> Dialect {
        Dialect { resp3: self.speaks_resp3(session), version: self.setup.version }
    }

    /// Whether the connection is spoken to in RESP3.
    pub(super) fn speaks_resp3(&self, session: SessionId) -> bool {
        self.sessions.get(&session).is_some_and(|session| session.resp3)
    }

    /// Whether any connection is told of changes.
    pub(crate) fn is_tracked(&self) -> bool {
        self.sessions.values().any(|session| session.tracking.is_some())
    }

    /// Removes the keys whose end has come. The effects are pushes to those who track them.
    pub(crate) fn advance(&mut self, now: Duration) -> Effects {
        self.expire_due(now);
        self.collect(Effects::default())
    }

    /// When the next key ends.
    pub(crate) fn next_end(&self) -> Option<Duration> {
        self.keys.next_end()
    }

    /// How often a command of this name, or one of the locks' scripts, was executed.
    pub(crate) fn calls(&self, name: &str) -> u64 {
        let script = self.counts.scripts.get(name).copied().unwrap_or_default();
        let calls = self.counts.calls.iter().filter(|((command, _), _)| *command == name);
        script + calls.map(|(_, calls)| calls).sum::<u64>()
    }

    /// Whether `CLIENT PAUSE` was said, and no `CLIENT UNPAUSE` since.
    pub(crate) fn is_pausing(&self) -> bool {
        self.pause.is_some()
    }

    /// The text under a key of the first database, and until when it is there (forever: `None`).
    pub(crate) fn text(&self, key: &[u8], now: Duration) -> Option<(Bytes, Option<Duration>)> {
        let entry = self.keys.get(&(0, Bytes::copy_from_slice(key)))?;
        let is_live = entry.end.is_none_or(|end| now < end);
        match &entry.value {
            keyspace::Value::Text(text) if is_live => Some((text.clone(), entry.end)),
            _ => None,
        }
    }

    /// The members of a sorted set of the first database with their scores, in their order, and
    /// until when it is there (forever: `None`).
    #[cfg(test)]
    pub(crate) fn members(&self, key: &[u8], now: Duration) -> Option<(Scored, Option<Duration>)> {
        let entry = self.keys.get(&(0, Bytes::copy_from_slice(key)))?;
        let is_live = entry.end.is_none_or(|end| now < end);
        match &entry.value {
            keyspace::Value::Sorted(set) if is_live => {
                let members = set.iter().map(|(score, member)| (member.clone(), score.number()));
                Some((members.collect(), entry.end))
            }
            _ => None,
        }
    }

    /// The keys of the first database, those included whose end has come since the last command.
    pub(crate) fn keys(&self) -> Vec<Bytes> {
        self.keys.keys(0).cloned().collect()
    }

    pub(super) fn expire_due(&mut self, now: Duration) {
        while let Some((_, key)) = self.keys.expire_one(now) {
            self.counts.expired += 1;
            self.invalidate(&key, None);
        }
    }

    pub(super) fn collect(&mut self, mut effects: Effects) -> Effects {
        effects.messages.append(&mut self.pushes);
        effects.ended.append(&mut self.ended);
        effects
    }

    pub(super) fn place(&self, call: &Call<'_>, key: &[u8]) -> Place {
        let database = self.sessions.get(&call.session).map_or(0, |session| session.database);
        (database, Bytes::copy_from_slice(key))
    }

    pub(super) fn session(&mut self, call: &Call<'_>) -> Result<&mut Session, Refusal> {
        self.sessions.get_mut(&call.session).ok_or(Refusal::of("ERR the connection has ended"))
    }
}
