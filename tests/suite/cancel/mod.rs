//! Futures and guards dropped anywhere: no key is left, and no request gets another's reply.

mod members;

use std::future::{Future, IntoFuture};
use std::time::Duration;

use support::{Fleet, PollTimes, Server, eventually, eventually_async, need_server, poll_times};

use crate::{builder, connected};

const SIZES: [usize; 3] = [1, 3, 5];

/// More polls than any of these operations ever needs.
const POLLS_MAX: usize = 64;

#[tokio::test]
async fn case_14_an_acquire_dropped_at_every_poll_leaves_no_key() {
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
async fn case_14_a_release_dropped_at_every_poll_leaves_no_key() {
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

/// What happens to the nodes while an operation is under way.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    /// Every node answers late.
    Slow,
    /// Every node stops, and goes on later.
    Hung,
    /// Half of the nodes stop, and go on later.
    HalfHung,
    /// The servers end all connections.
    Killed,
}

impl Trouble {
    const ALL: [Self; 4] = [Self::Slow, Self::Hung, Self::HalfHung, Self::Killed];

    fn begin(self, fleet: &Fleet) {
        match self {
            Self::Slow => {
                fleet.command(&["CLIENT", "PAUSE", "20", "ALL"]);
            }
            Self::Hung => fleet.iter().for_each(Server::pause),
            Self::HalfHung => fleet.iter().step_by(2).for_each(Server::pause),
            Self::Killed => {}
        }
    }

    fn end(self, fleet: &Fleet) {
        match self {
            Self::Slow => {}
            Self::Hung | Self::HalfHung => fleet.iter().for_each(Server::resume),
            Self::Killed => {
                fleet.cut_clients();
            }
        }
    }
}

/// Polls an operation so many times while the nodes are in trouble, drops it, and lets the nodes
/// recover: no key may be left.
async fn drop_in_trouble<F: Future>(fleet: &Fleet, trouble: Trouble, polls: usize, operation: F) {
    trouble.begin(fleet);
    // An operation that waits for a hung node is not woken for its next poll; dropping it then is
    // just as good a point as any.
    let patience = Duration::from_millis(30);
    drop(tokio::time::timeout(patience, poll_times(operation, polls)).await);
    trouble.end(fleet);
    let what = format!("{} nodes, {trouble:?}, {polls} polls: no key is left", fleet.len());
    eventually_async(&what, async || fleet.keys_left("").is_empty()).await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_14_operations_dropped_at_every_poll_in_every_trouble_leave_no_key() {
    need_server!();
    for size in SIZES {
        let fleet = Fleet::start(size);
        let locker = connected(builder(&fleet)).await;
        for trouble in Trouble::ALL {
            for polls in 0..5 {
                let acquire = locker.lock("k").into_future();
                drop_in_trouble(&fleet, trouble, polls, acquire).await;
                let guard = locker.lock("k").wait(Duration::from_secs(5)).await.unwrap();
                drop_in_trouble(&fleet, trouble, polls, guard.release()).await;
            }
        }
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
    eventually_async(what, async || condition()).await;
}
