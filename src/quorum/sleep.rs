//! Sleeping, also where the caller has no runtime: on the driver's, if it has a thread of its own.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::time::Sleep;

use super::node_set::NodeSet;
use super::shared::Shared;
use crate::clock::Moment;
use crate::error::Error;
use crate::options::Driver;
use crate::sync::atomic::Ordering;
use crate::sync::lock;

/// Completes at a moment, or early where the runtime that would wake it has ended.
pub(crate) struct Timer {
    sleep: Pin<Box<Sleep>>,
    /// Whose runtime wakes it, and which of its drivers', where that is not the caller's.
    home: Option<(Arc<Shared>, u64)>,
}

impl NodeSet {
    /// Sleeps on the caller's runtime, or on the driver's own.
    pub(crate) fn sleep_until(&self, at: Moment) -> Result<Timer, Error> {
        let clock = self.clock();
        if clock.can_sleep() {
            return Ok(Timer { sleep: clock.sleep_until(at), home: None });
        }
        if self.shared.options.driver != Driver::Thread {
            return Err(Error::no_runtime());
        }
        self.ensure_driver()?;
        let driver = &self.shared.driver;
        // Under the lock, so that both are of one driver.
        let home = lock(&driver.home);
        let Some(runtime) = &*home else { return Err(Error::no_runtime()) };
        let _within = runtime.enter();
        let generation = driver.generation.load(Ordering::Acquire);
        Ok(Timer { sleep: clock.sleep_until(at), home: Some((self.shared.clone(), generation)) })
    }

    /// Sleeps until the moment is over, whatever becomes of runtimes meanwhile.
    pub(crate) async fn sleep_past(&self, end: Moment) -> Result<(), Error> {
        while self.clock().now() < end {
            self.sleep_until(end)?.await;
        }
        Ok(())
    }

    /// Whether [`NodeSet::sleep_until`] would sleep.
    pub(crate) fn can_sleep(&self) -> bool {
        self.clock().can_sleep() || self.shared.options.driver == Driver::Thread
    }
}

impl Future for Timer {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // A runtime that ends wakes those who sleep on it, and to ask it again would panic.
        let has_ended = self.home.as_ref().is_some_and(|(shared, generation)| {
            let driver = &shared.driver;
            !driver.running.load(Ordering::Acquire)
                || driver.generation.load(Ordering::Acquire) != *generation
        });
        if has_ended { Poll::Ready(()) } else { self.sleep.as_mut().poll(cx) }
    }
}
