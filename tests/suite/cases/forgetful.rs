//! Nodes that have forgotten: their keys, by a restart or a flush, or the scripts.

use std::time::Duration;

use quorlock::{LockGuard, Locker};
use support::{Fleet, Reply, Server, eventually_async, need_server};

use super::{extended, held_by_none, hold_unextended};
use crate::{builder, connected};

/// Long enough for a restart on a busy machine, short enough for the keeper to come round a few
/// times: it does at a third of it.
const TTL: Duration = Duration::from_secs(4);

/// Waits until all nodes hold the guard's key, while another locker tries to take it.
async fn healed(fleet: &Fleet, guard: &LockGuard, rival: &Locker) {
    let token = guard.owner_token();
    let ours = |server: &Server| server.command(&["GET", "k"]) == Reply::bulk(token.as_str());
    let mut looks = 0;
    eventually_async("all nodes hold our key again", async || {
        // Now and then: a node that holds the rival's key for a moment cannot be given ours.
        if looks % 64 == 0 {
            // It may be unavailable as well while nodes are away; it must never be won.
            let tried = rival.lock("k").try_acquire().await;
            assert!(!matches!(tried, Ok(Some(_))), "held twice");
        }
        looks += 1;
        assert!(guard.is_valid(), "lost, with three nodes of five that never forgot");
        fleet.iter().all(ours)
    })
    .await;
}

#[tokio::test]
async fn case_16_a_restarted_minority_does_not_give_the_lock_away_and_gets_its_key_back() {
    need_server!();
    let fleet = Fleet::start(5);
    let (locker, rival) = (connected(builder(&fleet)).await, connected(builder(&fleet)).await);
    let guard = locker.lock("k").ttl(TTL).await.unwrap();
    for pair in [[0, 1], [2, 4]] {
        healed(&fleet, &guard, &rival).await;
        pair.iter().for_each(|node| fleet[*node].restart());
    }
    healed(&fleet, &guard, &rival).await;
    assert!(guard.release().await.unwrap().is_released());
    held_by_none(&fleet).await;
}

#[tokio::test]
async fn case_16_a_flushed_minority_does_not_give_the_lock_away_and_gets_its_key_back() {
    need_server!();
    let fleet = Fleet::start(5);
    let (locker, rival) = (connected(builder(&fleet)).await, connected(builder(&fleet)).await);
    let guard = locker.lock("k").ttl(TTL).await.unwrap();
    for (node, flush) in [(3, "FLUSHALL"), (0, "FLUSHDB"), (4, "FLUSHALL")] {
        healed(&fleet, &guard, &rival).await;
        assert_eq!(fleet[node].command(&[flush]), Reply::ok());
    }
    healed(&fleet, &guard, &rival).await;
    assert!(guard.release().await.unwrap().is_released());
    held_by_none(&fleet).await;
}

/// Without a quorum it is unknown whether another has held the lock meanwhile: it stays lost.
#[tokio::test]
async fn case_16_a_flushed_majority_is_a_lost_lock_and_is_given_no_key_back() {
    need_server!();
    let fleet = Fleet::start(5);
    let locker = connected(builder(&fleet)).await;
    let guard = locker.lock("k").ttl(TTL).await.unwrap();
    // By all: a flushed node that is asked behind three that have extended is given its key back.
    let by_all = async || fleet.iter().all(|server| server.calls().of("pexpire") == 1);
    eventually_async("the lock is extended", by_all).await;
    for node in [1, 2, 3] {
        assert_eq!(fleet[node].command(&["FLUSHALL"]), Reply::ok());
    }
    guard.lost().await;
    // At once, when the nodes have said so (`src/lock/tests/loss.rs`); but a busy machine may hear
    // them later than the timer that warns of the end.
    eventually_async("it is lost", async || !guard.is_valid()).await;
    assert!(guard.extend(TTL).await.unwrap_err().is_lost());
    locker.inspect("k").await.unwrap();
    let holders = fleet.holders("k");
    assert!(holders.iter().all(|node| [0, 4].contains(node)), "{holders:?}");
    let next = locker.lock("k").wait(Duration::from_secs(5)).await.unwrap();
    assert!(next.is_valid() && !guard.is_valid());
}

#[tokio::test]
async fn case_17_flushed_scripts_recover_and_are_loaded_once() {
    need_server!();
    for size in [1, 5] {
        let fleet = Fleet::start(size);
        let locker = connected(builder(&fleet)).await;
        let guard = hold_unextended(&locker, Duration::from_secs(30)).await;
        fleet.command(&["SCRIPT", "FLUSH"]);
        // A locker that may not load scripts has brought them in its handshake.
        fleet.command(&["CONFIG", "RESETSTAT"]);
        for seconds in [60, 90, 120] {
            guard.extend(Duration::from_secs(seconds)).await.unwrap();
            assert!(guard.remaining() > Duration::from_secs(seconds - 10));
        }
        assert!(guard.release().await.unwrap().is_released());
        held_by_none(&fleet).await;
        for server in &fleet {
            let evals = server.calls().of("eval");
            assert!((1..=2).contains(&evals), "one for each script at most: {evals}");
        }
    }
}

#[tokio::test]
async fn case_17_the_keeper_recovers_from_flushed_scripts_of_all_nodes() {
    need_server!();
    let recovers = async |size| {
        let fleet = Fleet::start(size);
        let locker = connected(builder(&fleet)).await;
        let guard = locker.lock("k").ttl(TTL).await.unwrap();
        for _ in 0..3 {
            fleet.command(&["SCRIPT", "FLUSH"]);
            extended(&guard, TTL).await;
        }
        eventually_async("all hold it", async || fleet.holders("k").len() == size).await;
        assert!(guard.release().await.unwrap().is_released());
    };
    tokio::join!(recovers(1), recovers(5));
}

/// The majority needs none of them, and they must not fall behind for that.
#[tokio::test]
async fn case_17_the_keeper_recovers_from_flushed_scripts_of_a_minority() {
    need_server!();
    let fleet = Fleet::start(5);
    let locker = connected(builder(&fleet)).await;
    let guard = locker.lock("k").ttl(TTL).await.unwrap();
    extended(&guard, TTL).await;
    for node in [1, 4] {
        assert_eq!(fleet[node].command(&["SCRIPT", "FLUSH"]), Reply::ok());
    }
    for node in [1, 4] {
        let before = left(&fleet[node]);
        // What is left of a key's life grows only when it is extended.
        let mut last = before;
        eventually_async("this node's key is extended", async || {
            let now = left(&fleet[node]);
            let grown = now > last;
            last = now;
            grown
        })
        .await;
    }
    assert!(guard.release().await.unwrap().is_released());
}

/// What is left of the key's life, in milliseconds; a key that has gone fails the test.
fn left(server: &Server) -> i64 {
    let left = server.command(&["PTTL", "k"]).int();
    assert!(left > 0, "the key has gone: {left}");
    left
}
