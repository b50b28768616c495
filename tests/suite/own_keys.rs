//! The keys that nodes keep for themselves: no lock has their name, in any way in.

use std::future::IntoFuture;
use std::time::Duration;

use quorlock::{Durability, Error, Locker, OwnerToken};
use support::wait::eventually;
use support::{Fleet, Reply, need_server};

use crate::{builder, connected};

const LONGEST: Duration = Duration::from_secs(30);
const VOLATILE: Durability = Durability::Volatile { longest_ttl: LONGEST };

/// Behind no prefix, and as a locker of another prefix would have them.
const OWN: [&str; 10] = [
    "quorlock:epoch",
    "quorlock:quarantine",
    "p:quorlock:epoch",
    "p:quorlock:quarantine",
    "{k}:quorlock:queue",
    "{k}:quorlock:beats",
    "{k}:quorlock:fence",
    "{k}:quorlock:written",
    "{k}:quorlock:readers",
    "{k}:quorlock:gate",
];

/// What each way in says of this key.
async fn every_way_in(
    locker: &Locker,
    key: &str,
    token: &OwnerToken,
) -> Vec<(&'static str, Error)> {
    let lock = || locker.lock(key);
    let work = lock().run(|_held| async { Ok::<_, Error>(()) });
    vec![
        ("lock", lock().await.unwrap_err()),
        ("lock, with options", lock().ttl(LONGEST / 2).wait_forever().await.unwrap_err()),
        ("into_future", lock().into_future().await.unwrap_err()),
        ("try_acquire", lock().try_acquire().await.unwrap_err()),
        ("run", work.await.unwrap_err()),
        ("run_async", lock().run_async(async |_| Ok::<_, Error>(())).await.unwrap_err()),
        ("read", locker.read(key).await.unwrap_err()),
        ("adopt", locker.adopt(key, token).await.unwrap_err()),
        ("release_by_token", locker.release_by_token(key, token).await.unwrap_err()),
        ("force_release", locker.force_release(key).await.unwrap_err()),
        ("inspect", locker.inspect(key).await.unwrap_err()),
    ]
}

/// All commands but those by which the library looks after its connections.
fn writes(fleet: &Fleet) -> u64 {
    let of = |node: usize, name: &str| fleet[node].calls().of(name);
    let names = ["set", "get", "del", "delifeq", "pttl", "eval", "evalsha"];
    (0..fleet.len()).flat_map(|node| names.map(|name| of(node, name))).sum()
}

#[tokio::test]
async fn no_way_in_takes_the_nodes_own_keys_whatever_the_durability() {
    need_server!();
    for durability in [Durability::Persistent, VOLATILE] {
        let fleet = Fleet::start(3);
        let locker = connected(builder(&fleet).durability(durability)).await;
        if durability == VOLATILE {
            locker.initialise().await.unwrap();
        }
        // A release is told with two answers; this is the last that the third node runs for it.
        let calls = |node: usize| fleet[node].calls();
        let deleted = |node: usize| calls(node).of("del") + calls(node).of("delifeq");
        let earlier: Vec<u64> = (0..3).map(deleted).collect();
        let guard = locker.lock("k").await.unwrap();
        let token = guard.owner_token();
        assert!(guard.release().await.unwrap().is_released());
        let on_all = || (0..3).all(|node| deleted(node) == earlier[node] + 1);
        eventually("the last node releases, too", on_all);
        let before = writes(&fleet);
        for key in OWN {
            for (way, error) in every_way_in(&locker, key, &token).await {
                assert!(error.is_misuse(), "{way} of {key}: {error}");
                assert!(error.to_string().contains("the nodes' own"), "{way} of {key}: {error}");
            }
        }
        assert_eq!(writes(&fleet), before, "something was sent");
    }
}

#[tokio::test]
async fn a_quarantine_is_lifted_by_no_force() {
    need_server!();
    let fleet = Fleet::start(3);
    for prefix in ["", "p:"] {
        let locker = connected(builder(&fleet).prefix(prefix).durability(VOLATILE)).await;
        let quarantined = async || {
            let error = locker.lock("k").try_acquire().await.err();
            error.is_some_and(|error| error.is_unavailable() && error.retry_after().is_some())
        };
        assert!(quarantined().await, "the nodes are not in service yet");
        let own = format!("{prefix}quorlock:quarantine");
        let on_all = || (0..3).all(|n| fleet[n].command(&["EXISTS", &own]) == Reply::Int(1));
        eventually("the last node is asked, too", on_all);
        let with = |prefix: &str| builder(&fleet).prefix(prefix).build().unwrap();
        let (whole, part) = (with(""), with(&own[..3]));
        assert!(locker.force_release("quorlock:quarantine").await.unwrap_err().is_misuse());
        assert!(whole.force_release(&own).await.unwrap_err().is_misuse());
        assert!(part.force_release(&own[3..]).await.unwrap_err().is_misuse());
        assert!(on_all());
        assert!(quarantined().await);
    }
}
