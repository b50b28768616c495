//! A hold as a client tells of it: begun, looked at, worked under, and given up.

use std::time::Duration;

use quorlock::{Error, Held, LockGuard, Release};
use tokio::time::sleep;

use super::{Journal, Stop};
use crate::clock;
use crate::line::{Line, Part};
use crate::random::Random;

/// What shows a hold's time: a guard, or what `run` lends.
pub(super) trait Lease {
    fn is_valid(&self) -> bool;
    fn remaining(&self) -> Duration;
    fn slots(&self) -> Vec<u16>;
    fn is_revoked(&self) -> bool;
}

impl Lease for LockGuard {
    fn is_valid(&self) -> bool {
        Self::is_valid(self)
    }
    fn remaining(&self) -> Duration {
        Self::remaining(self)
    }
    fn slots(&self) -> Vec<u16> {
        Self::slots(self)
    }
    fn is_revoked(&self) -> bool {
        Self::is_revoked(self)
    }
}

impl Lease for Held {
    fn is_valid(&self) -> bool {
        Self::is_valid(self)
    }
    fn remaining(&self) -> Duration {
        Self::remaining(self)
    }
    fn slots(&self) -> Vec<u16> {
        Self::slots(self).to_vec()
    }
    fn is_revoked(&self) -> bool {
        Self::is_revoked(self)
    }
}

/// The error's kind in one word; `None` where no fault explains it: misuse, a missing right.
pub(super) fn word(error: &Error) -> Option<&'static str> {
    let kinds = [
        (error.is_contended(), "contended"),
        (error.is_unavailable(), "unavailable"),
        (error.is_too_slow(), "too-slow"),
        (error.is_unknown(), "unknown"),
        (error.is_lost(), "lost"),
        (error.is_revoked(), "revoked-meanwhile"),
        (error.is_closed(), "closed"),
        (error.is_full(), "full"),
    ];
    kinds.iter().find(|(is, _)| *is).map(|(_, word)| *word)
}

/// Counts an error, or tells that no fault explains it.
pub(super) fn tell(journal: &Journal, error: &Error) {
    match word(error) {
        Some(word) => journal.count(word),
        None => journal.write(&Line::Broken(format!("no fault explains: {error}"))),
    }
}

/// Counts what a release found.
pub(super) fn tell_release(journal: &Journal, release: &Result<Release, Error>) {
    match release {
        Ok(Release::Released) => journal.count("released"),
        Ok(Release::Expired) => journal.count("expired"),
        Ok(Release::Taken) => journal.count("taken"),
        Ok(_) => journal.count("release-unknown"),
        Err(error) => tell(journal, error),
    }
}

/// Writes down that a lock was obtained, or a read lock, or slots, and gives the hold its number.
pub(super) fn begin(
    journal: &Journal,
    (key, reads): (&str, bool),
    lease: &impl Lease,
) -> Option<u64> {
    let at = clock::now();
    let remaining = lease.remaining();
    if remaining.is_zero() || !lease.is_valid() {
        // The clock is read after the deciding reply. The process may be stopped between that
        // reading and this one, but that is a matter of microseconds, and seldom.
        journal.count("late");
        return None;
    }
    let (hold, until, slots) = (journal.number(), at + clock::nanos(remaining), lease.slots());
    let part = match slots.is_empty() {
        true if reads => Part::Read,
        true => Part::Whole,
        false => Part::Slots(slots),
    };
    journal.write(&Line::Granted { hold, key: key.into(), part, at, until });
    Some(hold)
}

/// Writes down that it is still held; false when it is not.
pub(super) fn see(journal: &Journal, hold: u64, lease: &impl Lease) -> bool {
    let at = clock::now();
    let remaining = lease.remaining();
    let valid = !remaining.is_zero() && lease.is_valid();
    if valid {
        journal.write(&Line::Held { hold, at, until: at + clock::nanos(remaining) });
    }
    valid
}

/// Holds for a while, mostly a short one, and looks again and again. Half of those that are asked
/// to let go do so.
pub(super) async fn work(
    journal: &Journal,
    stop: &Stop,
    random: &mut Random,
    hold: u64,
    lease: &impl Lease,
    overstays: bool,
) {
    let longest = random.choose(&[2, 2, 10, 10, 30, 30, 100, 1_200]);
    let length = random.between(Duration::ZERO, Duration::from_millis(longest));
    let began = clock::now();
    let step = random.between(Duration::from_millis(1), Duration::from_millis(15));
    let heeds = random.percent(50);
    while !stop.is_set() && (overstays || clock::between(began, clock::now()) < length) {
        sleep(step).await;
        if !see(journal, hold, lease) {
            journal.count(if overstays { "overstayed" } else { "found-lost" });
            return;
        }
        if heeds && lease.is_revoked() {
            return journal.count("heeded");
        }
    }
}

/// The work under `run`: it ends, or is dropped, before the lock is released.
pub(super) struct Ending<'a> {
    pub(super) journal: &'a Journal,
    pub(super) number: u64,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        end(self.journal, self.number, "run");
    }
}

/// Writes down that the lock is about to be given up.
pub(super) fn end(journal: &Journal, hold: u64, how: &str) {
    journal.write(&Line::Ended { hold, at: clock::now(), how: how.into() });
}
