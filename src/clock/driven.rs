//! The clocks of a test: tokio's paused one, and what the test lets them run ahead of it.
//!
//! A simulated machine has one of these. While it stands still, so do its tasks: time passes, and
//! none of them is polled.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::Instant;

use super::{Clock, Moment, Stamp, nanoseconds};
use crate::sync::{Mutex, lock};

/// Far from zero, so that the wall clock can be set back.
const EPOCH: u64 = 1 << 60;

#[derive(Debug, Default)]
pub(crate) struct Driven {
    /// From when moments count: a run that counts from its own start is the same each time.
    pub(super) origin: Option<Instant>,
    steady_ahead: AtomicU64,
    wall_ahead: AtomicI64,
    /// How much faster than tokio's clock the clocks of leases run, in millionths.
    rate: AtomicI64,
    still: AtomicBool,
    /// Tasks that were to be polled while the machine stood still.
    waiting: Mutex<Vec<Waker>>,
}

impl Driven {
    /// A clock, and the handle that drives it.
    pub(crate) fn clock() -> (Clock, Arc<Self>) {
        Self::of(Self::default())
    }

    /// As [`Driven::clock`], counting from `origin`.
    pub(crate) fn since(origin: Instant) -> (Clock, Arc<Self>) {
        Self::of(Self { origin: Some(origin), ..Self::default() })
    }

    /// An origin: now.
    #[expect(clippy::disallowed_methods, reason = "the clock's own part, for tests")]
    pub(crate) fn origin() -> Instant {
        Instant::now()
    }

    fn of(driven: Self) -> (Clock, Arc<Self>) {
        let driven = Arc::new(driven);
        (Clock { driven: Some(driven.clone()) }, driven)
    }

    pub(super) fn stamp(&self, now: Moment) -> Stamp {
        let gained = i128::from(now.0) * i128::from(self.rate.load(SeqCst)) / 1_000_000;
        let now = now.0.saturating_add_signed(i64::try_from(gained).unwrap_or_default());
        let wall = (EPOCH + now).saturating_add_signed(self.wall_ahead.load(SeqCst));
        Stamp { steady: now + self.steady_ahead.load(SeqCst), wall }
    }

    /// The machine is suspended: all clocks of the world go on, tokio's does not.
    pub(crate) fn suspend(&self, duration: Duration) {
        self.steady_ahead.fetch_add(nanoseconds(duration), SeqCst);
        self.step_wall(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX));
    }

    /// Sets the wall clock ahead, or back.
    pub(crate) fn step_wall(&self, nanos: i64) {
        self.wall_ahead.fetch_add(nanos, SeqCst);
    }

    /// From the beginning the clocks run faster than true time by so many millionths.
    pub(crate) fn run_at(&self, rate: i64) {
        self.rate.store(rate, SeqCst);
    }

    /// Stops the machine, or lets it go on.
    pub(crate) fn stand_still(&self, still: bool) {
        self.still.store(still, SeqCst);
        if !still {
            let waiting = std::mem::take(&mut *lock(&self.waiting));
            waiting.into_iter().for_each(Waker::wake);
        }
    }
}

impl Clock {
    /// A task of whoever has this clock: it stands still while its machine does.
    pub(crate) fn attend<T: Future>(&self, task: T) -> Attended<T> {
        Attended { machine: self.driven.clone(), task: Box::pin(task) }
    }
}

/// A task that stands still with its machine.
pub(crate) struct Attended<T> {
    machine: Option<Arc<Driven>>,
    task: Pin<Box<T>>,
}

impl<T: Future> Future for Attended<T> {
    type Output = T::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T::Output> {
        if let Some(machine) = self.machine.as_ref().filter(|machine| machine.still.load(SeqCst)) {
            lock(&machine.waiting).push(cx.waker().clone());
            return Poll::Pending;
        }
        self.task.as_mut().poll(cx)
    }
}
