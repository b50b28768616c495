//! Several handles of one lock, and locks within a lock: the rows `share` and `within` of
//! the manual's table.

use quorlock::{LockGuard, LockRequest, Locker, Release};
use support::in_process::Inside;
use support::wait::PATIENCE;
use support::{Fleet, eventually_async, need_process, need_server};

use crate::native::{self, valkey};
use crate::waiting::{hearing, waits};
use crate::{builder, connected, quorum};

/// It is held until the last handle is released, and once.
async fn ends_with_the_last(guard: LockGuard, other: impl Fn() -> LockRequest) {
    let second = guard.share();
    assert!(matches!(guard.release().await.unwrap(), Release::Shared));
    let third = second.share();
    drop(second);
    assert!(other().try_acquire().await.unwrap().is_none());
    assert!(third.release().await.unwrap().is_released());
    // Where it was released by a majority, the others follow.
    assert!(other().wait(PATIENCE).await.unwrap().release().await.unwrap().is_released());
}

async fn two() -> (Fleet, Locker, Locker) {
    let fleet = Fleet::start(3);
    let (one, other) = (connected(builder(&fleet)).await, connected(builder(&fleet)).await);
    (fleet, one, other)
}

#[tokio::test]
async fn one_key_is_released_with_the_last_handle() {
    need_server!();
    let (_fleet, one, other) = two().await;
    ends_with_the_last(one.lock("k").await.unwrap(), || other.lock("k")).await;
}

#[tokio::test]
async fn several_keys_are_released_with_the_last_handle() {
    need_server!();
    let (_fleet, one, other) = two().await;
    let guard = one.lock_all(["j", "k"]).await.unwrap();
    ends_with_the_last(guard, || other.lock("k")).await;
}

#[tokio::test]
async fn one_that_waits_has_it_behind_the_last_handle() {
    need_process!();
    let fleet = Fleet::start(3);
    let (one, other) = (hearing(&fleet, "one").await, hearing(&fleet, "other").await);
    let guard = one.lock("k").await.unwrap();
    let waiting = tokio::spawn(other.lock("k").wait(PATIENCE).acquire());
    waits(&fleet, "k", 1).await;
    let second = guard.share();
    drop(guard);
    waits(&fleet, "k", 1).await;
    assert!(second.is_valid() && second.release().await.unwrap().is_released());
    assert!(waiting.await.unwrap().unwrap().release().await.unwrap().is_released());
}

#[tokio::test]
async fn handles_of_a_fenced_lock_have_one_fence() {
    need_process!();
    let (_fleet, one, other) = two().await;
    let guard = one.lock("k").fenced().await.unwrap();
    let second = guard.share();
    assert!(second.fence().is_some() && second.fence() == guard.fence());
    drop(second);
    ends_with_the_last(guard, || other.lock("k").fenced()).await;
}

#[tokio::test]
async fn the_last_handle_deletes_natively() {
    let nodes: [Inside; 3] = [(); 3].map(|()| valkey("9.1.2"));
    let locker = async || connected(quorum(nodes.iter().map(native::url))).await;
    let (one, other) = (locker().await, locker().await);
    ends_with_the_last(one.lock("k").await.unwrap(), || other.lock("k")).await;
}

#[tokio::test]
async fn a_read_lock_is_released_with_the_last_handle() {
    need_process!();
    let (_fleet, one, other) = two().await;
    let guard = one.read("k").await.unwrap();
    ends_with_the_last(guard, || other.write("k")).await;
}

#[tokio::test]
async fn a_slot_is_released_with_the_last_handle() {
    need_process!();
    let (_fleet, one, other) = two().await;
    let guard = one.slots("k", 1).acquire().await.unwrap();
    ends_with_the_last(guard, || other.slots("k", 1).acquire()).await;
}

/// Within the guard it is had at once; it is held until both are released.
async fn passes_within(guard: LockGuard, again: LockRequest, other: impl Fn() -> LockRequest) {
    let inner = again.within(&guard).await.unwrap();
    assert_eq!(inner.owner_token().value(), guard.owner_token().value(), "the same lock");
    assert!(matches!(guard.release().await.unwrap(), Release::Shared));
    ends_with_the_last(inner, other).await;
}

#[tokio::test]
async fn a_lock_is_had_again_within_its_guard() {
    need_server!();
    let (_fleet, one, other) = two().await;
    let guard = one.lock("k").await.unwrap();
    passes_within(guard, one.lock("k"), || other.lock("k")).await;
}

