//! Trying again: how often, how soon, and when it is given up.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use quorlock::{Extend, Retry};
use support::wait::PATIENCE;
use support::{Fleet, eventually_async, need_server};

use crate::{builder, connected};

const MS: Duration = Duration::from_millis(1);

#[tokio::test]
async fn a_number_of_tries_ends_the_waiting_before_its_time_and_names_the_holder() {
    need_server!();
    let fleet = Fleet::start(3);
    let holder = connected(builder(&fleet).owner("first")).await;
    let _held = holder.lock("k").await.unwrap();
    let locker = connected(builder(&fleet).retry(Retry::fixed(MS).tries_max(4))).await;
    let error = locker.lock("k").wait_forever().await.unwrap_err();
    assert!(error.is_contended() && error.is_retryable(), "{error}");
    assert!(error.to_string().contains("; gave up after 4 tries in "), "{error}");
    assert_eq!(error.holder().unwrap().owner.as_deref(), Some(holder.owner()));
    let left = error.retry_after().unwrap();
    assert!(left > 5_000 * MS && left <= 10_000 * MS, "{left:?}");
}

#[tokio::test]
async fn the_callers_own_policy_is_asked_after_each_try_and_gives_up() {
    need_server!();
    let fleet = Fleet::start(1);
    let locker = connected(builder(&fleet)).await;
    let _held = locker.lock("k").await.unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let policy = {
        let asked = asked.clone();
        Retry::custom(move |tries| {
            asked.lock().unwrap().push(tries);
            (tries < 3).then_some(MS)
        })
    };
    let error = locker.lock("k").retry(policy).await.unwrap_err();
    assert!(error.is_contended() && error.holder().is_some(), "{error}");
    assert!(error.to_string().contains("after 3 tries"), "{error}");
    assert_eq!(*asked.lock().unwrap(), [1, 2, 3]);
}

#[tokio::test]
async fn the_callers_time_ends_the_waiting_whatever_the_policy_says() {
    need_server!();
    let fleet = Fleet::start(1);
    let locker = connected(builder(&fleet)).await;
    let _held = locker.lock("k").await.unwrap();
    let began = Instant::now();
    let policy = Retry::custom(|_| Some(3_600_000 * MS));
    let request = locker.lock("k").wait(1_000 * MS).retry(policy);
    let error = request.await.unwrap_err();
    assert!(error.is_contended(), "{error}");
    assert!(error.to_string().contains("after 2 tries"), "one more try at the end: {error}");
    assert!(began.elapsed() >= 1_000 * MS);
}

/// However long the policy would pause, a waiter is there when the holder's key ends.
#[tokio::test]
async fn no_pause_is_longer_than_the_holders_key_lives() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker = connected(builder(&fleet)).await;
    let began = Instant::now();
    let held = locker.lock("k").ttl(400 * MS).auto_extend(Extend::Off).await.unwrap();
    let request = locker.lock("k").wait_forever().retry(Retry::fixed(3_600_000 * MS));
    let guard = tokio::time::timeout(2 * PATIENCE, request.into_future()).await.unwrap().unwrap();
    // A server's milliseconds are whole ones.
    assert!(began.elapsed() >= 398 * MS, "{:?}", began.elapsed());
    assert!(!held.is_valid() && guard.is_valid());
}

/// A try that found no majority leaves nothing that would vote against the next.
#[tokio::test]
async fn without_a_quorum_the_nodes_are_tried_again_until_there_is_one() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker = connected(builder(&fleet)).await;
    fleet[0].stop();
    fleet[1].stop();
    let request = locker.lock("k").wait_forever().retry(Retry::exponential(5 * MS, 20 * MS));
    let waiting = tokio::spawn(async move { request.await.map(|guard| guard.is_valid()) });
    eventually_async("a node is known to be down", async || {
        locker
            .health()
            .iter()
            .any(|node| matches!(node.outcome, quorlock::report::Outcome::Down { .. }))
    })
    .await;
    assert!(!waiting.is_finished());
    fleet[1].restart();
    assert!(waiting.await.unwrap().unwrap());
}

#[tokio::test]
async fn a_policy_that_cannot_be_meant_is_refused_before_anything_is_sent() {
    let builder = || quorlock::Locker::single("redis://127.0.0.1:1").unwrap();
    let zero = Retry::fixed(Duration::ZERO);
    let error = builder().retry(zero.clone()).build().unwrap_err();
    assert!(error.is_misuse(), "{error}");
    let error = builder().build().unwrap().lock("k").retry(zero).await.unwrap_err();
    assert!(error.is_misuse(), "{error}");
    assert_eq!(error.retry_after(), None);
}
