//! A node's health: whether it is connected, and what its server said of itself.
//!
//! [`NodeHealth`] is one node's line, [`ServerInfo`] what the server tells while shaking hands,
//! [`ClockSkew`] how far its clock is from ours. Everything that a server says is optional: an ACL
//! may forbid the question, and a managed service may hide the answer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Outcome;
use super::fault::Fault;
use super::humane::Humane;

/// One node as a locker knows it, without asking anything.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NodeHealth {
    /// The node's address as given, without user and password.
    pub node: Arc<str>,
    /// [`Connected`](Outcome::Connected), or [`Down`](Outcome::Down) and why.
    pub outcome: Outcome,
    /// How long the latest answer took, from queueing the command to reading its reply; of several
    /// connections, the slowest one's. Before anything was asked, the answer to the login. `None`
    /// while there is no connection.
    pub rtt: Option<Duration>,
    /// What the server said of itself when it was last connected to: also while it is down, or
    /// where it was refused as what it is. `None` before it has ever answered.
    pub server: Option<ServerInfo>,
    /// Whether the server contradicts the locker's [`Durability`](crate::Durability): that relies
    /// on a server which forgets nothing, and by its configuration this one may
    /// ([`Persistence::may_forget`]). `false` where the server did not tell.
    pub contradicts_durability: bool,
    /// Whether the node tells this process that a lock was handed over to it, or is waited for that
    /// it holds: only such nodes keep queues for it, and where no node does, it polls. It takes
    /// RESP3 and the right to the channel `quorlock:wake:` and the holder's name.
    pub tells_hand_overs: bool,
    /// Whether the node tells this process when a lock changes that another holds who hands nothing
    /// over, a client of another library for one. Without it such a lock is polled. It takes RESP3
    /// and `CLIENT TRACKING`, and `CLIENT CACHING`: a user without the right to that is found out
    /// only when the first such lock is waited for on a connection.
    pub tells_changes: bool,
    /// Whether locks are released there by `DELIFEQ`, for which the server runs no script. It takes
    /// [`native_commands`](crate::LockerBuilder::native_commands), a Valkey from 9.0 on, and the
    /// right to the command.
    pub deletes_natively: bool,
}

impl NodeHealth {
    /// Whether the node can be asked.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.outcome == Outcome::Connected
    }

    /// Why the node cannot be asked.
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        self.outcome.fault()
    }
}

impl fmt::Display for NodeHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.node, self.outcome)?;
        if let Some(server) = &self.server {
            write!(f, " ({server})")?;
            if self.contradicts_durability {
                write!(f, ", may forget locks ({})", server.persistence)?;
            }
        }
        Ok(())
    }
}

/// What a server said of itself while shaking hands. `None` stands for what it did not tell: the
/// user's ACL forbids the question, or the server hides it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ServerInfo {
    /// Redis, Valkey, or something that speaks like them.
    pub kind: Option<ServerKind>,
    /// Its own version: of a Valkey that poses as a Redis for old clients, Valkey's.
    pub version: Option<Box<str>>,
    /// Whether it accepts writes of its own.
    pub role: Option<Role>,
    /// Whether it stands alone.
    pub mode: Option<Mode>,
    /// Its process's random name, which changes with every start.
    pub run_id: Option<Box<str>>,
    /// Whether RESP3 is spoken with it; else RESP2.
    pub resp3: bool,
    /// What it keeps when it stops.
    pub persistence: Persistence,
    /// What it does to keys when its memory is full (`maxmemory-policy`). Anything but `noeviction`
    /// can delete a lock that is held.
    pub maxmemory_policy: Option<Box<str>>,
    /// How far its wall clock was from ours.
    pub clock: Option<ClockSkew>,
}

/// `valkey 9.1.2, master, standalone`, as far as it was told.
impl fmt::Display for ServerInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Some(kind) => kind.fmt(f)?,
            None => f.write_str("a server")?,
        }
        match &self.version {
            Some(version) => write!(f, " {version}")?,
            None => f.write_str(" of a version that it does not tell")?,
        }
        if let Some(role) = self.role {
            write!(f, ", {role}")?;
        }
        match self.mode {
            Some(mode) => write!(f, ", {mode}"),
            None => Ok(()),
        }
    }
}

