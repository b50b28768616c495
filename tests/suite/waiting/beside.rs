//! One that waits in a queue is woken by all else that a lock may go through: the column *waiting*
//! of the manual's table. It is handed the lock, or told of the change where the holder has not
//! heard in time that it is waited for.

use std::time::Duration;

use quorlock::{Client, Durability, Locker};
use support::wait::PATIENCE;
use support::{Fleet, Server, Watchdog, eventually_async, need_process};

use super::{hasty, is_watched, listening, process, told, wait, waits};
use crate::{connected, patient};

const LONGEST: Duration = Duration::from_secs(20);

/// Hears at once when a lock is handed over or changes.
pub(crate) async fn hearing(fleet: &Fleet, name: &str) -> Locker {
    listening(patient(hasty(fleet.urls(), name)).ttl(LONGEST)).await
}

#[tokio::test]
async fn a_lock_is_handed_over_on_servers_that_may_forget() {
    need_process!();
    let _watchdog = Watchdog::new("the lock on servers that may forget");
    let fleet = Fleet::start(3);
    let volatile = async |name| {
        let builder = patient(hasty(fleet.urls(), name)).ttl(Duration::from_secs(1));
        let durability = Durability::Volatile { longest_ttl: Duration::from_secs(1) };
        listening(builder.durability(durability)).await
    };
    let (holder, waiter) = (volatile("holder").await, volatile("waiter").await);
    holder.initialise().await.unwrap();
    let held = holder.lock("k").await.unwrap();
    let waiting = wait(&waiter, "k");
    is_watched(&fleet).await;
    assert!(held.release().await.unwrap().is_released());
    assert!(waiting.await.unwrap().release().await.unwrap().is_released());
    let woken = waiter.stats();
    assert!(woken.handed_over + woken.changed >= 1, "{woken:?}");
}

/// Its ACL is for the lock's keys, whose queue has a name of its own; and it hears of those that
/// wait, for that is said by channel.
#[tokio::test]
async fn who_may_not_touch_the_queue_releases_the_lock_all_the_same() {
    need_process!();
    let _watchdog = Watchdog::new("the lock of one that may not touch its queue");
    let fleet =
        Fleet::start_with(1, |_, server| server.user("cashier", "on >secret ~pay:* &* +@all"));
    let url = format!("redis://cashier:secret@{}", fleet[0].addr());
    let holder = listening(patient(hasty([url], "holder")).ttl(LONGEST)).await;
    let waiter = hearing(&fleet, "waiter").await;
    for is_dropped in [false, true] {
        let held = holder.lock("pay:7").await.unwrap();
        let waiting = wait(&waiter, "pay:7");
        is_watched(&fleet).await;
        match is_dropped {
            true => drop(held),
            false => assert!(held.release().await.unwrap().is_released()),
        }
        assert!(waiting.await.unwrap().release().await.unwrap().is_released());
    }
}

/// One that adopts a lock is not told who waits for it: the first of these is told of the release.
#[tokio::test]
async fn an_adopted_lock_goes_to_the_one_that_waits_when_it_is_released() {
    need_process!();
    let _watchdog = Watchdog::new("the lock that was adopted");
    let fleet = Fleet::start(3);
    let (holder, adopter) = (process(&fleet, "holder").await, process(&fleet, "adopter").await);
    let waiter = hearing(&fleet, "waiter").await;
    let held = holder.lock("k").await.unwrap();
    let waiting = wait(&waiter, "k");
    is_watched(&fleet).await;
    let token = held.forget();
    let adopted = adopter.adopt("k", &token).await.unwrap();
    assert!(!waiting.is_finished(), "it is held");
    assert!(adopted.release().await.unwrap().is_released());
    assert!(waiting.await.unwrap().release().await.unwrap().is_released());
}

#[tokio::test]
async fn a_lock_that_a_token_releases_goes_to_who_waits() {
    need_process!();
    let _watchdog = Watchdog::new("the lock that a token released");
    let fleet = Fleet::start(3);
    let (holder, other) = (process(&fleet, "holder").await, process(&fleet, "other").await);
    let waiter = hearing(&fleet, "waiter").await;
    let held = holder.lock("k").await.unwrap();
    let waiting = wait(&waiter, "k");
    is_watched(&fleet).await;
    let token = held.forget();
    assert!(other.release_by_token("k", &token).await.unwrap().is_released());
    assert!(waiting.await.unwrap().release().await.unwrap().is_released());
    assert_eq!(waiter.stats().by_time, 0);
}

