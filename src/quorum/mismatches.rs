//! Nodes that a locker may not acquire locks beside, and why.
//!
//! A node that belongs to another deployment is more than a missing vote: its presence says that
//! another client works with other rules, and then a majority of the others proves nothing. So one
//! is enough. A node is judged whenever a connection to it has shaken hands, and by each refusal of
//! a vote, however late that comes: an early verdict need not have waited for it. What was found
//! stands until the next handshake.

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, lock};

/// The reasons, by node.
pub(super) struct Mismatches {
    /// Whether there is one: spares every acquisition the lock.
    any: AtomicBool,
    reasons: Mutex<Box<[Option<Box<str>>]>>,
}

impl Mismatches {
    pub(super) fn new(nodes: usize) -> Self {
        Self { any: AtomicBool::new(false), reasons: Mutex::new(vec![None; nodes].into()) }
    }

    /// Enters what was found of a node.
    pub(super) fn set(&self, node: usize, reason: Option<Box<str>>) {
        let mut reasons = lock(&self.reasons);
        if let Some(entry) = reasons.get_mut(node) {
            *entry = reason;
        }
        // Ordering: before the connection opens, and so before any vote of that node.
        self.any.store(reasons.iter().any(Option::is_some), Ordering::Release);
    }

    /// The first mismatch and why it is one.
    pub(super) fn first(&self) -> Option<(usize, Box<str>)> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        let reasons = lock(&self.reasons);
        let mut found = reasons.iter().enumerate();
        found.find_map(|(node, reason)| Some((node, reason.clone()?)))
    }
}

#[cfg(all(test, not(quorlock_models)))]
mod tests {
    use super::*;

    #[test]
    fn one_misfit_is_enough_and_a_later_look_may_clear_it() {
        let mismatches = Mismatches::new(3);
        assert_eq!(mismatches.first(), None);
        mismatches.set(2, Some("two".into()));
        mismatches.set(0, None);
        assert_eq!(mismatches.first(), Some((2, "two".into())));
        mismatches.set(2, None);
        assert_eq!(mismatches.first(), None);
    }
}
