//! Holders that are asked to let go of their locks: the row `revoke` of the manual's table.

use std::time::{Duration, Instant};

use quorlock::{LockRequest, Locker, Loss};
use support::wait::PATIENCE;
use support::{Fleet, Reply, Server, eventually_async, need_process, need_server, poll_times};
use tokio::time::timeout;

use crate::native::{url, valkey};
use crate::waiting::{hearing, is_everywhere};
use crate::{builder, connected, quorum};

/// Long enough that no extension tells a holder before its channel has.
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(900);

/// Two that hear at once what they are told.
async fn two(fleet: &Fleet) -> (Locker, Locker) {
    (hearing(fleet, "one").await, hearing(fleet, "other").await)
}

/// What is asked for, and the key that is revoked.
type Asked<'a> = (&'a dyn Fn(&Locker) -> LockRequest, &'a str);

async fn lets_go((one, other): (&Locker, &Locker), asked: Asked<'_>) {
    a_holder_that_listens_releases_it((one, other), asked).await;
    one_that_does_not_has_it_until_its_end((other, one), asked).await;
}

async fn a_holder_that_listens_releases_it(
    (holder, revoker): (&Locker, &Locker),
    (request, key): Asked<'_>,
) {
    let guard = request(holder).ttl(LONG).await.unwrap();
    let (told, revoked) = tokio::join!(timeout(PATIENCE, guard.revoked()), revoker.revoke(key));
    told.expect("it is told");
    let revoked = revoked.unwrap().expect("it is held");
    assert_eq!(revoked.holder.owner.as_deref(), Some(holder.owner()));
    assert!(guard.is_revoked() && guard.is_valid());
    assert!(guard.release().await.unwrap().is_released());
}

/// Without the revocation it would be extended for as long as its guard lives.
async fn one_that_does_not_has_it_until_its_end(
    (holder, revoker): (&Locker, &Locker),
    (request, key): Asked<'_>,
) {
    let guard = request(holder).wait(PATIENCE).ttl(SHORT).await.unwrap();
    let began = Instant::now();
    let over_in = revoker.revoke(key).await.unwrap().expect("it is held").over_in;
    let next = request(revoker).wait(PATIENCE).await.unwrap();
    let took = began.elapsed();
    assert!(!guard.is_valid());
    assert_eq!(guard.lost().await, Loss::Revoked);
    assert!(took >= SHORT / 2, "it was not taken away: {took:?}");
    assert!(over_in >= SHORT / 2 && over_in <= SHORT + SHORT / 20, "{over_in:?}");
    drop(guard);
    assert!(next.release().await.unwrap().is_released());
}

#[tokio::test]
async fn a_holder_lets_go_of_one_key() {
    need_process!();
    let fleet = Fleet::start(3);
    let (one, other) = two(&fleet).await;
    lets_go((&one, &other), (&|locker| locker.lock("k"), "k")).await;
}

#[tokio::test]
async fn a_holder_lets_go_of_several_keys_for_one_of_them() {
    need_process!();
    let fleet = Fleet::start(3);
    let (one, other) = two(&fleet).await;
    lets_go((&one, &other), (&|locker| locker.lock_all(["j", "k"]), "j")).await;
}

#[tokio::test]
async fn a_holder_lets_go_of_a_fenced_lock() {
    need_process!();
    let fleet = Fleet::start(3);
    let (one, other) = two(&fleet).await;
    lets_go((&one, &other), (&|locker| locker.lock("k").fenced(), "k")).await;
}

#[tokio::test]
async fn a_holder_lets_go_of_a_slot_by_its_key() {
    need_process!();
    let fleet = Fleet::start(3);
    let (one, other) = two(&fleet).await;
    lets_go((&one, &other), (&|locker| locker.slots("k", 1).acquire(), "{k}:slot:0")).await;
}

#[tokio::test]
async fn a_holder_lets_go_of_what_would_be_deleted_natively() {
    let nodes = [valkey("9.1.2"), valkey("9.1.2"), valkey("9.1.2")];
    let locker = || connected(quorum(nodes.iter().map(url)));
    let (one, other) = (locker().await, locker().await);
    lets_go((&one, &other), (&|locker| locker.lock("k"), "k")).await;
    let guard = one.lock("k").await.unwrap();
    other.revoke("k").await.unwrap().expect("it is held");
    drop(guard);
    let next = other.lock("k").wait(PATIENCE).await.unwrap();
    assert!(next.release().await.unwrap().is_released());
}

