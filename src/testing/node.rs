//! The face of one node.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::fault::{Reaction, Rule, known_command, known_name};
use super::listen::Listening;
#[cfg(test)]
use super::shared::Heard;
use super::shared::{Life, Shared};
use super::store::{Persistence, Setup, User, Version};

/// A server inside the process: what a lock needs of Redis or Valkey, for unit tests.
///
/// One that [listens](Self::listen) can be connected to over loopback TCP, by any client; a set of
/// [`Nodes`](super::Nodes) is reached in memory. Either runs on the runtime that it is started on,
/// keeps its keys' time by tokio's clock, and ends when its last handle is dropped.
///
/// It knows the commands of a connection (`HELLO`, `AUTH`, `CLIENT`, `SELECT`, `PING`, …), of keys
/// (`SET` with its options, `GET`, `DEL`, `PTTL`, `PEXPIRE`, …), of sorted sets (`ZADD`, `ZREM`,
/// `ZRANGE`, …), of channels (`SUBSCRIBE`, `UNSUBSCRIBE`, `PUBLISH`, `PUBSUB`), of the node
/// (`INFO`, `TIME`, `FLUSHALL`, …) and of scripts, of which it runs the locks' own and no other. It
/// tells clients of changed keys (`CLIENT TRACKING`). It is no cache and keeps nothing on disk.
///
/// # Faults
///
/// [`add`](Self::add) makes it misbehave by rule; [`hang`](Self::hang), [`stop`](Self::stop) and
/// their like do it at once.
#[derive(Clone)]
pub struct Node {
    owner: Arc<Owner>,
}

/// Ends the node when the last handle is gone.
struct Owner {
    shared: Arc<Shared>,
    listening: Option<Listening>,
    password: Option<String>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        stop(&self.shared, self.listening.as_ref());
    }
}

fn stop(shared: &Shared, listening: Option<&Listening>) {
    if let Some(listening) = listening {
        listening.close();
    }
    shared.change(|state| {
        state.life = Life::Stopped;
        state.cut();
    });
}

/// What a node is to be; see [`Node::builder`].
#[derive(Clone, Default)]
#[must_use = "a builder does nothing until the node listens"]
pub struct NodeBuilder {
    password: Option<String>,
    users: Vec<(String, String)>,
    is_replica: bool,
    is_cluster: bool,
    maxmemory_policy: Option<String>,
    port: u16,
    poses: Option<Pose>,
    hidden: BTreeSet<String>,
    persistence: Persistence,
}

/// Which server it says that it is, of which version.
#[derive(Clone)]
enum Pose {
    Redis(String),
    Valkey(String),
}

impl NodeBuilder {
    /// Asks every client for this password; [`Node::url`] then has it.
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// Adds a user with ACL rules: `.user("alice", "on >secret ~lock:* +@all -flushall")`. The
    /// rules known are those that name a command, a subcommand, `@all`, a pattern of keys, or one
    /// of channels: `&pay:*`, `allchannels`, `resetchannels`. Without one it may use no channel,
    /// and any channel before Redis 7.0.
    pub fn user(mut self, name: &str, rules: &str) -> Self {
        self.users.push((name.to_owned(), rules.to_owned()));
        self
    }

    /// Says that it is a Redis of this version, such as `8.2.3`, and knows nothing that came later.
    /// Default: it says that it is `quorlock`, and knows whatever any server does.
    pub fn redis(mut self, version: &str) -> Self {
        self.poses = Some(Pose::Redis(version.to_owned()));
        self
    }

    /// Says that it is a Valkey of this version, as [`redis`](Self::redis).
    pub fn valkey(mut self, version: &str) -> Self {
        self.poses = Some(Pose::Valkey(version.to_owned()));
        self
    }

    /// Takes a command away, as managed services do with `CONFIG` or `CLIENT`, and others by
    /// `rename-command`: it answers that it knows none such.
    ///
    /// # Panics
    ///
    /// With a name of no command.
    #[track_caller]
    pub fn without(mut self, command: &str) -> Self {
        self.hidden.insert(known_command(command));
        self
    }

    /// Says that it logs each write, and how often it forces the log to the disk: `always`,
    /// `everysec` or `no`. What it still has after a [`restart`](Node::restart) is said there.
    /// Default: it logs nothing.
    pub fn appendonly(mut self, fsync: &str) -> Self {
        self.persistence.appendonly = true;
        self.persistence.appendfsync = fsync.to_owned();
        self
    }

    /// Says that it takes snapshots, and when, as in `3600 1 300 100`. Default: it takes none.
    pub fn snapshots(mut self, save: &str) -> Self {
        self.persistence.save = save.to_owned();
        self
    }

