//! A release by the native command goes with all else that a lock may go through: the column
//! *native* of the manual's table.

use std::time::Duration;

use quorlock::{Client, Durability, LockGuard, Locker, LockerBuilder};
use support::eventually_async;
use support::in_process::Inside;
use support::wait::PATIENCE;

use super::{cycle, url, valkey};
use crate::{connected, quorum};

const LONGEST: Duration = Duration::from_secs(1);

/// Three nodes that have the command.
fn nodes() -> [Inside; 3] {
    [(); 3].map(|()| valkey("9.1.2"))
}

fn builder(nodes: &[Inside; 3]) -> LockerBuilder {
    quorum(nodes.iter().map(url)).ttl(LONGEST)
}

async fn locker(nodes: &[Inside; 3]) -> Locker {
    connected(builder(nodes)).await
}

/// A lock that stands on all nodes, and not on a majority alone.
async fn lock(locker: &Locker, key: &str, nodes: &[Inside; 3]) -> LockGuard {
    let guard = locker.lock(key).await.unwrap();
    let is_everywhere = async || nodes.iter().all(|node| node.value(key).is_some());
    eventually_async("all nodes have the key", is_everywhere).await;
    guard
}

/// In the end none of the keys is left, each node has deleted so many by the command, and none by
/// the script. (Where an adoption was answered late, the former value is undone, too; where that is
/// not there the script follows, for it may be revoked.)
async fn deleted(nodes: &[Inside; 3], times: u64) {
    let is_gone = |node: &Inside| ["k", "l"].iter().all(|key| node.value(key).is_none());
    let is_done = |node: &Inside| node.calls("delifeq") >= times && is_gone(node);
    eventually_async("each node has deleted all", async || nodes.iter().all(is_done)).await;
    for node in nodes {
        let (native, by_script) = (node.calls("delifeq"), node.calls("release"));
        assert!(by_script <= native - times, "{native} by the command, {by_script} by the script");
    }
}

#[tokio::test]
async fn a_lock_on_servers_that_forget_is_deleted_natively() {
    let nodes = nodes();
    let durability = Durability::Volatile { longest_ttl: LONGEST };
    let locker = connected(builder(&nodes).durability(durability)).await;
    locker.initialise().await.unwrap();
    cycle(&locker, "k").await;
    drop(locker.lock("k").await.unwrap());
    deleted(&nodes, 2).await;
}

#[tokio::test]
async fn a_lock_that_was_adopted_is_deleted_natively() {
    let nodes = nodes();
    let (holder, adopter) = (locker(&nodes).await, locker(&nodes).await);
    let token = lock(&holder, "k", &nodes).await.forget();
    let adopted = adopter.adopt("k", &token).await.unwrap();
    assert!(adopted.release().await.unwrap().is_released());
    deleted(&nodes, 1).await;
}

#[tokio::test]
async fn a_token_releases_its_lock_natively() {
    let nodes = nodes();
    let (holder, other) = (locker(&nodes).await, locker(&nodes).await);
    let token = lock(&holder, "k", &nodes).await.forget();
    assert!(other.release_by_token("k", &token).await.unwrap().is_released());
    deleted(&nodes, 1).await;
}

#[cfg(feature = "blocking")]
#[test]
fn a_plain_threads_lock_is_deleted_natively() {
    let nodes = nodes();
    let locker = builder(&nodes).build_blocking().unwrap();
    locker.ready(PATIENCE).unwrap();
    support::eventually("all nodes delete natively", || {
        locker.health().iter().all(|node| node.deletes_natively)
    });
    assert!(locker.lock("k").acquire().unwrap().release().unwrap().is_released());
    drop(locker.lock("k").acquire().unwrap());
    support::eventually("each node has deleted both", || {
        nodes.iter().all(|node| node.calls("delifeq") == 2 && node.value("k").is_none())
    });
}

/// On the same server, and each gets the answers to its own commands.
#[tokio::test]
async fn a_client_beside_such_locks_changes_neither() {
    let nodes = nodes();
    let locker = locker(&nodes).await;
    let client = Client::new(url(&nodes[0])).unwrap().timeout(PATIENCE);
    for round in 1..=100 {
        cycle(&locker, "k").await;
        let text = round.to_string();
        assert!(client.command(["SET", "n", &text]).await.unwrap().as_bytes().unwrap() == b"OK");
        assert_eq!(client.command(["DELIFEQ", "n", "0"]).await.unwrap().as_integer().unwrap(), 0);
        assert_eq!(client.command(["DELIFEQ", "n", &text]).await.unwrap().as_integer().unwrap(), 1);
    }
    let counts = nodes.each_ref().map(|node| node.calls("release"));
    assert_eq!(counts, [0; 3]);
    assert_eq!(nodes[0].calls("delifeq"), 300);
}

#[tokio::test]
async fn a_lock_that_ends_after_a_time_is_left_to_its_end() {
    let nodes = nodes();
    let locker = locker(&nodes).await;
    let guard = locker.lock("k").await.unwrap();
    assert!(guard.release_after(Duration::from_millis(100)).await.unwrap().is_released());
    deleted(&nodes, 0).await;
    cycle(&locker, "k").await;
    deleted(&nodes, 1).await;
}

#[tokio::test]
async fn a_lock_that_a_shutdown_leaves_is_adopted_and_deleted() {
    let nodes = nodes();
    let (holder, adopter) = (locker(&nodes).await, locker(&nodes).await);
    let guards = [lock(&holder, "k", &nodes).await, lock(&holder, "l", &nodes).await];
    let mut found = holder.shutdown_leaving(PATIENCE).await.unwrap();
    drop(guards);
    assert!(nodes.iter().all(|node| node.calls("delifeq") == 0));
    for left in found.left.drain(..) {
        let adopted = adopter.adopt(&left.key, &left.token).await.unwrap();
        assert!(adopted.release().await.unwrap().is_released());
    }
    deleted(&nodes, 2).await;
}
