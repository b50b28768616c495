//! Waiting for a lock that another process holds, in the queue that one of the nodes keeps.
//!
//! | file | asks |
//! |---|---|
//! | here | in what order, and at what cost? |
//! | `beside` | does it go together with all else that a lock may go through? |
//! | `foreign` | what of holders that know nothing of queues, or die? |
//! | `leaving` | what is left of those that give up or are dropped? |
//! | `exact` | how late, at most, by a driven clock: cases 23 to 26 |
//! | `crowd` | are a thousand served whose nodes fail, by a driven clock? |
//! | `faults` | are they on real servers? |
//! | `storm` | do two ever have the lock, whatever fails by chance? |

mod beside;
mod crowd;
pub(crate) mod exact;
mod faults;
mod foreign;
mod killed;
mod leaving;
mod several;
mod slots;
mod storm;

use std::time::Duration;

pub(crate) use beside::hearing;
use quorlock::{LockGuard, Locker, LockerBuilder};
use support::reach::with;
use support::wait::PATIENCE;
use support::{Fleet, Reply, Server, Watchdog, eventually_async, need_process};

use crate::{connected, patient};

/// As another process: its connections and its name are its own.
async fn process(fleet: &Fleet, name: &str) -> Locker {
    connected(patient(hasty(fleet.urls(), name)).ttl(Duration::from_secs(30))).await
}

/// As another process, with the library's own deadlines, on servers that are asked to speak RESP3
/// whatever the environment says: without it no queue is kept.
fn hasty(urls: impl IntoIterator<Item = String>, name: &str) -> LockerBuilder {
    Locker::quorum(urls.into_iter().map(told)).unwrap().owner(name).unavailable_wait(Duration::MAX)
}

/// The node at this URL, spoken to in RESP3: it tells only such connections what they wait for.
pub(crate) fn told(url: String) -> String {
    with(&url, "protocol=3")
}

/// Connected to all nodes, and told by them what it waits for.
async fn listening(builder: LockerBuilder) -> Locker {
    let locker = connected(builder).await;
    eventually_async("all nodes tell what has changed", async || {
        locker.health().iter().all(|node| node.tells_hand_overs && node.tells_changes)
    })
    .await;
    locker
}

/// How often a command was executed, over all nodes, scripts' own commands included.
fn calls(fleet: &Fleet, command: &str) -> u64 {
    let stats = fleet.command(&["INFO", "commandstats"]);
    let line = format!("cmdstat_{command}:calls=");
    let of = |reply: &Reply| -> u64 {
        let text = reply.text();
        let found = text.lines().find_map(|text| text.strip_prefix(&line));
        found.and_then(|calls| calls.split(',').next()).map_or(0, |calls| calls.parse().unwrap())
    };
    stats.iter().map(of).sum()
}

/// How many wait in the queue of a key.
pub(crate) fn queued(fleet: &Fleet, key: &str) -> i64 {
    fleet.command(&["ZCARD", &format!("{{{key}}}:quorlock:queue")]).iter().map(Reply::int).sum()
}

pub(crate) async fn waits(fleet: &Fleet, key: &str, count: i64) {
    eventually_async("so many wait in the queue", async || queued(fleet, key) == count).await;
}

/// Returns when all nodes have the key for this guard. Until then another's try may take one before
/// it, which the lock then lacks; and no one stands in a queue that such a node keeps.
pub(crate) async fn is_everywhere(fleet: &Fleet, guard: &LockGuard) {
    let all: Vec<usize> = (0..fleet.len()).collect();
    let key = guard.key().to_string();
    eventually_async("all nodes have it", async || holders_of(fleet, &key, guard) == all).await;
}

/// The nodes that have the key for this guard.
fn holders_of(fleet: &Fleet, key: &str, guard: &LockGuard) -> Vec<usize> {
    let token = guard.owner_token();
    let held = fleet.command(&["GET", key]);
    let is_its = |held: &Reply| *held == Reply::Bulk(token.value().into());
    held.iter().enumerate().filter(|(_, held)| is_its(held)).map(|(node, _)| node).collect()
}

/// A node has been asked to tell of a change.
pub(crate) async fn is_watched(fleet: &Fleet) {
    eventually_async("the key is watched", async || fleet.iter().any(watches)).await;
}

/// Whether this node has been.
fn watches(node: &Server) -> bool {
    node.info("tracking_total_keys").as_deref() == Some("1")
}

fn wait(locker: &Locker, key: &'static str) -> tokio::task::JoinHandle<LockGuard> {
    let request = locker.lock(key).wait(PATIENCE);
    tokio::spawn(async move { request.await.unwrap() })
}

