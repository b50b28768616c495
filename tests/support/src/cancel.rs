//! Dropping a future half-way, at a point the test chooses.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// What became of a future under [`poll_times`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollTimes<T> {
    /// It finished within the allowed polls.
    Completed(T),
    /// It had not, and was dropped.
    Dropped,
}

impl<T> PollTimes<T> {
    /// The output, if it finished.
    pub fn completed(self) -> Option<T> {
        match self {
            Self::Completed(output) => Some(output),
            Self::Dropped => None,
        }
    }
}

/// Polls `future` at most `polls` times, each time after it asked for it, then drops it.
///
/// The drop comes right after the last poll that was pending, before anything else of the task
/// runs. Counting `polls` up from 0 until it says `Completed` drops the future at every point where
/// it ever waits.
pub async fn poll_times<F: Future>(future: F, polls: usize) -> PollTimes<F::Output> {
    if polls == 0 {
        return PollTimes::Dropped;
    }
    Cancellable { future: Some(Box::pin(future)), polls_left: polls }.await
}

struct Cancellable<F> {
    /// Nothing once it has finished or been dropped.
    future: Option<Pin<Box<F>>>,
    polls_left: usize,
}

impl<F: Future> Future for Cancellable<F> {
    type Output = PollTimes<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let future = self.future.as_mut().expect("not polled after it was ready");
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            self.future = None;
            return Poll::Ready(PollTimes::Completed(output));
        }
        self.polls_left -= 1;
        if self.polls_left > 0 {
            return Poll::Pending;
        }
        self.future = None;
        Poll::Ready(PollTimes::Dropped)
    }
}