    /// Says that it is a replica, and takes no writes.
    pub fn replica(mut self) -> Self {
        self.is_replica = true;
        self
    }

    /// Says that it is a node of a Cluster.
    pub fn cluster(mut self) -> Self {
        self.is_cluster = true;
        self
    }

    /// What it says to do when its memory is full. It never does. Default: `noeviction`.
    pub fn maxmemory_policy(mut self, policy: &str) -> Self {
        self.maxmemory_policy = Some(policy.to_owned());
        self
    }

    /// The port to listen on. Default: a free one. In memory there is none.
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Starts it on the present runtime, on the loopback address.
    ///
    /// # Errors
    ///
    /// When the port is taken, there is no runtime, or what was described cannot be: a rule that is
    /// none, a version that is none.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future starts nothing.
    pub async fn listen(self) -> io::Result<Node> {
        let wrong = |what: String| io::Error::new(io::ErrorKind::InvalidInput, what);
        let mut setup = self.setup().map_err(wrong)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let listening = Listening::bind(address)?;
        setup.port = listening.addr().port();
        let shared = Arc::new(Shared::new(setup));
        listening.start(&shared);
        let owner = Owner { shared, listening: Some(listening), password: self.password };
        Ok(Node { owner: Arc::new(owner) })
    }

    /// One that is reached in memory only.
    pub(super) fn in_memory(self) -> Result<Node, String> {
        let shared = Arc::new(Shared::new(self.setup()?));
        let owner = Owner { shared, listening: None, password: self.password };
        Ok(Node { owner: Arc::new(owner) })
    }

    fn setup(&self) -> Result<Setup, String> {
        let version = match &self.poses {
            None => Version::default(),
            Some(Pose::Redis(version)) => Version::redis(version)?,
            Some(Pose::Valkey(version)) => Version::valkey(version)?,
        };
        let usual = match &self.password {
            Some(password) => User::with_password(password),
            None => User::unlimited(),
        };
        let mut users = BTreeMap::from([("default".to_owned(), usual)]);
        for (name, rules) in &self.users {
            users.insert(name.clone(), User::by_rules(rules, version)?);
        }
        let fsync = &*self.persistence.appendfsync;
        if !matches!(fsync, "always" | "everysec" | "no") {
            return Err(format!("appendfsync is always, everysec or no: {fsync:?}"));
        }
        let policy = self.maxmemory_policy.clone().unwrap_or_else(|| "noeviction".into());
        Ok(Setup {
            run_id: first_run_id(),
            users,
            is_replica: self.is_replica,
            is_cluster: self.is_cluster,
            maxmemory_policy: policy,
            port: self.port,
            version,
            hidden: self.hidden.clone(),
            persistence: self.persistence.clone(),
            #[cfg(test)]
            runs_lua: false,
        })
    }
}

impl fmt::Debug for NodeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Passwords stand in the rules too.
        f.debug_struct("NodeBuilder").finish_non_exhaustive()
    }
}

/// Another name for each node of this process.
fn first_run_id() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    // Ordering: the numbers need only differ.
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{number:032x}{:08x}", 0)
}

impl Node {
    /// Starts one that asks for no password, as [`NodeBuilder::listen`].
    ///
    /// # Errors
    ///
    /// When no port is free, or there is no runtime.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future starts nothing.
    pub async fn listen() -> io::Result<Self> {
        Self::builder().listen().await
    }

    /// A node still to be described.
    pub fn builder() -> NodeBuilder {
        NodeBuilder::default()
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.owner.shared
    }

    pub(super) fn password(&self) -> Option<&str> {
        self.owner.password.as_deref()
    }

    /// Its URL, with the password if it asks for one; `None` in memory.
    #[must_use]
    pub fn url(&self) -> Option<String> {
        let addr = self.addr()?;
        Some(match &self.owner.password {
            Some(password) => format!("redis://:{password}@{addr}"),
            None => format!("redis://{addr}"),
        })
    }

    /// The address that it listens on; `None` in memory.
    #[must_use]
    pub fn addr(&self) -> Option<SocketAddr> {
        self.owner.listening.as_ref().map(Listening::addr)
    }

    /// Adds a fault. Of several that fit a command, each happens, in the order in which they were
    /// added, until one of them ends the matter.
    pub fn add(&self, rule: Rule) {
        self.shared().with(|state| state.rules.push(rule));
    }

    /// Forgets all faults that were added. What hangs still hangs.
    pub fn clear_rules(&self) {
        self.shared().with(|state| state.rules.clear());
    }

    /// Stops executing, as a process does that is stopped by a signal: connections are accepted,
    /// bytes are taken, nothing is answered.
    pub fn hang(&self) {
        self.shared().change(super::shared::State::hang);
    }

