//! Those that stand in the queues of a majority, for a lock in strict order.

use std::collections::{BTreeMap, BTreeSet};

/// Those that stand on a majority.
#[derive(Default)]
pub(super) struct Tickets {
    /// By the keys and values, since when, in nanoseconds of true time.
    pub(super) standing: BTreeMap<(String, String), u64>,
    /// Values that have asked for a lock in strict order, and had it.
    had: BTreeSet<String>,
}

impl Tickets {
    /// There is a fault.
    pub(super) fn forget(&mut self) {
        self.standing.clear();
    }

    /// This value was had in strict order.
    pub(super) fn note_had(&mut self, value: &str) {
        self.had.insert(value.into());
    }

    /// Whether this value was had in strict order: it stays in the queues for a while.
    pub(super) fn was_had(&self, value: &str) -> bool {
        self.had.contains(value)
    }
}
