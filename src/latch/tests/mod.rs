//! Latches and barriers on nodes in memory, under a paused clock.

mod barrier;
mod broken;
mod cancelled;
mod count_down;
mod latch;

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use super::{Latch, LatchState};
use crate::clock::{Clock, Moment};
use crate::lock::Locker;
use crate::testing::Nodes;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Lets time pass, and all that is due in it be done.
async fn pass(time: Duration) {
    let clock = Clock::default();
    clock.sleep_until(clock.now().plus(time)).await;
}

fn now() -> Moment {
    Clock::default().now()
}

fn locker(nodes: &Nodes) -> Locker {
    nodes.locker().build().unwrap()
}

fn latch(nodes: &Nodes, parties: usize) -> Latch {
    locker(nodes).latch("l", parties).unwrap()
}

/// Whether no node has it any more.
fn is_gone(nodes: &Nodes) -> bool {
    nodes.iter().all(|node| node.keys().is_empty())
}

/// How it stands with so many missing.
fn closed(missing: usize) -> LatchState {
    LatchState::Closed { missing }
}

/// A future that is polled together with others.
type Running<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Polls all of them until time has passed, and says which have ended.
async fn ended_within<T>(time: Duration, running: &mut [Running<'_, T>]) -> Vec<bool> {
    let mut ended = vec![false; running.len()];
    let mut passed = Box::pin(pass(time));
    poll_fn(|cx| {
        for (future, ended) in running.iter_mut().zip(&mut ended).filter(|(_, it)| !**it) {
            *ended = future.as_mut().poll(cx).is_ready();
        }
        match ended.iter().all(|it| *it) {
            true => Poll::Ready(()),
            false => passed.as_mut().poll(cx),
        }
    })
    .await;
    ended
}
