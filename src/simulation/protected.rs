//! What the locks protect: under which fences it is written, and what a store would do that
//! compares them.
//!
//! A holder is *later* than another one if it asked for the lock after that one had got its fence.
//! Of two that asked at the same time neither is. A write is *late* if a later holder has written.
//! The store takes a write whose fence is not below the highest that has written: so, if later
//! holders have higher fences, it takes none that is late.

use std::collections::BTreeMap;

use super::violation::{Kind, Violation};

/// A holder of a key whose lock is fenced.
#[derive(Clone, Copy)]
struct Holder {
    /// When it asked for the lock, and had it, in nanoseconds of true time.
    asked: u64,
    got: u64,
}

/// What one key protects.
#[derive(Default)]
struct Record {
    /// All who had a fence, by that.
    holders: BTreeMap<u64, Holder>,
    /// Times, and the highest fence that a holder had by then.
    highest: Vec<(u64, u64)>,
    /// The highest fence that the store has accepted.
    accepted: u64,
    /// The latest time at which a holder asked for its lock whose write was done.
    latest_written: u64,
    /// The same of those that have tried to write.
    latest_tried: u64,
}

/// What all keys protect.
#[derive(Default)]
pub(super) struct Protected {
    keys: BTreeMap<String, Record>,
    /// Writes that came too late, and were refused.
    pub(super) refused: u64,
}

impl Protected {
    /// A holder has its fence. Says what is wrong with that.
    pub(super) fn begin(
        &mut self,
        key: &str,
        fence: u64,
        (asked, got): (u64, u64),
    ) -> Option<Violation> {
        let record = self.keys.entry(key.into()).or_default();
        let before = record.highest.iter().rfind(|(at, _)| *at < asked);
        let before = before.map_or(0, |(_, highest)| *highest);
        let is_new = record.holders.insert(fence, Holder { asked, got }).is_none();
        let highest = record.highest.last().map_or(0, |(_, highest)| *highest);
        record.highest.push((got, highest.max(fence)));
        if !is_new {
            let what = format!("two holders of `{key}` have the fence {fence}");
            return Some(Violation { kind: Kind::FenceTwice, what });
        }
        (fence <= before).then(|| {
            let what = format!(
                "the fence {fence} of `{key}` is below {before}, which was there when it was asked \
                 for"
            );
            Violation { kind: Kind::FenceTooLow, what }
        })
    }

    /// The holder with this fence writes. Says what is wrong with what the store does.
    pub(super) fn write(&mut self, key: &str, fence: u64) -> Option<Violation> {
        let record = self.keys.get_mut(key)?;
        let Holder { asked, got } = *record.holders.get(&fence)?;
        let is_late = record.latest_tried > got;
        record.latest_tried = record.latest_tried.max(asked);
        if fence < record.accepted {
            self.refused += u64::from(is_late);
            return None;
        }
        let is_stale = record.latest_written > got;
        record.accepted = fence;
        record.latest_written = record.latest_written.max(asked);
        is_stale.then(|| {
            let what = format!("a write of `{key}` under the fence {fence} is done, and is late");
            Violation { kind: Kind::LateWrite, what }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(violation: Option<Violation>) -> Option<Kind> {
        violation.map(|violation| violation.kind)
    }

    #[test]
    fn a_later_holders_fence_must_be_higher() {
        let mut protected = Protected::default();
        assert_eq!(kind(protected.begin("k", 10, (0, 5))), None);
        assert_eq!(kind(protected.begin("k", 9, (4, 8))), None, "they asked at the same time");
        assert_eq!(kind(protected.begin("k", 9, (4, 9))), Some(Kind::FenceTwice));
        assert_eq!(kind(protected.begin("k", 8, (6, 12))), Some(Kind::FenceTooLow));
        assert_eq!(kind(protected.begin("k", 11, (6, 13))), None);
        assert_eq!(kind(protected.begin("other", 1, (20, 21))), None);
    }

    #[test]
    fn a_late_write_is_refused_or_found() {
        let mut protected = Protected::default();
        protected.begin("k", 10, (0, 5));
        protected.begin("k", 12, (6, 7));
        assert_eq!(kind(protected.write("k", 10)), None);
        assert_eq!(kind(protected.write("k", 12)), None);
        assert_eq!((kind(protected.write("k", 10)), protected.refused), (None, 1));
        // An earlier holder's fence that is higher is none that a store could refuse.
        protected.begin("k", 20, (0, 9));
        protected.begin("k", 13, (10, 11));
        assert_eq!(kind(protected.write("k", 13)), None);
        assert_eq!(kind(protected.write("k", 20)), Some(Kind::LateWrite));
    }
}
