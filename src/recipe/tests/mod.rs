//! Recipes on nodes in memory, under a paused clock: where a promise names a time, it is exact.

mod cached;
mod elect;
mod idempotent;
mod limit;
mod once;
mod until;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use crate::client::Client;
use crate::clock::Clock;
use crate::testing::Nodes;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Lets time pass, and all that is due in it be done.
async fn pass(time: Duration) {
    let clock = Clock::default();
    clock.sleep_until(clock.now().plus(time)).await;
}

/// Another server, which keeps what the recipes store, and a client of it.
fn store() -> (Nodes, Client) {
    let store = Nodes::new(1);
    let client = Client::in_memory(Arc::new(store.clone())).unwrap();
    (store, client)
}

/// All of them at once, in one task.
async fn all_at_once<T>(count: usize, start: impl AsyncFn(usize) -> T) -> Vec<T> {
    let mut running: Vec<_> = (0..count).map(|number| Box::pin(start(number))).collect();
    let mut ended: Vec<Option<T>> = running.iter().map(|_| None).collect();
    poll_fn(|cx| {
        for (future, ended) in running.iter_mut().zip(&mut ended).filter(|(_, it)| it.is_none()) {
            if let Poll::Ready(value) = future.as_mut().poll(cx) {
                *ended = Some(value);
            }
        }
        match ended.iter().all(Option::is_some) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    ended.into_iter().flatten().collect()
}
