//! Reports about nodes and keys: each node's part in an operation, a node's health, and what a key
//! holds.
//!
//! - [`NodeReport`] is one node's part, [`Outcome`] what became of the command there, [`Fault`] why
//!   the node could not be asked at all: from [`Error::nodes`](crate::Error::nodes),
//!   [`LockGuard::votes`](crate::LockGuard::votes) and the [`Event`](crate::Event)s.
//! - [`NodeHealth`] is what is known of a node without asking it, from
//!   [`Locker::health`](crate::Locker::health).
//! - [`WaitStats`] is how acquisitions have waited for others, from
//!   [`Locker::stats`](crate::Locker::stats).
//! - [`Inspection`] is what the nodes hold under a key, from
//!   [`Locker::inspect`](crate::Locker::inspect), and [`Holder`] who holds it.

mod discreet;
mod fault;
mod health;
mod humane;
mod inspection;
mod waits;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use discreet::{printable, without_secret};
use fault::said;
pub use fault::{ConnectStep, Fault};
pub use health::{ClockSkew, Mode, NodeHealth, Persistence, Role, ServerInfo, ServerKind};
pub(crate) use humane::Humane;
pub(crate) use inspection::ANOTHER;
pub use inspection::{Holder, Inspection, KeyState, NodeInspection};
pub use waits::WaitStats;

use crate::server_error::ServerError;

/// One node's part in an operation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NodeReport {
    /// The node's address as given, without user and password.
    pub node: Arc<str>,
    /// What became of the command on this node.
    pub outcome: Outcome,
    /// From queueing the command to reading its reply, by this process's clock; `None` where there
    /// was no reply, or nothing was asked.
    pub rtt: Option<Duration>,
}

impl fmt::Display for NodeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.node, self.outcome)
    }
}

/// The reports of these nodes, with commas between.
pub(crate) fn listed<'a>(nodes: impl Iterator<Item = &'a NodeReport>) -> String {
    nodes.map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// What became of a command on one node.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// Nothing was asked; the node is connected and can be.
    Connected,
    /// The node did it: it set the key, or deleted it.
    Granted,
    /// Nothing was applied: the key is held by another value.
    Held,
    /// The node has granted the lock, but not with a fence: its own stands at this number, which
    /// no token could pass that was tried.
    #[non_exhaustive]
    Unfenced {
        /// Where its fence stands: as a rule its time since 1970 in microseconds, or a little more.
        fence: u64,
    },
    /// Nothing was applied: the key is not there (any more).
    Gone,
    /// Nothing was applied: the lock was [revoked](crate::Locker::revoke) there. It ends with what
    /// the key had left to live then.
    Revoked,
    /// Nothing was applied: the node has lost what it had granted, or may have, and gives no vote
    /// before all of that has ended (see [`Durability::Volatile`](crate::Durability::Volatile)).
    #[non_exhaustive]
    Quarantined {
        /// For how long it gives none.
        remaining: Duration,
    },
    /// Nothing was applied: the node's deployment has another
    /// [`Durability`](crate::Durability) than this locker.
    #[non_exhaustive]
    DurabilityMismatch {
        /// The longest TTL of the deployment that the node belongs to; `None` if the node's epoch
        /// or quarantine key has an invalid value.
        longest_ttl: Option<Duration>,
    },
    /// The verdict fell before this node answered. It may still apply the command.
    Pending,
    /// The node did not answer in time. It may have applied the command.
    #[non_exhaustive]
    Silent {
        /// How long was waited.
        after: Duration,
    },
    /// The connection ended before the reply. The command may have been applied.
    Disconnected,
    /// The server refused with an error that says that nothing was applied.
    #[non_exhaustive]
    Refused {
        /// The server's words, shortened, with control characters escaped.
        error: Box<str>,
    },
    /// The server answered an error that leaves open whether the command was applied.
    #[non_exhaustive]
    Failed {
        /// The server's words, shortened, with control characters escaped.
        error: Box<str>,
    },
    /// Nothing was sent: there is no connection to this node.
    #[non_exhaustive]
    Down {
        /// Why there is none.
        fault: Fault,
    },
    /// Nothing was sent: the node has not answered an earlier command in time, and no task waits
    /// for it again before it does.
    Suspect,
    /// Nothing was sent: too much is waiting for this node already.
    Full,
    /// Nothing was sent: there was nothing to do on this node.
    NotAsked,
}

impl Outcome {
    /// Why there is no connection to the node, where that is what became of the command.
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Down { fault } => Some(fault),
            _ => None,
        }
    }

    /// The node answered, one way or the other, and its answer counts.
    pub(crate) fn is_answer(&self) -> bool {
        matches!(self, Self::Connected | Self::Granted | Self::Held | Self::Gone | Self::Revoked)
    }

    /// The node may have applied the command: it gave no answer that says so, or that denies it.
    pub(crate) fn is_unknown(&self) -> bool {
        matches!(
            self,
            Self::Pending | Self::Silent { .. } | Self::Disconnected | Self::Failed { .. }
        )
    }

    /// The node refused us for want of a right or the right password.
    pub(crate) fn is_authentication(&self) -> bool {
        match self {
            Self::Refused { error } => ServerError::new(error.as_bytes()).is_authentication(),
            Self::Failed { error } => ServerError::new(error.as_bytes()).is_forbidden_in_script(),
            Self::Down { fault } => {
                matches!(fault, Fault::Authentication { .. } | Fault::Anonymous)
            }
            _ => false,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connected => f.write_str("is connected"),
            Self::Granted => f.write_str("granted it"),
            Self::Held => f.write_str("says that another holds it"),
            Self::Unfenced { fence } => {
                write!(
                    f,
                    "granted it without a fence: its own stands at {fence} (is its clock right?)"
                )
            }
            Self::Gone => f.write_str("no longer has it"),
            Self::Revoked => f.write_str("says that it was revoked"),
            Self::Quarantined { remaining } => {
                write!(f, "has lost its keys and gives no vote for {}", Humane(*remaining))
            }
            Self::DurabilityMismatch { longest_ttl: Some(longest_ttl) } => {
                let longest_ttl = Humane(*longest_ttl);
                write!(f, "belongs to a `Volatile` deployment with a longest TTL of {longest_ttl}")
            }
            Self::DurabilityMismatch { longest_ttl: None } => {
                f.write_str("has an invalid value in its epoch or quarantine key")
            }
            Self::Pending => f.write_str("had not answered yet"),
            Self::Silent { after } => write!(f, "was silent for {}", Humane(*after)),
            Self::Disconnected => f.write_str("closed the connection before it answered"),
            Self::Refused { error } | Self::Failed { error } => f.write_str(&said(error)),
            Self::Down { fault } => fault.fmt(f),
            Self::Suspect => f.write_str("has not answered an earlier command yet"),
            Self::Full => f.write_str("has too many commands waiting (see `link_entries_max`)"),
            Self::NotAsked => f.write_str("was not asked"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_errors_say_what_to_do_and_unknown_ones_keep_their_words() {
        let noauth = Outcome::Refused { error: printable(b"NOAUTH Authentication required.") };
        assert_eq!(noauth.to_string(), "said NOAUTH (check the password)");
        assert!(noauth.is_authentication());
        let odd = Outcome::Failed { error: printable(b"ODD \x1b[2Jthing") };
        assert_eq!(odd.to_string(), r#"said "ODD \\x1b[2Jthing""#);
        assert!(!odd.is_authentication());
    }
}