/// The kind of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ServerKind {
    /// Redis, or what calls itself so.
    Redis,
    /// Valkey.
    Valkey,
    /// Another server that speaks the protocol, by the name that it gives itself.
    Other(Box<str>),
}

impl fmt::Display for ServerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Redis => "redis",
            Self::Valkey => "valkey",
            Self::Other(name) => name,
        })
    }
}

/// A server's part in replication.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Role {
    /// It takes writes.
    Master,
    /// It copies a master, and cannot vote.
    Replica,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Master => "master",
            Self::Replica => "replica",
        })
    }
}

/// How a server runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Mode {
    /// On its own: what a quorum is made of.
    Standalone,
    /// As a node of a Cluster.
    Cluster,
    /// As a Sentinel, which holds no keys.
    Sentinel,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Standalone => "standalone",
            Self::Cluster => "cluster",
            Self::Sentinel => "sentinel",
        })
    }
}

/// What a server keeps when it stops: its configuration when it was connected to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Persistence {
    /// Whether each write goes to a log (`appendonly`).
    pub appendonly: Option<bool>,
    /// How often the log is forced to the disk: `always`, `everysec` or `no`. Only with `always`
    /// does a lock that was granted survive a loss of power.
    pub appendfsync: Option<Box<str>>,
    /// When snapshots are taken, as in `3600 1 300 100`; empty for never.
    pub save: Option<Box<str>>,
}

impl Persistence {
    /// Whether the server may come back without a lock that it had granted: it keeps no log, or
    /// does not force it to the disk at each write. `None` where it did not tell: a user without
    /// the right to `CONFIG GET` is not told of `appendfsync`.
    #[must_use]
    pub fn may_forget(&self) -> Option<bool> {
        match (self.appendonly, self.appendfsync.as_deref()) {
            (Some(false), _) => Some(true),
            (Some(true), Some(when)) => Some(when != "always"),
            _ => None,
        }
    }
}

/// `appendonly yes, appendfsync everysec, save 3600 1`, as far as it was told.
impl fmt::Display for Persistence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        if let Some(appendonly) = self.appendonly {
            write!(f, "appendonly {}", if appendonly { "yes" } else { "no" })?;
            comma = ", ";
        }
        // Without a log nothing is forced to the disk, whatever is configured.
        if let (Some(appendfsync), true) = (&self.appendfsync, self.appendonly != Some(false)) {
            write!(f, "{comma}appendfsync {appendfsync}")?;
            comma = ", ";
        }
        match self.save.as_deref() {
            Some("") => write!(f, "{comma}no snapshots"),
            Some(save) => write!(f, "{comma}save {save}"),
            None if comma.is_empty() => f.write_str("not told"),
            None => Ok(()),
        }
    }
}

/// So far apart the clocks may be without fenced locks taking notice.
const APART_MAX: Duration = Duration::from_secs(5);

/// How far a server's wall clock was from ours when it was connected to. A constant difference does
/// not hurt a lock; one that changes does. Fenced locks want clocks that are near one another: see
/// [`is_far`](Self::is_far).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ClockSkew {
    /// How far apart the clocks were.
    pub apart: Duration,
    /// Whether the server's was ahead of ours.
    pub is_ahead: bool,
    /// How exactly that is known: half of the time that the question took.
    pub within: Duration,
}

impl ClockSkew {
    /// The skew, from the server's time that was asked for at `sent` and read at `received`. All
    /// three are wall-clock times since 1970.
    pub(crate) fn measured(server: Duration, sent: Duration, received: Duration) -> Self {
        let within = received.saturating_sub(sent) / 2;
        let ours = sent + within;
        Self { apart: server.abs_diff(ours), is_ahead: server > ours, within }
    }