/// Where others wait the release of a holder that was asked hands the lock to the first of them.
#[tokio::test]
async fn one_that_waits_has_what_is_let_go_of() {
    need_server!();
    let fleet = Fleet::start(3);
    let (one, other) = two(&fleet).await;
    let guard = one.lock("k").ttl(LONG).await.unwrap();
    is_everywhere(&fleet, &guard).await;
    let waiting = async { other.lock("k").wait(PATIENCE).await.unwrap() };
    let letting_go = async {
        eventually_async("one waits", async || {
            let queued = fleet.command(&["ZCARD", "{k}:quorlock:queue"]);
            queued.contains(&Reply::Int(1))
        })
        .await;
        let (told, revoked) = tokio::join!(timeout(PATIENCE, guard.revoked()), one.revoke("k"));
        told.expect("it is told");
        assert!(revoked.unwrap().is_some());
        assert!(guard.release().await.unwrap().is_released());
    };
    let (next, ()) = tokio::join!(waiting, letting_go);
    assert!(next.release().await.unwrap().is_released());
}

#[tokio::test]
async fn a_revoked_key_still_refuses_a_plain_set_and_keeps_its_end() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker = connected(builder(&fleet)).await;
    let guard = locker.lock("k").await.unwrap();
    assert!(locker.revoke("k").await.unwrap().is_some());
    let is_refused =
        |node: &Server| node.command(&["SET", "k", "w", "NX", "PX", "9"]) == Reply::Nil;
    assert!(fleet.iter().all(is_refused));
    let held: Vec<_> = fleet.command(&["PTTL", "k"]).iter().map(Reply::int).collect();
    assert!(held.iter().all(|left| *left > 0), "no key without an end: {held:?}");
    assert!(guard.release().await.unwrap().is_released());
}

/// It is given up wherever that may be; what the holder has stays its own.
#[tokio::test]
async fn one_that_is_dropped_at_any_poll_leaves_the_lock_to_its_holder() {
    need_server!();
    let fleet = Fleet::start(3);
    let (one, other) = two(&fleet).await;
    for is_slot in [false, true] {
        for polls in 0.. {
            let request = if is_slot { one.slots("k", 2).acquire() } else { one.lock("k") };
            let guard = request.ttl(LONG).wait(PATIENCE).await.unwrap();
            let asked = match guard.slots()[..] {
                [] => poll_times(other.revoke("k"), polls).await,
                [slot, ..] => poll_times(other.slots("k", 2).revoke(slot), polls).await,
            };
            assert!(guard.is_valid());
            assert!(guard.release().await.unwrap().is_released());
            if let Some(revoked) = asked.completed() {
                assert!(revoked.unwrap().is_some());
                break;
            }
        }
    }
    let is_empty = async || fleet.keys_left("").is_empty();
    eventually_async("nothing is left", is_empty).await;
}

/// Two of three nodes decide; the third hangs meanwhile, and then blocks no later lock.
#[tokio::test]
async fn a_majority_is_enough() {
    need_process!();
    let fleet = Fleet::start(3);
    let (one, other) = two(&fleet).await;
    let guard = one.lock("k").ttl(SHORT).await.unwrap();
    fleet[2].pause();
    let revoked = timeout(PATIENCE, other.revoke("k")).await.expect("two have answered");
    let revoked = revoked.unwrap().expect("it is held");
    let lost = timeout(PATIENCE, guard.lost()).await.expect("it is over");
    assert_eq!(lost, Loss::Revoked);
    assert!(revoked.over_in <= SHORT + SHORT / 20);
    fleet[2].resume();
    let next = other.lock("k").wait(PATIENCE).await.unwrap();
    assert!(next.release().await.unwrap().is_released());
}

#[cfg(feature = "blocking")]
#[test]
fn a_plain_thread_asks_and_is_asked() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker = builder(&fleet).build_blocking().unwrap();
    locker.ready(PATIENCE).unwrap();
    let guard = locker.lock("k").ttl(Duration::from_secs(1)).acquire().unwrap();
    assert!(!guard.wait_for_revocation(Duration::ZERO).unwrap() && !guard.is_revoked());
    assert!(locker.revoke("k").unwrap().is_some());
    assert!(guard.wait_for_revocation(PATIENCE).unwrap() && guard.is_revoked());
    assert!(guard.release().unwrap().is_released());
    assert!(locker.revoke("k").unwrap().is_none());
}
