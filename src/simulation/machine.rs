//! The machines on which clients run: what they are, and what happens to them.

use std::sync::Arc;
use std::time::Duration;

use crate::Locker;
use crate::clock::{Clock, Driven};

/// A locker of this age, in milliseconds, is connected to all nodes without a fault.
pub(super) const SETTLED: u64 = 1_000;

/// A client's machine, from its start to its end.
pub(super) struct Machine {
    /// Its place in the network. When it is gone another one takes that.
    pub(super) place: usize,
    /// How much faster than true time its clocks run, in millionths.
    pub(super) rate: i64,
    pub(super) driven: Arc<Driven>,
    pub(super) clock: Clock,
    /// Kept here, so that it lives until everything has come to rest.
    locker: Option<Locker>,
    /// Lockers that were shut down before, and are still to deliver what they owe.
    old_lockers: Vec<Locker>,
    /// How many lockers it had before this one.
    pub(super) number: u64,
    /// From when on it has this one.
    pub(super) since: u64,
    /// The locker was shut down, or is about to be.
    is_closing: bool,
    is_gone: bool,
    /// Its tasks that have not ended.
    workers: usize,
    /// The lockers, by their numbers, that futures under way acquire or adopt with.
    acquiring: Vec<u64>,
    /// It stands still.
    still_since: Option<u64>,
    /// For how long it has stood still before.
    still: u64,
}

impl Machine {
    pub(super) fn new(
        (place, since): (usize, u64),
        rate: i64,
        (clock, driven): (Clock, Arc<Driven>),
        locker: Locker,
    ) -> Self {
        Self {
            place,
            rate,
            driven,
            clock,
            locker: Some(locker),
            old_lockers: Vec::new(),
            number: 0,
            since,
            is_closing: false,
            is_gone: false,
            workers: 0,
            acquiring: Vec::new(),
            still_since: None,
            still: 0,
        }
    }

    /// A task of its has begun.
    pub(super) fn begin_work(&mut self) {
        self.workers += 1;
    }

    pub(super) fn end_work(&mut self) {
        self.workers -= 1;
    }

    /// A future acquires or adopts with the locker of this number.
    pub(super) fn begin_to_acquire(&mut self, locker: u64) {
        self.acquiring.push(locker);
    }

    pub(super) fn end_to_acquire(&mut self, locker: u64) {
        let ended = self.acquiring.iter().position(|number| *number == locker);
        ended.map(|at| self.acquiring.swap_remove(at));
    }

    pub(super) fn is_acquiring(&self, locker: u64) -> bool {
        self.acquiring.contains(&locker)
    }

    /// How many of its tasks can still end.
    pub(super) fn workers_left(&self) -> usize {
        if self.is_gone { 0 } else { self.workers }
    }

    /// How long it has stood still by now.
    pub(super) fn stood_still(&self, now: u64) -> u64 {
        self.still + self.still_since.map_or(0, |since| now - since)
    }

    /// It stands still, unless it does already.
    pub(super) fn freeze(&mut self, now: u64) -> bool {
        let can = !self.is_gone && self.still_since.is_none();
        if can {
            self.still_since = Some(now);
            self.driven.stand_still(true);
        }
        can
    }

    /// It goes on, if it stood still.
    pub(super) fn thaw(&mut self, now: u64) -> bool {
        let Some(since) = self.still_since.filter(|_| !self.is_gone) else { return false };
        self.still += now - since;
        self.still_since = None;
        self.driven.stand_still(false);
        true
    }

    /// None of its tasks takes another step. `false`: that was so before.
    pub(super) fn crash(&mut self) -> bool {
        self.driven.stand_still(true);
        !std::mem::replace(&mut self.is_gone, true)
    }

    /// Its part is done, and nothing of it is left.
    pub(super) fn retire(&mut self) {
        self.is_gone = true;
        drop(self.locker.take());
    }

    /// Its lockers, at the end of everything.
    pub(super) fn take_lockers(&mut self) -> Vec<Locker> {
        let mut lockers = std::mem::take(&mut self.old_lockers);
        lockers.extend(self.locker.take());
        lockers
    }

    /// All its lockers that are there.
    pub(super) fn lockers(&self) -> impl Iterator<Item = Locker> + '_ {
        self.old_lockers.iter().chain(&self.locker).cloned()
    }

    /// Its locker, and how many it had before.
    pub(super) fn locker(&self) -> Option<(Locker, u64)> {
        self.locker.clone().map(|locker| (locker, self.number))
    }

    pub(super) fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// Its locker is about to be shut down.
    pub(super) fn close(&mut self) {
        self.is_closing = true;
    }

    /// Whether the locker of this number was shut down, or is about to be.
    pub(super) fn has_closed(&self, number: u64) -> bool {
        number < self.number || self.is_closing
    }

    /// It has another locker now. The old one goes on delivering what it owes, if `keeps` says so.
    pub(super) fn renew(&mut self, locker: Locker, now: u64, keeps: bool) -> Option<Locker> {
        self.number += 1;
        self.is_closing = false;
        self.since = now;
        let old = self.locker.replace(locker);
        if keeps {
            self.old_lockers.extend(old);
            return None;
        }
        old
    }

    /// It was suspended for so long: its clocks went on.
    pub(super) fn suspend(&self, millis: u64) {
        self.driven.suspend(Duration::from_millis(millis));
    }

    /// Its wall clock is set by so many milliseconds.
    pub(super) fn step_wall(&self, millis: i64) {
        self.driven.step_wall(millis * 1_000_000);
    }
}
