//! The `rslock` crate on the same key as we, both ways.

use std::time::Duration;

use quorlock::Locker;
use support::{Fleet, eventually, need_process};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rslock_excludes_us_and_is_excluded_by_us() {
    need_process!();
    let fleet = Fleet::start(3);
    let locker = Locker::quorum(fleet.urls()).unwrap().build().unwrap();
    locker.ready(Duration::from_secs(5)).await.unwrap();
    let mut theirs = rslock::LockManager::new(fleet.urls());
    theirs.set_retry(1, Duration::from_millis(1));

    let guard = locker.lock("k").await.unwrap();
    eventually("all nodes have the key", || fleet.holders("k").len() == 3);
    assert!(theirs.lock("k", Duration::from_secs(60)).await.is_err());
    assert!(guard.release().await.unwrap().is_released());

    let lock = theirs.lock("k", Duration::from_secs(60)).await.unwrap();
    assert!(locker.lock("k").try_acquire().await.unwrap().is_none());
    theirs.unlock(&lock).await;
    eventually("theirs is released", || fleet.keys_left("").is_empty());
    assert!(locker.lock("k").try_acquire().await.unwrap().is_some());
}
