//! The end of a locker: who waits is told, who holds is told, and nothing is left.

use std::time::Duration;

use support::{Fleet, eventually_async, need_server};

use super::{expired, held_by_all, held_by_none};
use crate::{builder, connected};

const PATIENCE: Duration = Duration::from_secs(5);

#[tokio::test]
async fn case_30_a_shutdown_fails_waiters_and_signals_holders() {
    need_server!();
    for size in [1, 5] {
        let fleet = Fleet::start(size);
        let (locker, other) = (connected(builder(&fleet)).await, connected(builder(&fleet)).await);
        let theirs = other.lock("theirs").await.unwrap();
        let mut guards = Vec::new();
        for name in ["a", "b", "c"] {
            guards.push(locker.lock(name).await.unwrap());
        }
        let waiters: Vec<_> = ["a", "theirs"]
            .map(|name| {
                let request = locker.lock(name).wait_forever();
                tokio::spawn(async move { request.await.unwrap_err() })
            })
            .into_iter()
            .collect();
        let mut losses = Vec::new();
        for guard in guards {
            losses.push(tokio::spawn(async move {
                guard.lost().await;
                guard
            }));
        }
        // One turn for each, so that they wait when the end comes.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        let found = locker.shutdown(PATIENCE).await.unwrap();
        assert!(found.is_complete() && found.released == 3 && found.left.is_empty(), "{found:?}");
        for waiter in waiters {
            let error = waiter.await.unwrap();
            assert!(error.is_closed(), "{error}");
        }
        for loss in losses {
            let guard = loss.await.unwrap();
            assert!(!guard.is_valid());
            assert!(guard.extend(PATIENCE).await.is_err());
        }
        assert!(locker.lock("d").try_acquire().await.unwrap_err().is_closed());
        assert!(theirs.is_valid(), "another locker's is its own");
        assert!(theirs.release().await.unwrap().is_released());
        eventually_async("no key is left", async || fleet.keys_left("").is_empty()).await;
    }
}

/// A node that hangs has not deleted its key, though the others have: that is owed to it.
#[tokio::test]
async fn a_shutdown_is_complete_only_when_every_node_has_deleted_its_key() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker = connected(builder(&fleet)).await;
    let _guard = locker.lock("k").await.unwrap();
    held_by_all(&fleet).await;
    fleet[2].pause();
    let found = locker.shutdown(Duration::from_millis(300)).await.unwrap();
    assert!(!found.is_complete() && found.owed > 0, "{found:?}");
    fleet[2].resume();
    let found = locker.shutdown(PATIENCE).await.unwrap();
    assert!(found.is_complete() && found.owed == 0, "{found:?}");
    assert_eq!(fleet.keys_left(""), []);
}

/// What is left on purpose stays until its TTL, and its holders are told all the same.
#[tokio::test]
async fn case_30_a_shutdown_that_leaves_the_locks_signals_holders() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker = connected(builder(&fleet)).await;
    let guard = locker.lock("k").ttl(Duration::from_secs(1)).await.unwrap();
    held_by_all(&fleet).await;
    let found = locker.shutdown_leaving(PATIENCE).await.unwrap();
    assert!(found.released == 0 && found.left.len() == 1, "{found:?}");
    guard.lost().await;
    assert!(!guard.is_valid());
    drop(guard);
    held_by_none(&fleet).await;
    assert_eq!(expired(&fleet), 3, "no client deleted it");
}
