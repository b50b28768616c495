//! Locks that are handed over: adopted once, by one, and never beside another valid guard.

use std::time::{Duration, Instant};

use quorlock::{Durability, Extend, Locker, LockerBuilder, Loss, OwnerToken, Release};
use support::wait::eventually_async;
use support::{Fleet, Reply, need_server, poll_times};

use crate::{builder, connected};

const LONGEST: Duration = Duration::from_secs(20);
const VOLATILE: Durability = Durability::Volatile { longest_ttl: LONGEST };

/// As it reaches another process.
fn as_text(token: &OwnerToken) -> OwnerToken {
    OwnerToken::from(token.as_str().to_owned())
}

/// Lockers of several machines, on servers that keep their keys and on such that may forget.
async fn on_both<T: Future<Output = ()>>(test: impl Fn(Fleet, Vec<Locker>, bool) -> T) {
    for durability in [Durability::Persistent, VOLATILE] {
        let fleet = Fleet::start(3);
        let mut lockers = Vec::new();
        for _ in 0..3 {
            lockers.push(connected(builder(&fleet).durability(durability).ttl(LONGEST)).await);
        }
        if durability == VOLATILE {
            lockers[0].initialise().await.unwrap();
        }
        test(fleet, lockers, durability == VOLATILE).await;
    }
}

/// The token is worth nothing. Where adoptions meet one another on different nodes, one may have to
/// be made again before that is known.
async fn assert_worthless(locker: &Locker, token: &OwnerToken) {
    eventually_async("the token is worth nothing", async || {
        let error = locker.adopt("k", token).await.expect_err("it was adopted before");
        assert!(error.is_lost() || error.is_contended(), "{error}");
        error.is_lost()
    })
    .await;
}

fn holding(fleet: &Fleet, token: &OwnerToken) -> usize {
    let holds = |node| fleet[node].command(&["GET", "k"]) == Reply::bulk(token.value());
    (0..3).filter(|node| holds(*node)).count()
}

#[tokio::test]
async fn a_lock_that_was_left_is_adopted_at_once_and_once() {
    need_server!();
    on_both(async |fleet, lockers, _| {
        let token = as_text(&lockers[0].lock("k").await.unwrap().forget());
        assert!(token.is_left_behind());
        let began = Instant::now();
        let guard = lockers[1].adopt("k", &token).await.unwrap();
        assert!(began.elapsed() < LONGEST / 2, "it was not waited for");
        assert_ne!(guard.owner_token().value(), token.value());
        assert_worthless(&lockers[2], &token).await;
        assert_worthless(&lockers[0], &token).await;
        eventually_async("all nodes hold the new value", async || {
            holding(&fleet, &guard.owner_token()) == 3
        })
        .await;
        assert!(guard.release().await.unwrap().is_released());
        assert_worthless(&lockers[2], &token).await;
        assert!(lockers[2].lock("k").try_acquire().await.unwrap().is_some());
    })
    .await;
}

#[tokio::test]
async fn a_token_releases_its_lock_from_anywhere_and_no_other() {
    need_server!();
    on_both(async |fleet, lockers, _| {
        let guard = lockers[0].lock("k").await.unwrap();
        let token = as_text(&guard.owner_token());
        eventually_async("all nodes hold it", async || holding(&fleet, &token) == 3).await;
        assert_eq!(as_text(&guard.forget()).value(), token.value());
        let released = lockers[1].release_by_token("k", &token).await.unwrap();
        assert!(released.is_released(), "{released:?}");
        eventually_async("no node holds it", async || holding(&fleet, &token) == 0).await;
        let again = lockers[1].release_by_token("k", &token).await.unwrap();
        assert!(matches!(again, Release::Expired), "{again:?}");
        let guard = lockers[2].lock("k").await.unwrap();
        let others = lockers[1].release_by_token("k", &token).await.unwrap();
        assert!(matches!(others, Release::Taken), "{others:?}");
        guard.extend(LONGEST).await.unwrap();
        let token = as_text(&guard.owner_token());
        assert!(lockers[0].release_by_token("k", &token).await.unwrap().is_released());
        assert!(guard.extend(LONGEST).await.unwrap_err().is_lost());
        drop(guard);
        // A guard of the same locker loses it at once, though nothing extends it.
        let guard = lockers[2].lock("k").auto_extend(Extend::Off).await.unwrap();
        let other = lockers[2].lock("l").auto_extend(Extend::Off).await.unwrap();
        let token = as_text(&guard.owner_token());
        assert!(lockers[2].release_by_token("k", &token).await.unwrap().is_released());
        assert!(!guard.is_valid() && other.is_valid());
        assert_eq!(guard.lost().await, Loss::Gone);
        let empty = OwnerToken::from(String::new());
        assert!(lockers[0].release_by_token("k", &empty).await.unwrap_err().is_misuse());
        for node in 0..2 {
            fleet[node].stop();
        }
        let untold = lockers[0].release_by_token("k", &token).await.unwrap();
        assert!(matches!(untold, Release::Unknown(_)), "{untold:?}");
    })
    .await;
}

