//! What other processes compute anew: while they do, no reader of this one asks for the lock.

use std::collections::HashMap;
use std::time::Duration;

use crate::clock::Moment;
use crate::sync::{Mutex, lock};

/// For how long others are believed to compute, at most: they may have died.
const BELIEVED_MAX: Duration = Duration::from_secs(1);

/// The keys whose lock was found held, and until when that is believed.
#[derive(Default)]
pub(super) struct Others(Mutex<HashMap<Box<[u8]>, Moment>>);

impl Others {
    /// Another holds the lock of this key, for work that took so long the last time.
    pub(super) fn note(&self, key: &[u8], now: Moment, took: Duration) {
        let mut believed = lock(&self.0);
        believed.retain(|_, until| now < *until);
        believed.insert(key.into(), now.plus(took.min(BELIEVED_MAX)));
    }

    /// Whether others are believed to compute this key.
    pub(super) fn are_computing(&self, key: &[u8], now: Moment) -> bool {
        lock(&self.0).get(key).is_some_and(|until| now < *until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_believed_to_compute_for_as_long_as_it_takes() {
        let (others, now) = (Others::default(), Moment::from_nanos(0));
        let ms = Duration::from_millis;
        assert!(!others.are_computing(b"k", now));
        others.note(b"k", now, ms(200));
        others.note(b"long", now, ms(60_000));
        let compute = |key: &[u8], after| others.are_computing(key, now.plus(ms(after)));
        assert!(compute(b"k", 199) && !compute(b"k", 200) && !compute(b"other", 0));
        assert!(compute(b"long", 999) && !compute(b"long", 1_000));
        others.note(b"other", now.plus(ms(5_000)), ms(1));
        assert_eq!(lock(&others.0).len(), 1, "what is over is forgotten");
    }
}
