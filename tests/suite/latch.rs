//! Latches and barriers on real servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use quorlock::{Latch, LatchState, Locker};
use support::wait::PATIENCE;
use support::{Fleet, Reply, need_process, need_server};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::{builder, connected};

async fn latch(fleet: &Fleet, parties: usize) -> Latch {
    connected(builder(fleet)).await.latch("l", parties).unwrap()
}

#[tokio::test]
async fn all_who_wait_go_on_when_the_last_party_arrives() {
    need_server!();
    for size in [1, 3] {
        let fleet = Fleet::start(size);
        let open = latch(&fleet, 3).await;
        let released_count = Arc::new(AtomicUsize::new(0));
        let mut waiting = JoinSet::new();
        for name in [None, Some("a"), Some("b")] {
            let (latch, released_count) = (latch(&fleet, 3).await, released_count.clone());
            waiting.spawn(async move {
                match name {
                    Some(name) => latch.arrive_and_wait(name).await.unwrap(),
                    None => latch.wait().await.unwrap(),
                }
                released_count.fetch_add(1, Ordering::SeqCst);
            });
        }
        let has_one_missing =
            async || matches!(open.state().await.unwrap(), LatchState::Closed { missing: 1, .. });
        support::eventually_async("two have arrived", has_one_missing).await;
        assert_eq!(released_count.load(Ordering::SeqCst), 0, "never early");
        assert!(open.arrive("c").await.unwrap().is_open());
        timeout(PATIENCE, waiting.join_all()).await.expect("all go on");
        let Reply::Int(left) = fleet[0].command(&["PTTL", "l"]) else { panic!("no PTTL") };
        assert!(left > 0, "it ends by itself");
    }
}

#[tokio::test]
async fn a_minority_that_is_gone_or_hangs_keeps_no_party_back() {
    need_process!();
    let fleet = Fleet::start(5);
    let (one, two) = (latch(&fleet, 2).await, latch(&fleet, 2).await);
    fleet[0].pause();
    fleet[1].stop();
    let waiting = tokio::spawn(async move { one.arrive_and_wait("a").await });
    let arrived =
        timeout(PATIENCE, two.arrive_and_wait("b")).await.expect("three of five are there");
    arrived.unwrap();
    timeout(PATIENCE, waiting).await.expect("it is told").unwrap().unwrap();
    fleet[0].resume();
}

#[tokio::test]
async fn parties_pass_a_barrier_round_by_round() {
    need_server!();
    let fleet = Fleet::start(3);
    let passed = Arc::new([const { AtomicUsize::new(0) }; 5]);
    let mut parties = JoinSet::new();
    for name in 0..3 {
        let mut barrier = connected(builder(&fleet)).await.barrier("b", 3).unwrap();
        let passed = passed.clone();
        parties.spawn(async move {
            for (round, count) in passed.iter().enumerate() {
                count.fetch_add(1, Ordering::SeqCst);
                assert_eq!(barrier.pass(name.to_string()).await.unwrap(), round as u64);
                assert_eq!(count.load(Ordering::SeqCst), 3, "all have come to round {round}");
            }
        });
    }
    timeout(4 * PATIENCE, parties.join_all()).await.expect("all pass");
}

/// What stands under the key is left as it is, and named.
#[tokio::test]
async fn a_lock_and_a_latch_of_one_key_refuse_each_other() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker: Locker = connected(builder(&fleet)).await;
    let latch = locker.latch("k", 2).unwrap();
    let guard = locker.lock("k").await.unwrap();
    let error = latch.arrive("a").await.unwrap_err();
    assert!(error.is_misuse(), "{error}");
    assert!(guard.release().await.unwrap().is_released());
    latch.arrive("a").await.unwrap();
    let error = locker.lock("k").wait(Duration::from_secs(1)).await.unwrap_err();
    assert!(error.is_foreign(), "{error}");
    assert!(matches!(latch.state().await.unwrap(), LatchState::Closed { missing: 1, .. }));
}

#[cfg(feature = "blocking")]
#[test]
fn plain_threads_use_latches_and_barriers() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker = Locker::quorum(fleet.urls()).unwrap().build_blocking().unwrap();
    let latch = locker.latch("l", 2).unwrap().ttl(Duration::from_secs(20)).unwrap();
    let waiting = {
        let latch = latch.clone();
        std::thread::spawn(move || latch.arrive_and_wait("a"))
    };
    assert!(!latch.wait_timeout(Duration::from_millis(1)).unwrap().is_open());
    assert!(latch.arrive("b").unwrap().is_open());
    waiting.join().unwrap().unwrap();
    assert!(latch.state().unwrap().is_open());
    latch.wait().unwrap();
    let mut barrier =
        locker.barrier("b", 1).unwrap().ttl(Duration::from_secs(20)).unwrap().at_round(3);
    assert_eq!((barrier.pass("a").unwrap(), barrier.round()), (3, 4));
}
