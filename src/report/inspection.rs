//! What a key holds: on each node, and by a majority.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Outcome;
use super::humane::Humane;
use crate::fence::Fence;

/// The client that holds a key, as far as the nodes told.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Holder {
    /// The holder's name, where its value carries one (ours does).
    pub owner: Option<Box<str>>,
    /// How long the key still lives unless it is extended.
    pub remaining: Duration,
    /// Readers hold the lock ([`Locker::read`](crate::Locker::read)), one or more: how many is not
    /// known, nor their names. What remains is that of the one that ends last.
    pub is_shared: bool,
    /// A guard of the same locker holds it. A task that waits for its own guard never gets the
    /// lock.
    pub is_own: bool,
    /// It was [revoked](crate::Locker::revoke): what remains is not extended any more.
    pub is_revoked: bool,
}

impl fmt::Display for Holder {
    /// `pay-api@web-7:812, 3.2 s left`; `a guard of this very locker, 3.2 s left`; `readers, 3.2 s
    /// left`; `pay-api@web-7:812, revoked, 3.2 s left`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let owner = match self {
            Self { is_own: true, is_shared: true, .. } => "readers, this very locker among them",
            Self { is_own: true, .. } => "a guard of this very locker",
            Self { is_shared: true, .. } => "readers",
            _ => ANOTHER,
        };
        let owner = self.owner.as_deref().filter(|_| !self.is_own).unwrap_or(owner);
        let revoked = if self.is_revoked { " revoked," } else { "" };
        write!(f, "{owner},{revoked} {} left", Humane(self.remaining))
    }
}

/// A holder whose name is not known.
pub(crate) const ANOTHER: &str = "another client";

/// What the nodes hold under one key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inspection {
    /// Each node's answer, in the order in which the nodes were given.
    pub nodes: Vec<NodeInspection>,
    /// How many nodes make a majority.
    pub majority: usize,
    /// Who holds the lock: the one value that a majority has.
    holder: Option<Holder>,
    fence: Option<Fence>,
}

/// What one node holds under a key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NodeInspection {
    /// The node's address as given, without user and password.
    pub node: Arc<str>,
    /// What it holds.
    pub state: KeyState,
}

/// What a node holds under a key.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum KeyState {
    /// Nothing.
    Free,
    /// A lock.
    Held(Holder),
    /// Something that no lock wrote: another type than a string, or a string that never expires.
    #[non_exhaustive]
    Foreign {
        /// In words: `a hash, without expiry`.
        what: Box<str>,
    },
    /// The node did not tell.
    Unknown(Outcome),
}

impl Inspection {
    pub(crate) fn new(
        nodes: Vec<NodeInspection>,
        majority: usize,
        holder: Option<Holder>,
        fence: Option<Fence>,
    ) -> Self {
        Self { nodes, majority, holder, fence }
    }

    /// The fence that a majority of the nodes has reached: the holder's, if its lock is
    /// [fenced](crate::LockRequest::fenced), or that of the last holder whose lock was. `None`
    /// where none was within a week, and where too few nodes told.
    #[must_use]
    pub fn fence(&self) -> Option<Fence> {
        self.fence
    }

    /// Who holds the lock: whose value a majority of the nodes has. `None` when no client has one,
    /// because the lock is free, or because several clients hold parts of it.
    #[must_use]
    pub fn holder(&self) -> Option<&Holder> {
        self.holder.as_ref()
    }

    /// How many nodes hold nothing under the key.
    #[must_use]
    pub fn free(&self) -> usize {
        self.nodes.iter().filter(|node| node.state == KeyState::Free).count()
    }

    /// The foreign value that blocks this key on so many nodes that no lock can be acquired.
    pub(crate) fn foreign(&self) -> Option<&str> {
        let mut foreign = self.nodes.iter().filter_map(|node| match &node.state {
            KeyState::Foreign { what } => Some(&**what),
            _ => None,
        });
        let first = foreign.next()?;
        (1 + foreign.count() > self.nodes.len() - self.majority).then_some(first)
    }

    /// Whether readers have the key on some node.
    pub(crate) fn are_readers_there(&self) -> bool {
        let is_shared =
            |state: &KeyState| matches!(state, KeyState::Held(holder) if holder.is_shared);
        self.nodes.iter().any(|node| is_shared(&node.state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_without_a_name_is_another_client() {
        let holder = Holder {
            owner: None,
            remaining: Duration::from_millis(70),
            is_shared: false,
            is_own: false,
            is_revoked: false,
        };
        assert_eq!(holder.to_string(), "another client, 70 ms left");
        let revoked = Holder { is_revoked: true, ..holder };
        assert_eq!(revoked.to_string(), "another client, revoked, 70 ms left");
    }
}
