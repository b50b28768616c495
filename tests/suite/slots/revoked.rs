//! Holders of slots that are asked to let go of them, by the number of a slot.

use std::time::Duration;

use quorlock::{LockGuard, Loss, Slots};
use support::in_process::Inside;
use support::wait::PATIENCE;
use support::{Fleet, eventually_async, need_process, need_server};
use tokio::time::timeout;

use super::{nothing_is_left, release, waiting, waits};
use crate::native::{url, valkey};
use crate::waiting::hearing;
use crate::{builder, connected, quorum};

/// Long enough that no extension tells a holder before its channel has.
const LONG: Duration = Duration::from_secs(60);
/// Extended also on a busy machine, and over within a test's patience.
const SHORT: Duration = Duration::from_secs(2);

/// The same slots for two that hear at once what they are told.
async fn two(fleet: &Fleet) -> (Slots, Slots) {
    let (one, other) = (hearing(fleet, "one").await, hearing(fleet, "other").await);
    (one.slots("k", 4), other.slots("k", 4))
}

/// Asks for a slot of this guard, which is told at once.
async fn asks(revoker: &Slots, slot: u16, guard: &LockGuard) {
    let (told, revoked) = tokio::join!(timeout(PATIENCE, guard.revoked()), revoker.revoke(slot));
    told.expect("it is told");
    assert!(revoked.unwrap().is_some(), "it is held");
    assert!(guard.is_revoked() && guard.is_valid());
}

#[tokio::test]
async fn a_holder_lets_go_of_a_slot_by_its_number() {
    need_process!();
    let fleet = Fleet::start(3);
    let (one, other) = two(&fleet).await;
    let asked = one.acquire().ttl(LONG).await.unwrap();
    let beside = one.acquire().ttl(LONG).await.unwrap();
    let slot = asked.slots()[0];
    asks(&other, slot, &asked).await;
    release(asked).await;
    assert!(other.revoke(slot).await.unwrap().is_none());
    assert!(!beside.is_revoked());
    beside.extend(LONG).await.unwrap();
    release(beside).await;
    nothing_is_left(&fleet).await;
}

#[tokio::test]
async fn a_holder_of_several_slots_lets_go_of_all_of_them_for_any_one() {
    need_process!();
    let fleet = Fleet::start(3);
    let (one, other) = two(&fleet).await;
    for place in 0..3 {
        let guard = one.acquire_many(3).ttl(LONG).wait(PATIENCE).await.unwrap();
        asks(&other, guard.slots()[place], &guard).await;
        let refused = guard.extend(LONG).await.unwrap_err();
        assert!(refused.is_revoked(), "{refused}");
        release(guard).await;
        nothing_is_left(&fleet).await;
    }
}

/// Without the revocation they would be extended for as long as their guard lives.
#[tokio::test]
async fn several_slots_whose_holder_does_not_listen_are_had_when_it_has_lost_them() {
    need_process!();
    let fleet = Fleet::start(3);
    let (one, other) = two(&fleet).await;
    let guard = one.acquire_many(3).ttl(SHORT).await.unwrap();
    let revoked = other.revoke(guard.slots()[2]).await.unwrap().expect("it is held");
    assert!(revoked.over_in <= SHORT + SHORT / 20, "{revoked:?}");
    let next = other.acquire_many(4).wait(PATIENCE).await.unwrap();
    assert!(!guard.is_valid(), "they were not taken away");
    assert_eq!(guard.lost().await, Loss::Revoked);
    drop(guard);
    release(next).await;
    nothing_is_left(&fleet).await;
}

#[tokio::test]
async fn one_that_waits_for_many_has_the_slots_that_are_let_go_of() {
    need_process!();
    let fleet = Fleet::start(3);
    let (one, other) = two(&fleet).await;
    let guard = one.acquire_many(4).ttl(LONG).await.unwrap();
    let waiter = waiting(other.acquire_many(2));
    waits(&fleet, 4, 1).await;
    asks(&one, 0, &guard).await;
    release(guard).await;
    release(waiter.await.unwrap()).await;
    nothing_is_left(&fleet).await;
}

/// The prefix stands inside of a slot's key, and what the number of slots is does not.
#[tokio::test]
async fn a_slot_is_found_behind_a_prefix_whatever_number_of_slots_its_holder_uses() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker = connected(builder(&fleet).prefix("pay:")).await;
    let guard = locker.slots("k", 64).acquire_many(64).await.unwrap();
    let few = locker.slots("k", 4);
    let refused = few.revoke(4).await.unwrap_err();
    assert!(refused.is_misuse() && refused.to_string().contains("from 0 to 3"), "{refused}");
    assert!(!guard.is_revoked() && guard.extend(LONG).await.is_ok());
    assert!(few.revoke(3).await.unwrap().is_some());
    assert!(guard.extend(LONG).await.unwrap_err().is_revoked());
    release(guard).await;
    nothing_is_left(&fleet).await;
}

/// The native command finds another value, so that the script follows.
#[tokio::test]
async fn slots_that_would_be_deleted_natively_are_let_go_of() {
    let nodes = [valkey("9.1.2"), valkey("9.1.2"), valkey("9.1.2")];
    let slots = connected(quorum(nodes.iter().map(url))).await.slots("k", 2);
    let is_free =
        |node: &Inside| (0..2).all(|slot| node.value(format!("{{k}}:slot:{slot}")).is_none());
    for (weight, is_dropped) in [(1, false), (1, true), (2, false), (2, true)] {
        let guard = slots.acquire_many(weight).wait(PATIENCE).await.unwrap();
        assert!(slots.revoke(guard.slots()[0]).await.unwrap().is_some());
        match is_dropped {
            true => drop(guard),
            false => release(guard).await,
        }
        eventually_async("nothing is left", async || nodes.iter().all(is_free)).await;
    }
}

#[cfg(feature = "blocking")]
#[test]
fn a_plain_thread_asks_for_a_slot_and_is_asked() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker = builder(&fleet).build_blocking().unwrap();
    locker.ready(PATIENCE).unwrap();
    let slots = locker.slots("k", 3);
    let guard = slots.acquire_many(2).ttl(3 * SHORT).acquire().unwrap();
    let slot = guard.slots()[1];
    assert!(slots.revoke(slot).unwrap().is_some());
    assert!(guard.wait_for_revocation(PATIENCE).unwrap() && guard.is_revoked());
    assert!(guard.release().unwrap().is_released());
    assert!(slots.revoke(slot).unwrap().is_none());
    assert!(slots.revoke(3).unwrap_err().is_misuse());
}
