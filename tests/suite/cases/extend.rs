//! Extensions that fail: they claim nothing, and they make nothing.

use std::time::Duration;

use support::{Fleet, Reply, Script, Scripted, Server, eventually_async, need_server};

use super::{held_by_all, held_by_none, hold_unextended};
use crate::{builder, connected, single};

const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn case_09_an_extension_after_expiry_fails_and_creates_nothing() {
    need_server!();
    for size in [1, 5] {
        let fleet = Fleet::start(size);
        let locker = connected(builder(&fleet)).await;
        let guard = hold_unextended(&locker, Duration::from_millis(100)).await;
        held_by_none(&fleet).await;
        let error = guard.extend(LONG).await.unwrap_err();
        assert!(error.is_lost(), "{error}");
        // A round trip on the same connections: what was sent before it has been executed.
        assert_eq!(locker.inspect("k").await.unwrap().free(), size);
        assert!(!guard.is_valid());
    }
}

/// The lease still runs by our clock, and the nodes know better.
#[tokio::test]
async fn case_09_an_extension_of_a_deleted_key_fails_and_creates_nothing() {
    need_server!();
    for size in [1, 5] {
        let fleet = Fleet::start(size);
        let locker = connected(builder(&fleet)).await;
        let guard = hold_unextended(&locker, LONG).await;
        held_by_all(&fleet).await;
        fleet.command(&["DEL", "k"]);
        assert!(guard.is_valid(), "no node has told us yet");
        let error = guard.extend(2 * LONG).await.unwrap_err();
        assert!(error.is_lost(), "{error}");
        assert!(!guard.is_valid(), "what is lost is lost");
        guard.lost().await;
        assert_eq!(locker.inspect("k").await.unwrap().free(), size);
        let error = guard.extend(LONG).await.unwrap_err();
        assert!(error.is_lost(), "and stays lost: {error}");
    }
}

/// A thief's key is neither taken back nor extended.
#[tokio::test]
async fn case_09_an_extension_of_a_stolen_key_fails_and_leaves_the_thiefs() {
    need_server!();
    for size in [1, 5] {
        let fleet = Fleet::start(size);
        let locker = connected(builder(&fleet)).await;
        let guard = hold_unextended(&locker, LONG).await;
        fleet.command(&["SET", "k", "thief", "PX", "30000"]);
        let error = guard.extend(2 * LONG).await.unwrap_err();
        assert!(error.is_lost(), "{error}");
        locker.inspect("k").await.unwrap();
        for server in &fleet {
            assert_eq!(server.command(&["GET", "k"]), Reply::bulk("thief"));
            assert!(server.command(&["PTTL", "k"]).int() <= 30_000);
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn case_10_a_failed_extension_keeps_the_old_validity() {
    const TTL: Duration = Duration::from_secs(30);
    need_server!();
    for size in [1, 5] {
        let fleet = Fleet::start(size);
        // It is waited for, once: until then a node that hangs is no suspect.
        let locker = connected(builder(&fleet).node_timeout(Duration::from_secs(1))).await;
        let guard = hold_unextended(&locker, TTL).await;
        let deadline = guard.deadline();
        let majority = || fleet.iter().take(size / 2 + 1);
        majority().for_each(Server::pause);
        // Silent at first, and then known to be: both must leave the lease alone.
        for _ in 0..2 {
            let error = guard.extend(LONG).await.unwrap_err();
            assert!(error.is_unavailable(), "{error}");
            assert!(!error.nodes().is_empty(), "each node's part is told");
            assert!(guard.is_valid());
            let moved = guard.deadline().max(deadline) - guard.deadline().min(deadline);
            // It is told by reading a clock twice, between which a machine may pause; an extension
            // would move it by 30 s. That it moves by nothing: `src/lock/tests/by_hand.rs`.
            assert!(moved < Duration::from_secs(15), "moved by {moved:?}");
        }
        majority().for_each(Server::resume);
        // Suspects are asked again from their first reply on.
        let extended = async || guard.extend(LONG).await.is_ok();
        eventually_async("it is extended when they go on", extended).await;
        assert!(guard.remaining() > TTL);
        assert!(guard.release().await.unwrap().is_released());
    }
}

/// Nor does an error change anything, whether it says that nothing was applied or does not say.
#[tokio::test]
async fn case_10_an_extension_that_the_server_refuses_keeps_the_old_validity() {
    for refusal in ["-BUSY a script\r\n", "-WEIRD thing\r\n", "-NOPERM no pexpire\r\n"] {
        let server = Scripted::start(
            Script::greeting()
                .expect("SET")
                .reply("+OK\r\n")
                .expect("EVALSHA")
                .reply(refusal)
                .expect("EVALSHA")
                .reply(":1\r\n"),
        );
        let locker = single(server.url()).build().unwrap();
        let guard = hold_unextended(&locker, Duration::from_secs(10)).await;
        let error = guard.extend(LONG).await.unwrap_err();
        assert_eq!(error.is_authentication(), refusal.starts_with("-NOPERM"), "{error}");
        assert_ne!(error.is_authentication(), error.is_unavailable(), "{error}");
        assert!(guard.is_valid() && guard.remaining() < Duration::from_secs(10));
        assert!(guard.release().await.unwrap().is_released());
    }
}