#[tokio::test]
async fn a_free_lock_is_taken_without_a_queue() {
    need_process!();
    let fleet = Fleet::start(3);
    let locker = process(&fleet, "one").await;
    let counts = || {
        ["zadd", "zrange", "zrem", "publish", "time"]
            .map(|command| (command, calls(&fleet, command)))
    };
    // A connection asks for the time, and scripts that it may not load but by executing them do.
    let at_login = counts();
    for _ in 0..50 {
        let guard = locker.lock("k").await.unwrap();
        assert!(guard.release().await.unwrap().is_released());
    }
    assert_eq!(counts(), at_login);
    // While tracking is on, each command costs a node more.
    let is_tracked = |node: &Server| node.info("tracking_clients").as_deref() != Some("0");
    assert!(!fleet.iter().any(is_tracked));
}

#[tokio::test]
async fn a_released_lock_goes_to_those_that_wait_in_the_order_of_their_arrival() {
    need_process!();
    let _watchdog = Watchdog::new("the order of arrival");
    let fleet = Fleet::start(5);
    let holder = process(&fleet, "holder").await;
    let guard = holder.lock("k").await.unwrap();
    let mut waiting = Vec::new();
    for number in 0..8 {
        let locker = process(&fleet, &format!("waiter-{number}")).await;
        waiting.push((wait(&locker, "k"), locker));
        waits(&fleet, "k", number + 1).await;
    }
    let polls = calls(&fleet, "set");
    assert!(guard.release().await.unwrap().is_released());
    for (number, (won, _)) in waiting.iter_mut().enumerate() {
        let guard = won.await.unwrap();
        assert!(guard.is_valid());
        let holders = fleet.holders("k");
        assert!(holders.len() >= 3, "{number}: {holders:?}");
        assert!(guard.release().await.unwrap().is_released());
    }
    eventually_async("nothing is left", async || fleet.keys_left("").is_empty()).await;
    // Each is handed the key by one, and sets it on five nodes.
    let sets = calls(&fleet, "set") - polls;
    assert!(sets <= 8 * (1 + 5), "{sets}");
}

#[tokio::test]
async fn one_that_waits_no_longer_leaves_nothing_behind() {
    need_process!();
    let _watchdog = Watchdog::new("nothing is left behind");
    let fleet = Fleet::start(3);
    let (holder, other) = (process(&fleet, "holder").await, process(&fleet, "other").await);
    let guard = holder.lock("k").await.unwrap();
    let third = process(&fleet, "third").await;
    let cancelled = tokio::spawn(other.lock("k").wait(PATIENCE).acquire());
    waits(&fleet, "k", 1).await;
    let last = wait(&third, "k");
    waits(&fleet, "k", 2).await;
    cancelled.abort();
    waits(&fleet, "k", 1).await;
    let error = other.lock("k").wait(Duration::from_millis(50)).await.unwrap_err();
    assert!(error.is_contended() && error.holder().is_some(), "{error}");
    waits(&fleet, "k", 1).await;
    assert!(guard.release().await.unwrap().is_released());
    assert!(last.await.unwrap().release().await.unwrap().is_released());
    eventually_async("nothing is left", async || fleet.keys_left("").is_empty()).await;
}

#[tokio::test]
async fn a_lock_whose_holder_dies_goes_to_the_first_that_waits() {
    need_process!();
    let _watchdog = Watchdog::new("the holder's end");
    let fleet = Fleet::start(3);
    for server in &fleet {
        let held = server.command(&["SET", "k", "of another client", "NX", "PX", "400"]);
        assert_eq!(held, Reply::ok());
    }
    let other = process(&fleet, "other").await;
    let guard = wait(&other, "k").await.unwrap();
    assert!(guard.is_valid());
    // Tried at once, and past the queue or in it when the key had ended: not again and again.
    assert!(calls(&fleet, "set") <= 3 + 3 + 3 + 3, "{}", calls(&fleet, "set"));
}

#[tokio::test]
async fn the_node_with_the_queue_may_stop_hang_and_forget_while_others_wait() {
    need_process!();
    let _watchdog = Watchdog::new("the faults of the node with the queue");
    let fleet = Fleet::start(5);
    let holder = process(&fleet, "holder").await;
    let mut waiters = Vec::new();
    for number in 0..4 {
        // With the default deadline: where two nodes grant and two refuse, the node that hangs is
        // waited for.
        let hasty = hasty(fleet.urls(), &format!("waiter-{number}"));
        waiters.push(connected(hasty.ttl(Duration::from_secs(30))).await);
    }
    let guard = holder.lock("k").await.unwrap();
    let visit = |locker: &Locker| {
        let request = locker.lock("k").wait(PATIENCE);
        tokio::spawn(async move { request.await.unwrap().release().await.unwrap() })
    };
    let waiting: Vec<_> = waiters.iter().map(visit).collect();
    waits(&fleet, "k", 4).await;
    let queue_node = fleet
        .command(&["EXISTS", "{k}:quorlock:queue"])
        .iter()
        .position(|it| it.int() == 1)
        .unwrap();
    fleet[queue_node].pause();
    assert!(guard.release().await.unwrap().is_released());
    for visited in waiting {
        assert!(visited.await.unwrap().is_released());
    }
}
