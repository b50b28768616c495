//! Acquisitions that come to nothing, and what may be left of them: nothing.

use std::time::Duration;

use quorlock::report::Outcome;
use support::{Fleet, Proxy, Reply, Server, Watchdog, eventually_async, need_server};

use super::{expired, held_by_none, hold_unextended, proxies, through};
use crate::{builder, connected, hasty};

const FOR_EVER: &str = "60000";

/// The node executes the command long after the caller was told that it did not answer.
#[cfg(unix)]
#[tokio::test]
async fn case_03_a_grant_that_comes_after_the_timeout_is_undone() {
    need_server!();
    for size in [1, 5] {
        let fleet = Fleet::start(size);
        let locker = connected(hasty(&fleet)).await;
        fleet.iter().for_each(Server::pause);
        let error = locker.lock("k").try_acquire().await.unwrap_err();
        assert!(error.is_unavailable(), "{error}");
        fleet.iter().for_each(Server::resume);
        let granted = async || fleet.iter().all(|server| server.calls().of("set") == 1);
        eventually_async("every node has executed the late command", granted).await;
        held_by_none(&fleet).await;
    }
}

/// Three nodes are another's: what the other two granted must not vote against the next try.
#[tokio::test]
async fn case_04_a_failed_attempt_leaves_no_key_and_does_not_block_its_own_retry() {
    need_server!();
    let fleet = Fleet::start(5);
    let locker = connected(builder(&fleet)).await;
    for round in 0..50 {
        let theirs = || fleet.iter().skip(round % 3).take(3);
        for server in theirs() {
            assert_eq!(server.command(&["SET", "k", "theirs", "PX", FOR_EVER]), Reply::ok());
        }
        assert!(locker.lock("k").try_acquire().await.unwrap().is_none());
        for server in theirs() {
            assert_eq!(server.command(&["DEL", "k"]), Reply::Int(1));
        }
        let guard = locker.lock("k").try_acquire().await.unwrap();
        let guard = guard.unwrap_or_else(|| panic!("round {round}: blocked by its own leftovers"));
        eventually_async("all five are ours", async || {
            guard.votes().iter().all(|vote| vote.outcome == Outcome::Granted)
        })
        .await;
        assert!(guard.release().await.unwrap().is_released());
        held_by_none(&fleet).await;
    }
}

/// The network delivers the command when the TTL has passed: the grant is worth nothing, and the
/// key that it has just made would block everybody for another TTL.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_06_an_acquisition_that_took_too_long_is_refused_and_released() {
    const TTL: Duration = Duration::from_secs(3);
    need_server!();
    let is_refused = async |size| {
        let fleet = Fleet::start(size);
        let proxies = proxies(&fleet);
        let patient = through(&proxies).ttl(TTL).node_timeout(Duration::from_secs(30));
        let locker = connected(patient).await;
        proxies.iter().for_each(Proxy::freeze);
        let began = Watchdog::new("the TTL has passed");
        let trying = tokio::spawn(async move { locker.lock("k").try_acquire().await });
        let waits = async || proxies.iter().all(|proxy| proxy.waiting() > 0);
        eventually_async("the network holds the commands", waits).await;
        eventually_async("the TTL has passed", async || began.elapsed() > TTL).await;
        proxies.iter().for_each(Proxy::thaw);
        let error = trying.await.unwrap().unwrap_err();
        assert!(error.is_too_slow(), "{error}");
        let undone = async || fleet.iter().all(|server| server.calls().releases() == 1);
        eventually_async("every node was told to delete the key", undone).await;
        assert!(fleet.holders("k").is_empty());
        assert!(expired(&fleet) == 0, "the keys were deleted, and not left to their expiry");
    };
    tokio::join!(is_refused(1), is_refused(3));
}

#[tokio::test]
async fn case_20_names_are_told_apart_byte_by_byte() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker = connected(builder(&fleet)).await;
    let names: [&[u8]; 7] =
        [b"k", b"K", b"k ", b"k\0", "\0🐉\r\n".as_bytes(), "\0🐉\n\r".as_bytes(), &[0xff, 0xfe]];
    let mut guards = Vec::new();
    for name in names {
        guards.push(locker.lock(name).try_acquire().await.unwrap().unwrap());
    }
    for (name, guard) in names.iter().zip(guards) {
        assert_eq!(guard.key(), *name);
        assert!(locker.lock(name).try_acquire().await.unwrap().is_none());
        assert!(guard.release().await.unwrap().is_released());
        let released = async || fleet.holders(name).is_empty();
        eventually_async("all nodes have released it, and not a majority alone", released).await;
    }
}

/// Two nodes hold the key for a minute, three for seconds: the lock is held for seconds.
#[cfg(unix)]
#[tokio::test]
async fn case_21_the_shortest_lease_of_the_quorum_decides() {
    const TTL: Duration = Duration::from_secs(30);
    need_server!();
    let fleet = Fleet::start(5);
    let locker = connected(builder(&fleet).node_timeout(Duration::from_secs(1))).await;
    let guard = hold_unextended(&locker, TTL).await;
    for stopped in [0, 1, 2] {
        fleet[stopped].pause();
    }
    let error = guard.extend(6 * TTL).await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    for extended in [3, 4] {
        // On a machine that is that busy, this may be later than the deadline.
        let granted = async || fleet[extended].command(&["PTTL", "k"]).int() > 60_000;
        eventually_async("this node has granted it", granted).await;
    }
    assert!(guard.remaining() <= TTL, "{:?}", guard.remaining());
    for stopped in [0, 1, 2] {
        fleet[stopped].resume();
    }
    assert!(guard.release().await.unwrap().is_released());
    held_by_none(&fleet).await;
}
