//! How many handles a hold has: it ends with the last one.

use std::mem;
use std::sync::{Arc, OnceLock};

use crate::sync::atomic::{AtomicUsize, Ordering};

/// How many handles a hold has, as one of them knows it.
pub(super) struct HandleCount {
    /// How many there are; not counted while there never was another.
    count: OnceLock<Arc<AtomicUsize>>,
    is_over: bool,
}

impl HandleCount {
    /// The only one.
    #[inline]
    pub(super) const fn one() -> Self {
        Self { count: OnceLock::new(), is_over: false }
    }

    pub(super) fn another(&self) -> Self {
        let count = self.count.get_or_init(|| Arc::new(AtomicUsize::new(1)));
        // Ordering: as `Arc::clone`: this handle lives, so the count is one at least.
        count.fetch_add(1, Ordering::Relaxed);
        Self { count: OnceLock::from(count.clone()), is_over: false }
    }

    pub(super) fn has_others(&self) -> bool {
        // Ordering: where there are none any more, what they did comes before what follows.
        self.count.get().is_some_and(|count| count.load(Ordering::Acquire) > 1)
    }

    /// Ends this handle, once; `true` if it was the last, and the hold ends with it.
    #[inline]
    pub(super) fn end(&mut self) -> bool {
        if mem::replace(&mut self.is_over, true) {
            return false;
        }
        // Ordering: what was done with the other handles comes before what the last one does.
        self.count.get().is_none_or(|count| count.fetch_sub(1, Ordering::AcqRel) == 1)
    }
}