    /// Goes on after [`hang`](Self::hang), with what has come meanwhile.
    pub fn resume(&self) {
        self.shared().change(|state| {
            if state.life == Life::Hangs {
                state.life = Life::Runs;
            }
        });
    }

    /// Ends its process: all connections end, no client can connect, what was not executed is lost.
    pub fn stop(&self) {
        stop(self.shared(), self.owner.listening.as_ref());
    }

    /// Starts another process in its place, under the same address; stops it first if it runs.
    /// Scripts are forgotten, and keys too unless it `keeps_data`. The clock goes on.
    ///
    /// # Errors
    ///
    /// When its port has been taken meanwhile; the node is stopped then.
    pub fn restart(&self, keeps_data: bool) -> io::Result<()> {
        self.stop();
        if let Some(listening) = &self.owner.listening {
            listening.reopen()?;
        }
        self.shared().restart(keeps_data);
        if let Some(listening) = &self.owner.listening {
            listening.start(self.shared());
        }
        Ok(())
    }

    /// Whether it executes commands: it neither hangs nor is stopped.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.shared().with(|state| state.life == Life::Runs)
    }

    /// Ends every connection. What had come on them and was not executed is lost.
    pub fn cut(&self) {
        self.shared().cut();
    }

    /// Sets its clock by so many milliseconds, ahead or back: above zero, keys end sooner.
    pub fn step_clock(&self, millis: i64) {
        self.shared().apply(&Reaction::StepClock { millis });
    }

    /// Lets its clock run too fast by so many millionths from now on, or too slow.
    pub fn drift_clock(&self, ppm: i32) {
        self.shared().apply(&Reaction::DriftClock { ppm });
    }

    /// The text that stands under a key of the first database, with its prefix.
    #[must_use]
    pub fn value(&self, key: impl AsRef<[u8]>) -> Option<Vec<u8>> {
        let found = self.shared().with(|state| state.store.text(key.as_ref(), state.now()));
        found.map(|(text, _)| text.to_vec())
    }

    /// How long a key of the first database lives still, by the node's clock; `None` where there is
    /// no such text, or it has no end.
    #[must_use]
    pub fn remaining(&self, key: impl AsRef<[u8]>) -> Option<Duration> {
        self.shared().with(|state| {
            let now = state.now();
            let (_, end) = state.store.text(key.as_ref(), now)?;
            Some(end?.saturating_sub(now))
        })
    }

    /// The keys of the first database, sorted.
    #[must_use]
    pub fn keys(&self) -> Vec<Vec<u8>> {
        self.shared().with(|state| {
            let now = state.now();
            let effects = state.store.advance(now);
            state.deliver(effects, None);
            state.store.keys().iter().map(|key| key.to_vec()).collect()
        })
    }

    /// Executes a command as a client of its own would, one that may do everything: also while the
    /// node hangs, and past all faults. Returns the reply.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let nodes = quorlock::testing::Nodes::new(1);
    /// nodes[0].command(["SET", "order:42", "thief", "PX", "60000"]);
    /// assert_eq!(nodes[0].value("order:42").as_deref(), Some(&b"thief"[..]));
    /// # }
    /// ```
    pub fn command<A: AsRef<[u8]>>(&self, words: impl IntoIterator<Item = A>) -> crate::Frame {
        let words: Vec<A> = words.into_iter().collect();
        let words: Vec<&[u8]> = words.iter().map(AsRef::as_ref).collect();
        self.shared().change(|state| {
            let now = state.now();
            let (reply, effects) = state.store.execute_as_operator(&words, now);
            state.deliver(effects, None);
            reply
        })
    }

    /// How often its process has executed a command of this name, or one of the locks' own scripts;
    /// see [`When`](super::When) for their names. What scripts execute counts, and what a test asks
    /// by [`command`](Self::command); what was refused does not.
    ///
    /// # Panics
    ///
    /// With a name of no command and no script.
    #[must_use]
    #[track_caller]
    pub fn calls(&self, name: &str) -> u64 {
        let name = known_name(name);
        self.shared().with(|state| state.store.calls(&name))
    }

    /// What has come since [`Node::forget_heard`], in this order.
    #[cfg(test)]
    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.shared().with(|state| state.heard.clone())
    }

    #[cfg(test)]
    pub(crate) fn forget_heard(&self) {
        self.shared().with(|state| state.heard.clear());
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let life = self.shared().with(|state| state.life);
        f.debug_struct("Node")
            .field("addr", &self.addr())
            .field("life", &life)
            .finish_non_exhaustive()
    }
}
