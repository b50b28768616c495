//! Futures and guards dropped anywhere: no key is left, and nobody gets another's reply.

use std::future::IntoFuture;
use std::time::Duration;

use crate::support::{Fleet, PollTimes, eventually, need_server, poll_times};
use crate::{builder, connected};

const SIZES: [usize; 3] = [1, 3, 5];

/// More polls than any of these operations ever needs.
const POLLS_MAX: usize = 64;

#[tokio::test]
async fn an_acquire_dropped_at_every_poll_leaves_no_key() {
    need_server!();
    for size in SIZES {
        let fleet = Fleet::start(size);
        let locker = connected(builder(&fleet)).await;
        let mut completed = false;
        for polls in 0..POLLS_MAX {
            let acquire = locker.lock("k").into_future();
            match poll_times(acquire, polls).await {
                PollTimes::Completed(guard) => {
                    drop(guard.unwrap());
                    completed = true;
                }
                PollTimes::Dropped => {}
            }
            eventually("no key is left", || fleet.keys_left("").is_empty());
            if completed {
                break;
            }
        }
        assert!(completed);
    }
}

#[tokio::test]
async fn a_release_dropped_at_every_poll_leaves_no_key() {
    need_server!();
    for size in SIZES {
        let fleet = Fleet::start(size);
        let locker = connected(builder(&fleet)).await;
        let mut completed = false;
        for polls in 0..POLLS_MAX {
            let guard = locker.lock("k").await.unwrap();
            let ended = poll_times(guard.release(), polls).await;
            eventually("no key is left", || fleet.keys_left("").is_empty());
            if let PollTimes::Completed(found) = ended {
                assert!(found.unwrap().is_released());
                completed = true;
                break;
            }
        }
        assert!(completed);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn an_acquire_dropped_while_nodes_hang_leaves_no_key_when_they_answer_again() {
    need_server!();
    for size in SIZES {
        let fleet = Fleet::start(size);
        let locker = connected(builder(&fleet)).await;
        for server in fleet.iter() {
            server.pause();
        }
        for polls in 1..4 {
            let acquire = locker.lock(format!("k{polls}")).into_future();
            let ended = tokio::time::timeout(Duration::from_millis(20), poll_times(acquire, polls));
            // Either way the future is gone, with its commands sent and unanswered.
            drop(ended.await);
        }
        for server in fleet.iter() {
            server.resume();
        }
        eventually("no key is left", || fleet.keys_left("").is_empty());
    }
}

#[tokio::test]
async fn drop_then_try_at_once_succeeds_every_time() {
    need_server!();
    for size in SIZES {
        let fleet = Fleet::start(size);
        let locker = connected(builder(&fleet)).await;
        for round in 0..500 {
            let guard = locker.lock("k").try_acquire().await.unwrap();
            assert!(guard.is_some(), "{size} nodes, round {round}");
            drop(guard);
        }
    }
}

#[tokio::test]
async fn a_waiter_that_is_dropped_leaves_no_key() {
    need_server!();
    let fleet = Fleet::start(5);
    let locker = connected(builder(&fleet)).await;
    let guard = locker.lock("k").await.unwrap();
    let waiting = tokio::time::timeout(Duration::from_millis(120), locker.lock("k").into_future());
    assert!(waiting.await.is_err());
    assert!(guard.release().await.unwrap().is_released());
    eventually("no key is left", || fleet.keys_left("").is_empty());
}

#[tokio::test]
async fn a_locker_dropped_right_after_its_guard_still_delivers_the_release() {
    need_server!();
    for size in SIZES {
        let fleet = Fleet::start(size);
        for _ in 0..20 {
            let locker = connected(builder(&fleet)).await;
            let guard = locker.lock("k").await.unwrap();
            drop(guard);
            drop(locker);
            eventually("no key is left", || fleet.keys_left("").is_empty());
        }
        let connections =
            || fleet.iter().all(|server| server.info("connected_clients").as_deref() == Some("1"));
        // The driver has ended with its last locker: only the question's own connection is left.
        eventually_yielding("the connections are closed", connections).await;
    }
}

async fn eventually_yielding(what: &str, condition: impl Fn() -> bool) {
    crate::support::eventually_async(what, async || condition()).await;
}
