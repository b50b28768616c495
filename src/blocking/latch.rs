//! Latches and barriers for plain threads.

use std::time::Duration;

use super::park;
use crate::error::Error;
use crate::latch::{self, LatchState};

/// A latch, as [`crate::Latch`].
#[derive(Clone, Debug)]
pub struct Latch {
    latch: latch::Latch,
}

impl Latch {
    pub(super) fn new(latch: latch::Latch) -> Self {
        Self { latch }
    }

    /// As [`crate::Latch::ttl`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn ttl(self, ttl: Duration) -> Result<Self, Error> {
        self.latch.ttl(ttl).map(Self::new)
    }

    /// As [`crate::Latch::arrive`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn arrive(&self, name: impl AsRef<[u8]>) -> Result<LatchState, Error> {
        park::wait(self.latch.arrive(name))?
    }

    /// As [`crate::Latch::count_down`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn count_down(&self) -> Result<LatchState, Error> {
        park::wait(self.latch.count_down())?
    }

    /// As [`crate::Latch::arrive_and_wait`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn arrive_and_wait(&self, name: impl AsRef<[u8]>) -> Result<(), Error> {
        park::wait(self.latch.arrive_and_wait(name))?
    }

    /// As [`crate::Latch::state`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn state(&self) -> Result<LatchState, Error> {
        park::wait(self.latch.state())?
    }

    /// As [`crate::Latch::wait`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn wait(&self) -> Result<(), Error> {
        park::wait(self.latch.wait())?
    }

    /// As [`crate::Latch::wait_timeout`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn wait_timeout(&self, limit: Duration) -> Result<LatchState, Error> {
        park::wait(self.latch.wait_timeout(limit))?
    }
}

/// A barrier, as [`crate::Barrier`].
#[derive(Clone, Debug)]
pub struct Barrier {
    barrier: latch::Barrier,
}

impl Barrier {
    pub(super) fn new(barrier: latch::Barrier) -> Self {
        Self { barrier }
    }

    /// As [`crate::Barrier::ttl`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn ttl(self, ttl: Duration) -> Result<Self, Error> {
        self.barrier.ttl(ttl).map(Self::new)
    }

    /// As [`crate::Barrier::at_round`].
    #[must_use]
    pub fn at_round(self, round: u64) -> Self {
        Self::new(self.barrier.at_round(round))
    }

    /// As [`crate::Barrier::round`].
    #[must_use]
    pub fn round(&self) -> u64 {
        self.barrier.round()
    }

    /// As [`crate::Barrier::pass`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn pass(&mut self, name: impl AsRef<[u8]>) -> Result<u64, Error> {
        park::wait(self.barrier.pass(name))?
    }
    /// As [`crate::Barrier::pass_or_break`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn pass_or_break(&mut self, name: impl AsRef<[u8]>, wait: Duration) -> Result<u64, Error> {
        park::wait(self.barrier.pass_or_break(name, wait))?
    }
}
