//! What is counted of acquisitions that wait. One that does not costs nothing.

use std::sync::Arc;

use crate::report::WaitStats;
use crate::sync::atomic::{AtomicU64, Ordering};

/// What has ended a sleep, as it is counted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cause {
    HandedOver,
    Changed,
    InLine,
    ByTime,
}

/// The counts of one locker and its clones.
#[derive(Default)]
pub(super) struct Counters {
    began: AtomicU64,
    ended: AtomicU64,
    tries: AtomicU64,
    woken: [AtomicU64; 4],
}

/// One that waits: it counts as waiting until this is dropped.
pub(super) struct Waiter {
    counters: Arc<Counters>,
    /// How often it has asked the nodes.
    pub(super) tries: u32,
}

impl Counters {
    /// One begins to wait that has asked the nodes so often.
    pub(super) fn wait(self: &Arc<Self>, tries: u32) -> Waiter {
        add(&self.began, 1);
        Waiter { counters: self.clone(), tries }
    }

    /// One that waits was woken.
    pub(super) fn note(&self, cause: Cause) {
        add(&self.woken[cause as usize], 1);
    }

    pub(super) fn read(&self) -> WaitStats {
        let woken = |cause: Cause| read(&self.woken[cause as usize]);
        // In this order, so that none has ended that has not begun.
        let (ended, began) = (read(&self.ended), read(&self.began));
        WaitStats {
            waiting: began.saturating_sub(ended),
            ended,
            tries: read(&self.tries),
            handed_over: woken(Cause::HandedOver),
            changed: woken(Cause::Changed),
            in_line: woken(Cause::InLine),
            by_time: woken(Cause::ByTime),
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        add(&self.counters.tries, self.tries.into());
        add(&self.counters.ended, 1);
    }
}

// Ordering: numbers for people.

fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_is_counted_until_it_does_no_more() {
        let counters = Arc::new(Counters::default());
        let (one, mut other) = (counters.wait(2), counters.wait(0));
        other.tries += 1;
        let counted = || (counters.read().waiting, counters.read().ended, counters.read().tries);
        assert_eq!(counted(), (2, 0, 0));
        drop(other);
        assert_eq!(counted(), (1, 1, 1));
        drop(one);
        assert_eq!(counted(), (0, 2, 3));
    }
}
