//! The server behind a connection that has shaken hands, and what a locker wants of it.

use std::fmt;
use std::time::Duration;

use super::push::Subscriptions;
use crate::report::{Fault, Role, ServerInfo};

/// What the server said of itself. Where it would not say, it is taken for a plain master.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Peer {
    /// This connection's number, by which another connection can end it.
    pub(crate) client_id: Option<i64>,
    /// What is told to people as well.
    pub(crate) server: ServerInfo,
    /// What stands under the key that the locker asked for.
    pub(crate) epoch: EpochValue,
    /// What it tells this connection unasked.
    pub(crate) subscriptions: Subscriptions,
    /// How long its first answer took.
    pub(crate) rtt: Option<Duration>,
    /// Whether [native commands](super::native) may be sent to it.
    pub(crate) is_native: bool,
}

impl Peer {
    /// The server's `run_id`, if it has the form that can be sent back to it.
    pub(crate) fn run_id(&self) -> Option<RunId> {
        let name = self.server.run_id.as_deref()?.as_bytes();
        RunId::try_from(name).ok().filter(|name| name.iter().all(u8::is_ascii_alphanumeric))
    }

    pub(crate) fn is_replica(&self) -> bool {
        self.server.role == Some(Role::Replica)
    }

    /// What the server does to keys when its memory is full, if that is not to leave them alone.
    pub(crate) fn eviction(&self) -> Option<&str> {
        self.server.maxmemory_policy.as_deref().filter(|policy| *policy != "noeviction")
    }
}

/// A server's `run_id`, the name that its process gives itself: of this length on all servers.
pub(crate) type RunId = [u8; 40];

/// What a server holds under one key.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum EpochValue {
    /// It was not asked, or did not say.
    #[default]
    Untold,
    Absent,
    Text(Box<[u8]>),
    /// Another type than a string.
    Other,
}

/// What a locker wants of a server, apart from its being a master. To this room it is opaque.
pub(crate) trait AdmissionPolicy: fmt::Debug + Send + Sync {
    /// The key whose value it wants to see first.
    fn key(&self) -> &[u8];

    fn judge(&self, peer: &Peer) -> Admission;

    /// Whether the server may forget what the locker relies on that it keeps.
    fn may_be_forgotten(&self, server: &ServerInfo) -> bool;

    /// Why a server is a mismatch that refuses a vote for good, and names this time.
    fn explain(&self, time: Option<Duration>) -> Box<str>;
}

/// Whether a server is what a locker wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Admission {
    Admitted,
    /// It may be asked, but no lock may be acquired while it is among the nodes, for this reason.
    Mismatch(Box<str>),
    /// It cannot be used.
    Unusable(Fault),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_a_name_of_forty_characters() {
        let named = |name: Option<&str>| {
            let server = ServerInfo { run_id: name.map(Into::into), ..ServerInfo::default() };
            Peer { server, ..Peer::default() }.run_id()
        };
        assert_eq!(named(Some(&"a7".repeat(20))).unwrap()[..2], *b"a7");
        assert_eq!(named(Some("abc")), None);
        assert_eq!(named(Some(&"a ".repeat(20))), None);
        assert_eq!(named(None), None);
    }
}
