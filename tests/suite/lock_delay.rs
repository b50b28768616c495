//! Locks that keep others out for a while when their lease has ended by itself: the row
//! `lock_delay` of the manual's table.

use std::time::{Duration, Instant};

use quorlock::{Durability, Extend, LockRequest, Loss};
use support::wait::PATIENCE;
use support::{Fleet, need_process, need_server};

use crate::native::valkey;
use crate::waiting::hearing;
use crate::{builder, connected, native, quorum};

const TTL: Duration = Duration::from_millis(500);
const DELAY: Duration = Duration::from_millis(700);

/// Servers count whole milliseconds, and their clocks are not quite ours.
const GRAIN: Duration = Duration::from_millis(10);

fn delayed(request: LockRequest) -> LockRequest {
    request.ttl(TTL).lock_delay(DELAY).auto_extend(Extend::Off)
}

/// Its lease ends, and its guard is dropped; another has what it had no sooner than when the delay
/// is over as well.
async fn keeps_others_out(request: LockRequest, next: LockRequest) {
    let began = Instant::now();
    let guard = delayed(request).await.unwrap();
    assert!(guard.remaining() <= TTL);
    assert_eq!(guard.lost().await, Loss::Expired);
    drop(guard);
    let next = next.wait(PATIENCE).await.unwrap();
    let took = began.elapsed();
    assert!(took + GRAIN >= TTL + DELAY, "{took:?}");
    assert!(next.release().await.unwrap().is_released());
}

/// And where it was released, at once.
async fn is_free_after_a_release(request: LockRequest, next: LockRequest) {
    let guard = request.lock_delay(PATIENCE * 100).await.unwrap();
    assert!(guard.release().await.unwrap().is_released());
    // A release is confirmed by a majority.
    assert!(next.wait(PATIENCE).await.unwrap().release().await.unwrap().is_released());
}

#[tokio::test]
async fn one_that_has_expired_keeps_others_out() {
    need_server!();
    let fleet = Fleet::start(3);
    let (one, other) = (connected(builder(&fleet)).await, connected(builder(&fleet)).await);
    keeps_others_out(one.lock("k"), other.lock("k")).await;
    is_free_after_a_release(one.lock("k"), other.lock("k")).await;
}

#[tokio::test]
async fn several_keys_that_have_expired_keep_others_out() {
    need_server!();
    let fleet = Fleet::start(3);
    let (one, other) = (connected(builder(&fleet)).await, connected(builder(&fleet)).await);
    keeps_others_out(one.lock_all(["j", "k"]), other.lock("k")).await;
    is_free_after_a_release(one.lock_all(["j", "k"]), other.lock_all(["j", "k"])).await;
}

#[tokio::test]
async fn one_that_waits_in_the_queue_waits_for_the_delay() {
    need_process!();
    let fleet = Fleet::start(3);
    let (one, other) = (hearing(&fleet, "one").await, hearing(&fleet, "other").await);
    let began = Instant::now();
    let guard = delayed(one.lock("k")).await.unwrap();
    let next = tokio::spawn(other.lock("k").wait(PATIENCE).acquire());
    assert_eq!(guard.lost().await, Loss::Expired);
    drop(guard);
    assert!(next.await.unwrap().unwrap().release().await.unwrap().is_released());
    assert!(began.elapsed() + GRAIN >= TTL + DELAY, "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_fenced_lock_that_has_expired_keeps_others_out() {
    need_process!();
    let fleet = Fleet::start(3);
    let (one, other) = (connected(builder(&fleet)).await, connected(builder(&fleet)).await);
    keeps_others_out(one.lock("k").fenced(), other.lock("k").fenced()).await;
    is_free_after_a_release(one.lock("k").fenced(), other.lock("k").fenced()).await;
}

#[tokio::test]
async fn one_that_would_be_deleted_natively_keeps_others_out() {
    let nodes = [(); 3].map(|()| valkey("9.1.2"));
    let locker = async || connected(quorum(nodes.iter().map(native::url))).await;
    let (one, other) = (locker().await, locker().await);
    keeps_others_out(one.lock("k"), other.lock("k")).await;
    is_free_after_a_release(one.lock("k"), other.lock("k")).await;
}

/// Those who read, too: they share it with others, and keep a writer out.
#[tokio::test]
async fn a_read_lock_that_has_expired_keeps_a_writer_out() {
    need_process!();
    let fleet = Fleet::start(3);
    let (one, other) = (connected(builder(&fleet)).await, connected(builder(&fleet)).await);
    keeps_others_out(one.read("k"), other.write("k")).await;
    is_free_after_a_release(one.read("k"), other.read("k")).await;
}

#[tokio::test]
async fn a_slot_that_has_expired_is_no_others() {
    need_process!();
    let fleet = Fleet::start(3);
    let (one, other) = (connected(builder(&fleet)).await, connected(builder(&fleet)).await);
    keeps_others_out(one.slots("k", 1).acquire(), other.slots("k", 1).acquire()).await;
    is_free_after_a_release(one.slots("k", 1).acquire(), other.slots("k", 1).acquire()).await;
}

#[tokio::test]
async fn what_lives_for_longer_than_any_lock_may_is_refused() {
    need_server!();
    let fleet = Fleet::start(3);
    let durability = Durability::Volatile { longest_ttl: TTL + DELAY };
    let locker = connected(builder(&fleet).ttl(TTL).durability(durability)).await;
    locker.initialise().await.unwrap();
    assert!(delayed(locker.lock("k")).await.unwrap().release().await.unwrap().is_released());
    let longer = locker.lock("k").ttl(TTL).lock_delay(DELAY + GRAIN).await.unwrap_err();
    assert!(longer.is_misuse() && longer.to_string().contains("longest TTL"), "{longer}");
}