#[tokio::test]
async fn several_keys_are_had_again_within_their_guard() {
    need_server!();
    let (_fleet, one, other) = two().await;
    let guard = one.lock_all(["j", "k"]).await.unwrap();
    passes_within(guard, one.lock_all(["k", "j"]), || other.lock("j")).await;
    let guard = one.lock_all(["j", "k"]).await.unwrap();
    passes_within(guard, one.lock("k"), || other.lock("j")).await;
}

/// One that stood in the queue would wait for its own guard.
#[tokio::test]
async fn a_request_within_its_guard_passes_the_queue() {
    need_process!();
    let fleet = Fleet::start(3);
    let (one, other) = (hearing(&fleet, "one").await, hearing(&fleet, "other").await);
    let guard = one.lock("k").await.unwrap();
    let waiting = tokio::spawn(other.lock("k").wait(PATIENCE).acquire());
    waits(&fleet, "k", 1).await;
    for request in [one.lock("k"), one.lock("k").fair()] {
        let inner = request.wait(PATIENCE).within(&guard).await.unwrap();
        assert!(matches!(inner.release().await.unwrap(), Release::Shared));
    }
    waits(&fleet, "k", 1).await;
    assert!(guard.release().await.unwrap().is_released());
    assert!(waiting.await.unwrap().unwrap().release().await.unwrap().is_released());
}

#[tokio::test]
async fn within_its_guard_a_lock_has_the_same_fence() {
    need_process!();
    let (_fleet, one, other) = two().await;
    let guard = one.lock("k").fenced().await.unwrap();
    let inner = one.lock("k").fenced().within(&guard).await.unwrap();
    assert!(inner.fence().is_some() && inner.fence() == guard.fence());
    drop(inner);
    passes_within(guard, one.lock("k").fenced(), || other.lock("k").fenced()).await;
}

#[tokio::test]
async fn what_was_had_within_its_guard_is_deleted_natively_once() {
    let nodes: [Inside; 3] = [(); 3].map(|()| valkey("9.1.2"));
    let locker = connected(quorum(nodes.iter().map(native::url))).await;
    let guard = locker.lock("k").await.unwrap();
    let inner = locker.lock("k").within(&guard).await.unwrap();
    assert!(matches!(inner.release().await.unwrap(), Release::Shared));
    assert!(guard.release().await.unwrap().is_released());
    eventually_async("each node has deleted it", async || {
        nodes.iter().all(|node| node.value("k").is_none() && node.calls("delifeq") == 1)
    })
    .await;
}

#[tokio::test]
async fn a_reader_is_had_again_within_its_guard_or_a_writers() {
    need_process!();
    let (_fleet, one, other) = two().await;
    let guard = one.read("k").await.unwrap();
    passes_within(guard, one.read("k"), || other.write("k")).await;
    let guard = one.write("k").await.unwrap();
    passes_within(guard, one.read("k"), || other.read("k")).await;
}

/// A slot covers no other: who asks again works on something else.
#[tokio::test]
async fn within_a_slot_another_is_acquired() {
    need_process!();
    let (_fleet, one, other) = two().await;
    let (ours, theirs) = (one.slots("k", 2), other.slots("k", 2));
    let first = ours.acquire().await.unwrap();
    let second = ours.acquire().within(&first).await.unwrap();
    assert_ne!(first.slots(), second.slots());
    assert!(theirs.acquire().try_acquire().await.unwrap().is_none());
    assert!(first.release().await.unwrap().is_released());
    assert!(theirs.acquire().wait(PATIENCE).await.unwrap().release().await.unwrap().is_released());
    assert!(second.release().await.unwrap().is_released());
}

#[cfg(feature = "blocking")]
#[test]
fn plain_threads_share_a_lock_in_hand() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker = builder(&fleet).build_blocking().unwrap();
    locker.ready(PATIENCE).unwrap();
    let guard = locker.lock("k").acquire().unwrap();
    let inner = locker.lock("k").within(&guard).unwrap();
    let thread = std::thread::spawn(move || inner.release().unwrap());
    assert!(matches!(thread.join().unwrap(), Release::Shared));
    let other = guard.share();
    drop(guard);
    assert!(other.release().unwrap().is_released());
}
