//! Waiting on a thread for a future's output.

use std::cell::OnceCell;
use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::coop;

use crate::error::Error;

/// Tokio's cooperative budget: how often a task may proceed in one poll before it must yield. A
/// task never has more than this.
const BUDGET: u32 = 128;

/// Wakes a thread that is parked.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

thread_local! {
    /// One for each thread, so that waiting allocates nothing.
    static WAKER: OnceCell<Waker> = const { OnceCell::new() };
}

/// Waits until the future is done.
///
/// # Errors
///
/// [`is_misuse`](Error::is_misuse) on a thread that is polling futures.
pub(super) fn wait<F: Future>(future: F) -> Result<F::Output, Error> {
    refuse_polling()?;
    let Ok(done) = drive(future, || {
        thread::park();
        Ok::<(), Infallible>(())
    });
    Ok(done)
}

/// Waits until the future is done, no longer than `timeout`: then `None`.
///
/// # Errors
///
/// As [`wait`].
pub(super) fn wait_for<F: Future>(
    future: F,
    timeout: Duration,
) -> Result<Option<F::Output>, Error> {
    refuse_polling()?;
    let clock = crate::clock::Clock::default();
    let until = clock.now().plus(timeout);
    let done = drive(future, || {
        let left = until.since(clock.now());
        thread::park_timeout(left);
        if left.is_zero() { Err(()) } else { Ok(()) }
    });
    Ok(done.ok()) // the one error is that the time is over
}

/// Polls until the future is done, or `park` fails.
fn drive<F: Future, E>(future: F, mut park: impl FnMut() -> Result<(), E>) -> Result<F::Output, E> {
    let waker = WAKER.try_with(|waker| waker.get_or_init(new_waker).clone());
    // The thread is about to end, and its thread-locals are gone.
    let waker = waker.unwrap_or_else(|_| new_waker());
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
            return Ok(done);
        }
        park()?;
    }
}

fn new_waker() -> Waker {
    Waker::from(Arc::new(Unpark(thread::current())))
}

fn refuse_polling() -> Result<(), Error> {
    match is_polling() {
        true => Err(Error::misuse(
            "this thread is polling futures, and must not wait; use the async face of quorlock \
             here, or tokio's spawn_blocking",
        )),
        false => Ok(()),
    }
}

/// Whether tokio is polling a future on this thread. Tokio has no call for that; but what it polls
/// has a budget, and what runs by `spawn_blocking` or `block_in_place` has none.
fn is_polling() -> bool {
    Handle::try_current().is_ok() && is_limited(BUDGET)
}

/// Whether the budget is used up by taking `more + 1` units. All of them are given back on return.
fn is_limited(more: u32) -> bool {
    match coop::poll_proceed(&mut Context::from_waker(Waker::noop())) {
        Poll::Pending => true,
        Poll::Ready(_given_back) => more > 0 && is_limited(more - 1),
    }
}
