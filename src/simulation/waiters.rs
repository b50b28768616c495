//! Those that wait for a lock, and what is seen of their locks and queues.

use std::collections::BTreeMap;

/// One that waits.
pub(super) struct Waiter {
    pub(super) machine: usize,
    pub(super) key: String,
    pub(super) since: u64,
}

/// All that wait for one lock, and what is seen of it.
#[derive(Default)]
pub(super) struct Waiters {
    pub(super) waiting: BTreeMap<u64, Waiter>,
    /// Since when a key is free.
    pub(super) free: BTreeMap<String, u64>,
    /// When a lock was last seen that stood on some of the nodes, and not on all.
    pub(super) partly: BTreeMap<String, u64>,
    /// Since when a place is left: its node, its queue, and its value.
    pub(super) left: BTreeMap<(usize, String, String), u64>,
    /// When all faults ended.
    pub(super) healed: Option<u64>,
    /// By how much the clocks of nodes were set back in all. Their queues last longer by that.
    pub(super) set_back: u64,
}

impl Waiters {
    pub(super) fn are_waiting_for(&self, key: &str) -> bool {
        self.waiting.values().any(|waiter| waiter.key == key)
    }

    /// One has got this lock.
    pub(super) fn served(&mut self, key: &str) {
        self.free.remove(key);
    }
}