#[cfg(feature = "blocking")]
#[test]
fn a_plain_thread_waits_in_the_queue_and_is_handed_the_lock() {
    need_process!();
    let _watchdog = Watchdog::new("the lock for a plain thread");
    let fleet = Fleet::start(3);
    let locker = |name| patient(hasty(fleet.urls(), name)).ttl(LONGEST).build_blocking().unwrap();
    let (holder, waiter) = (locker("holder"), locker("waiter"));
    for locker in [&holder, &waiter] {
        locker.ready(PATIENCE).unwrap();
        support::eventually("all nodes tell of hand-overs", || {
            locker.health().iter().all(|node| node.tells_hand_overs)
        });
    }
    let held = holder.lock("k").acquire().unwrap();
    let request = waiter.lock("k").wait(PATIENCE);
    let waiting = std::thread::spawn(move || request.acquire().unwrap().release().unwrap());
    let is_watched = || fleet.iter().any(super::watches);
    support::eventually("the key is watched", is_watched);
    assert!(held.release().unwrap().is_released());
    assert!(waiting.join().unwrap().is_released());
    let woken = waiter.stats();
    assert!(woken.handed_over + woken.changed >= 1, "{woken:?}");
}

/// What a client of the same nodes is told goes to it, and what a waiter is told to that.
#[tokio::test]
async fn a_client_beside_one_that_waits_disturbs_neither() {
    need_process!();
    let _watchdog = Watchdog::new("the lock beside a client");
    let fleet = Fleet::start(3);
    let (holder, waiter) = (process(&fleet, "holder").await, hearing(&fleet, "waiter").await);
    let client = Client::new(told(fleet[0].url())).unwrap().timeout(PATIENCE);
    let held = holder.lock("k").await.unwrap();
    let waiting = wait(&waiter, "k");
    is_watched(&fleet).await;
    for _ in 0..100 {
        assert_eq!(client.command(["PING"]).await.unwrap().as_bytes().unwrap(), b"PONG");
    }
    assert!(held.release().await.unwrap().is_released());
    let held = waiting.await.unwrap();
    assert_eq!(client.command(["PING"]).await.unwrap().as_bytes().unwrap(), b"PONG");
    assert!(held.release().await.unwrap().is_released());
    let woken = waiter.stats();
    assert!(woken.handed_over + woken.changed >= 1, "{woken:?}");
}

/// It ends on the servers, and they tell of that late: the waiter has looked how long it lives.
#[tokio::test]
async fn a_lock_that_ends_after_a_time_goes_to_who_waits() {
    need_process!();
    let _watchdog = Watchdog::new("the lock that ends by itself");
    let fleet = Fleet::start(3);
    let (holder, waiter) = (process(&fleet, "holder").await, hearing(&fleet, "waiter").await);
    let held = holder.lock("k").await.unwrap();
    let waiting = wait(&waiter, "k");
    waits(&fleet, "k", 1).await;
    assert!(held.release_after(Duration::from_millis(500)).await.unwrap().is_released());
    assert!(waiting.await.unwrap().release().await.unwrap().is_released());
    eventually_async("nothing is left", async || fleet.keys_left("").is_empty()).await;
}

#[tokio::test]
async fn a_lock_that_a_shutdown_leaves_goes_on_at_its_end() {
    need_process!();
    let _watchdog = Watchdog::new("the lock that was left");
    let fleet = Fleet::start(3);
    let holder = connected(patient(hasty(fleet.urls(), "holder")).ttl(LONGEST)).await;
    let waiter = hearing(&fleet, "waiter").await;
    let held = holder.lock("k").ttl(Duration::from_secs(1)).await.unwrap();
    let waiting = wait(&waiter, "k");
    waits(&fleet, "k", 1).await;
    assert_eq!(holder.shutdown_leaving(PATIENCE).await.unwrap().left.len(), 1);
    assert!(!held.is_valid());
    let next = waiting.await.unwrap();
    let expired = |node: &Server| node.info("expired_keys").unwrap() == "1";
    assert!(fleet.iter().filter(|node| expired(node)).count() >= 2, "it was not deleted");
    assert!(next.release().await.unwrap().is_released());
}
