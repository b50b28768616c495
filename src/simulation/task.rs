//! What every task of a machine does: begin, wait, and give up.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::world::Hub;
use crate::clock::Clock;

pub(super) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Begins a task of a machine's that must come to its end.
pub(super) fn begin(
    hub: &Arc<Hub>,
    machine: usize,
    clock: &Clock,
    task: impl Future<Output = ()> + Send + 'static,
) {
    hub.with(|world| world.machines[machine].begin_work());
    let hub = hub.clone();
    #[expect(clippy::disallowed_methods, reason = "the user's own tasks")]
    tokio::spawn(clock.accompany(async move {
        task.await;
        hub.with(|world| world.machines[machine].end_work());
    }));
}

/// Polls a future so many times at most, and for so long; `None`: it was dropped before its end.
/// `None` for the polls, or for the patience, is without such a bound.
pub(super) async fn cut<T: Future>(
    hub: &Hub,
    (mut polls, patience): (Option<u64>, Option<u64>),
    task: T,
) -> Option<T::Output> {
    let mut task = pin!(task);
    let mut bored = pin!(hub.sleep(patience.unwrap_or(1_000_000)));
    poll_fn(|cx| {
        if polls == Some(0) || bored.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        polls = polls.map(|polls| polls - 1);
        task.as_mut().poll(cx).map(Some)
    })
    .await
}