#[tokio::test]
async fn what_a_shutdown_leaves_is_adopted_by_its_tokens() {
    need_server!();
    on_both(async |_, lockers, _| {
        let guards = [lockers[0].lock("k").await.unwrap(), lockers[0].lock("l").await.unwrap()];
        let found = lockers[0].shutdown_leaving(LONGEST).await.unwrap();
        assert_eq!(found.left.len(), 2);
        drop(guards);
        for left in found.left {
            let guard = lockers[1].adopt(&left.key, &as_text(&left.token)).await.unwrap();
            assert!(guard.release().await.unwrap().is_released());
        }
    })
    .await;
}

/// With the defaults its guard would be told a third of the TTL later; here it never asks.
#[tokio::test]
async fn a_lock_whose_guard_lives_is_adopted_when_its_time_is_over() {
    need_server!();
    const TTL: Duration = Duration::from_millis(1_500);
    on_both(async |_, lockers, _| {
        let guard = lockers[0].lock("k").ttl(TTL).auto_extend(Extend::Off).await.unwrap();
        let token = as_text(&guard.owner_token());
        assert!(!token.is_left_behind());
        let adopted = lockers[1].adopt("k", &token).await.unwrap();
        assert!(!guard.is_valid(), "both were valid");
        assert!(adopted.is_valid());
        drop(guard);
        assert!(lockers[2].lock("k").try_acquire().await.unwrap().is_none());
        assert!(adopted.release().await.unwrap().is_released());
    })
    .await;
}

#[tokio::test]
async fn an_adoption_that_fails_leaves_the_lock_to_its_token() {
    need_server!();
    on_both(async |fleet, lockers, is_volatile| {
        let token = lockers[0].lock("k").await.unwrap().forget();
        // A locker of another durability.
        let durability = if is_volatile { Durability::Persistent } else { VOLATILE };
        let other = builder(&fleet).durability(durability).ttl(LONGEST).build().unwrap();
        let error = other.adopt("k", &token).await.unwrap_err();
        assert!(error.is_misuse() || error.is_unavailable(), "{error}");
        // One that gives up: at its first poll everything is sent.
        let adopted = poll_times(lockers[1].adopt("k", &token), 1).await;
        assert!(adopted.completed().is_none());
        // What both have sent is undone on every node, and not only on those that answer first.
        other.shutdown(LONGEST).await.unwrap();
        lockers[1].shutdown(LONGEST).await.unwrap();
        assert_eq!(holding(&fleet, &token), 3);
        assert!(lockers[2].adopt("k", &token).await.unwrap().is_valid());
    })
    .await;
}

/// From its own past a server has the value that was adopted: it must not let it be adopted twice.
#[tokio::test]
async fn a_token_is_not_adopted_again_on_servers_that_have_forgotten_the_first_time() {
    need_server!();
    let fleet = Fleet::start(3);
    let volatile =
        |fleet: &Fleet| -> LockerBuilder { builder(fleet).durability(VOLATILE).ttl(LONGEST / 2) };
    let (first, second) = (connected(volatile(&fleet)).await, connected(volatile(&fleet)).await);
    first.initialise().await.unwrap();
    let token = first.lock("k").await.unwrap().forget();
    let guard = second.adopt("k", &token).await.unwrap();
    // What is told to a node that has not answered is told to it again when it has restarted.
    eventually_async("all have answered", async || holding(&fleet, &guard.owner_token()) == 3)
        .await;
    for node in 0..2 {
        fleet[node].restart();
        let millis = (LONGEST / 2).as_millis().to_string();
        assert_eq!(fleet[node].command(&["SET", "k", token.value(), "PX", &millis]), Reply::ok());
    }
    let third = connected(volatile(&fleet)).await;
    let error = third.adopt("k", &token).await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    assert!(guard.is_valid());
    eventually_async("it is as it was", async || holding(&fleet, &token) == 2).await;
}
