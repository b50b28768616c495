//! Which keys were wanted by several a moment ago.
//!
//! A locker that acquires a key again at once could be ahead of the one that it has just handed the
//! key to, which hears of that a round trip later. So where others were met within the last second,
//! the next acquisition goes to the queue first, and waits its turn there.
//!
//! A table of bounded size, without locks. Keys whose hashes fall on one place forget one another:
//! that costs an acquisition its order, or a round trip.

use std::time::Duration;

use crate::clock::Moment;
use crate::sync::atomic::{AtomicU64, Ordering};

/// For how long others are remembered.
const REMEMBERED: Duration = Duration::from_secs(1);

/// How many keys are remembered at most. A model needs no more than one.
const PLACES: usize = if cfg!(quorlock_models) { 1 } else { 1_024 };

/// How many bits of a word are the time, in milliseconds; those above are the key's.
const TIME_BITS: u32 = 40;

/// The keys at which others were met, and when.
pub(super) struct Contention(Box<[AtomicU64]>);

impl Contention {
    pub(super) fn new() -> Self {
        Self((0..PLACES).map(|_| AtomicU64::new(0)).collect())
    }

    /// Others were met at this key.
    pub(super) fn note(&self, hash: u64, now: Moment) {
        // Ordering: a hint, here and below.
        self.place(hash).store(word(hash, now), Ordering::Relaxed);
    }

    /// What was noted in this key's place is out of date.
    pub(super) fn forget(&self, hash: u64) {
        self.place(hash).store(0, Ordering::Relaxed);
    }

    /// Whether others were met at this key within the last second.
    pub(super) fn is_recent(&self, hash: u64, now: impl FnOnce() -> Moment) -> bool {
        let noted = self.place(hash).load(Ordering::Relaxed);
        if noted == 0 || noted >> TIME_BITS != word(hash, Moment::default()) >> TIME_BITS {
            return false;
        }
        let age = word(hash, now()).wrapping_sub(noted);
        u128::from(age) < REMEMBERED.as_millis()
    }

    fn place(&self, hash: u64) -> &AtomicU64 {
        &self.0[hash as usize % PLACES]
    }
}

fn word(hash: u64, at: Moment) -> u64 {
    let millis = at.as_nanos() / 1_000_000;
    (hash >> TIME_BITS << TIME_BITS) | (millis & ((1 << TIME_BITS) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_remembered_for_a_second_and_for_their_key() {
        let at = |millis: u64| Moment::from_nanos(millis * 1_000_000);
        let (contention, key) = (Contention::new(), 0x1234_5678_9abc_def0);
        let is_recent = |hash, millis| contention.is_recent(hash, || at(millis));
        assert!(!is_recent(key, 5));
        contention.note(key, at(5));
        assert!(is_recent(key, 5) && is_recent(key, 1_004) && !is_recent(key, 1_005));
        // On the same place, and on another one.
        assert!(!is_recent(key ^ 1 << 63, 5) && !is_recent(key ^ 1, 5));
        contention.forget(key);
        assert!(!is_recent(key, 5));
    }
}