    /// Whether the clocks were more than five seconds apart. A [fenced](crate::LockRequest::fenced)
    /// lock takes round trips more then; and where the clocks of the nodes are so far apart from
    /// each other that no majority has them within five seconds, it may not be had at all.
    #[must_use]
    pub fn is_far(&self) -> bool {
        self.apart.saturating_sub(self.within) > APART_MAX
    }
}

/// `1.2 ms ahead (± 85 µs)`.
impl fmt::Display for ClockSkew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { apart, is_ahead, within } = *self;
        let (apart, within) = (Humane(apart), Humane(within));
        write!(f, "{apart} {} (± {within})", if is_ahead { "ahead" } else { "behind" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_is_shown_and_what_was_not_is_not() {
        let mut server = ServerInfo::default();
        assert_eq!(server.to_string(), "a server of a version that it does not tell");
        server.kind = Some(ServerKind::Valkey);
        server.version = Some("9.1.2".into());
        (server.role, server.mode) = (Some(Role::Replica), Some(Mode::Cluster));
        assert_eq!(server.to_string(), "valkey 9.1.2, replica, cluster");
        let health = NodeHealth {
            node: "h:1".into(),
            outcome: Outcome::Down { fault: Fault::Replica },
            rtt: None,
            server: Some(server),
            contradicts_durability: false,
            tells_hand_overs: false,
            tells_changes: false,
            deletes_natively: false,
        };
        assert!(!health.is_connected() && health.fault() == Some(&Fault::Replica));
        assert!(health.to_string().ends_with(" (valkey 9.1.2, replica, cluster)"), "{health}");
        let mut server = ServerInfo::default();
        server.persistence.appendonly = Some(false);
        let health = NodeHealth { server: Some(server), contradicts_durability: true, ..health };
        assert!(health.to_string().ends_with("), may forget locks (appendonly no)"), "{health}");
    }

    #[test]
    fn only_a_log_that_is_forced_to_the_disk_at_each_write_forgets_nothing() {
        let told = |appendonly, appendfsync: Option<&str>| {
            let appendfsync = appendfsync.map(Into::into);
            Persistence { appendonly, appendfsync, save: Some("3600 1".into()) }.may_forget()
        };
        assert_eq!(told(Some(false), None), Some(true));
        assert_eq!(told(Some(false), Some("always")), Some(true));
        assert_eq!(told(Some(true), Some("everysec")), Some(true));
        assert_eq!(told(Some(true), Some("no")), Some(true));
        assert_eq!(told(Some(true), Some("always")), Some(false));
        assert_eq!(told(Some(true), None), None);
        assert_eq!(told(None, Some("everysec")), None);
    }

    #[test]
    fn persistence_reads_as_the_configuration_does() {
        let told = |appendonly, appendfsync: Option<&str>, save: Option<&str>| {
            let (appendfsync, save) = (appendfsync.map(Into::into), save.map(Into::into));
            Persistence { appendonly, appendfsync, save }.to_string()
        };
        assert_eq!(told(None, None, None), "not told");
        assert_eq!(told(Some(false), None, None), "appendonly no");
        assert_eq!(told(Some(false), Some("always"), Some("")), "appendonly no, no snapshots");
        let all = told(Some(true), Some("everysec"), Some("3600 1"));
        assert_eq!(all, "appendonly yes, appendfsync everysec, save 3600 1");
        assert_eq!(told(None, Some("no"), None), "appendfsync no");
    }

    #[test]
    fn a_skew_is_measured_from_the_middle_of_the_question() {
        let at = Duration::from_micros;
        let skew = |server| ClockSkew::measured(at(server), at(1_000), at(1_400));
        assert_eq!(skew(1_200).to_string(), "0 µs behind (± 200 µs)");
        assert_eq!(skew(3_300).to_string(), "2.1 ms ahead (± 200 µs)");
        assert_eq!(skew(1_100).to_string(), "100 µs behind (± 200 µs)");
        assert!(!skew(5_001_400).is_far() && skew(5_001_401).is_far());
        let set_back = ClockSkew::measured(at(1_000), at(1_000), at(400));
        assert_eq!((set_back.apart, set_back.within), (Duration::ZERO, Duration::ZERO));
    }
}
