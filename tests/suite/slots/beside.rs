//! Slots beside everything else: what the manual's table says goes with them.

use std::time::Duration;

use quorlock::{Client, Durability, Locker};
use support::wait::PATIENCE;
use support::{Fleet, Reply, eventually_async, need_process, need_server, reach};

use super::{is_free, nothing_is_left, queued, release};
use crate::waiting::hearing;
use crate::{builder, connected};

#[tokio::test]
async fn on_servers_that_may_forget_slots_are_shared_too() {
    need_server!();
    let fleet = Fleet::start(3);
    let durability = Durability::Volatile { longest_ttl: Duration::from_secs(100) };
    let builder = builder(&fleet).durability(durability).ttl(Duration::from_secs(90));
    let locker = connected(builder).await;
    locker.initialise().await.unwrap();
    for _ in 0..5 {
        let one = locker.slots("k", 3).acquire().await.unwrap();
        let two = locker.slots("k", 3).acquire_many(2).await.unwrap();
        let limit = Duration::from_millis(100);
        let error = locker.slots("k", 3).acquire().wait(limit).await.unwrap_err();
        assert!(error.is_contended(), "{error}");
        assert!(!is_free(&locker, 3).await);
        for guard in [one, two] {
            guard.extend(Duration::from_secs(5)).await.unwrap();
            release(guard).await;
        }
    }
}

#[cfg(feature = "blocking")]
#[test]
fn plain_threads_have_slots() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker = builder(&fleet).build_blocking().unwrap();
    locker.ready(PATIENCE).unwrap();
    let slots = locker.slots("k", 3);
    assert_eq!(slots.count(), 3);
    let one = slots.acquire().acquire().unwrap();
    let two = slots.acquire_many(2).acquire().unwrap();
    assert_eq!((one.slots().len(), two.slots().len()), (1, 2));
    assert!(slots.acquire().try_acquire().unwrap().is_none());
    for guard in [one, two] {
        assert!(guard.release().unwrap().is_released());
    }
    let found = slots.acquire().run(|held| Ok::<_, quorlock::Error>(held.slots().len())).unwrap();
    assert_eq!(found, 1);
}

/// On the same server, and each gets the answers to its own commands.
#[tokio::test]
async fn a_client_beside_slots_changes_neither() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker = connected(builder(&fleet)).await;
    let client = Client::new(fleet[0].url_as("")).unwrap().timeout(PATIENCE);
    for round in 1..=50 {
        let guard = locker.slots("k", 2).acquire_many(2).await.unwrap();
        let echoed = client.command(["ECHO", &format!("nonce-{round}")]).await.unwrap();
        assert_eq!(echoed.as_bytes().unwrap(), format!("nonce-{round}").as_bytes());
        assert!(!is_free(&locker, 2).await);
        release(guard).await;
    }
}

#[tokio::test]
async fn a_slot_released_after_a_time_ends_then() {
    need_process!();
    let fleet = Fleet::start(3);
    let locker = connected(builder(&fleet)).await;
    for weight in [1, 2] {
        let guard = locker.slots("k", 2).acquire_many(weight).await.unwrap();
        let numbers = guard.slots();
        assert!(guard.release_after(Duration::from_millis(400)).await.unwrap().is_released());
        // Another waits for it, who was told nothing.
        let next = locker.slots("k", 2).acquire_many(2).wait(PATIENCE).await.unwrap();
        assert!(numbers.iter().all(|number| next.slots().contains(number)));
        release(next).await;
        nothing_is_left(&fleet).await;
    }
}

