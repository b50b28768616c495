//! The machines on which clients run: what befalls them, and what they are.

use std::sync::Arc;
use std::time::Duration;

use crate::Locker;
use crate::clock::Driven;

/// A client's machine, from its start to its end.
pub(super) struct Machine {
    /// Its place in the network. When it is gone another one takes that.
    pub(super) place: usize,
    pub(super) owner: String,
    /// How much faster than true time its clocks run, in millionths.
    pub(super) rate: i64,
    driven: Arc<Driven>,
    /// Kept here, so that it lives until everything has come to rest.
    locker: Option<Locker>,
    is_gone: bool,
    /// Its tasks that have not ended.
    workers: usize,
    /// It stands still.
    still_since: Option<u64>,
    /// For how long it has stood still before.
    still: u64,
}

impl Machine {
    pub(super) fn new(
        place: usize,
        owner: String,
        rate: i64,
        driven: Arc<Driven>,
        locker: Locker,
    ) -> Self {
        Self {
            place,
            owner,
            rate,
            driven,
            locker: Some(locker),
            is_gone: false,
            workers: 0,
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

    /// Its locker, at the end of everything.
    pub(super) fn take_locker(&mut self) -> Option<Locker> {
        self.locker.take()
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