#[tokio::test]
async fn slots_that_a_shutdown_leaves_end_by_ttl() {
    need_process!();
    let fleet = Fleet::start(3);
    let (one, two) = (connected(builder(&fleet)).await, connected(builder(&fleet)).await);
    let guard = one.slots("k", 1).acquire().ttl(Duration::from_millis(700)).await.unwrap();
    let found = one.shutdown_leaving(PATIENCE).await.unwrap();
    assert_eq!(found.left.len(), 1);
    drop(guard);
    assert!(!is_free(&two, 1).await);
    let token = &found.left[0].token;
    assert!(token.as_str().starts_with("slot:"));
    for error in [
        two.adopt("k", token).await.unwrap_err(),
        two.release_by_token("k", token).await.unwrap_err(),
    ] {
        assert!(error.is_misuse(), "{error}");
    }
    nothing_is_left(&fleet).await;
}

/// Connections by RESP2 tell of nothing: no node can keep a queue for them.
#[tokio::test]
async fn who_hears_of_nothing_finds_a_free_slot_by_itself() {
    need_process!();
    let fleet = Fleet::start(3);
    let urls = fleet.urls().into_iter().map(|url| reach::with(&url, "protocol=2"));
    let deaf = connected(Locker::quorum(urls).unwrap()).await;
    let hearing = hearing(&fleet, "hearing").await;
    let held = hearing.slots("k", 3).acquire_many(2).await.unwrap();
    let last = deaf.slots("k", 3).acquire().await.unwrap();
    assert!(!held.slots().contains(&last.slots()[0]));
    assert!(!is_free(&deaf, 3).await && !is_free(&hearing, 3).await);
    // And tells those that wait of its end.
    let request = hearing.slots("k", 3).acquire().wait(PATIENCE);
    let waiter = tokio::spawn(async move { request.await.unwrap() });
    eventually_async("it waits", async || queued(&fleet, 3) == 1).await;
    release(last).await;
    release(waiter.await.unwrap()).await;
    let polling = tokio::spawn({
        let request = deaf.slots("k", 3).acquire_many(2).wait(PATIENCE);
        async move { request.await.unwrap() }
    });
    eventually_async("it waits", async || deaf.stats().waiting == 1).await;
    release(held).await;
    release(polling.await.unwrap()).await;
    nothing_is_left(&fleet).await;
}

/// Who has no right to the queue has one to its slots.
#[tokio::test]
async fn who_may_not_queue_has_slots_and_leaves_nothing() {
    need_process!();
    for rights in ["-zadd", "-mget", "-time", "-publish", "-@sortedset"] {
        let rules = format!("on >secret ~* &* +@all {rights}");
        let fleet = Fleet::start_with(3, |_, server| server.user("cashier", &rules));
        let urls = fleet.iter().map(|node| format!("redis://cashier:secret@{}", node.addr()));
        let locker = connected(Locker::quorum(urls).unwrap()).await;
        for weight in [1, 2] {
            let guard = locker.slots("k", 2).acquire_many(weight).await.unwrap();
            let rest = locker.slots("k", 2).acquire_many(2).wait(Duration::from_millis(300)).await;
            assert!(rest.unwrap_err().is_contended(), "{rights}");
            assert!(guard.release().await.unwrap().is_released(), "{rights}");
            nothing_is_left(&fleet).await;
        }
    }
}

/// A list, a lock without an end, a lock of another's: what stands there is left alone.
#[tokio::test]
async fn slots_under_whose_names_something_else_stands_are_as_good_as_held() {
    need_process!();
    let fleet = Fleet::start(3);
    let locker = hearing(&fleet, "one").await;
    fleet.command(&["RPUSH", "{k}:slot:0", "an", "item"]);
    fleet.command(&["SET", "{k}:slot:1", "forever"]);
    let guard = locker.slots("k", 3).acquire().await.unwrap();
    assert_eq!(guard.slots(), [2]);
    let limit = Duration::from_millis(100);
    let error = locker.slots("k", 3).acquire().wait(limit).await.unwrap_err();
    assert!(error.is_contended(), "{error}");
    release(guard).await;
    assert!(fleet.command(&["LLEN", "{k}:slot:0"]).iter().all(|left| *left == Reply::Int(2)));
    let left = fleet.command(&["TTL", "{k}:slot:1"]);
    assert!(left.iter().all(|left| *left == Reply::Int(-1)), "{left:?}");
}
