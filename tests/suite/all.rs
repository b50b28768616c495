//! Locks of several keys: all or none, and never two holders of any key.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use quorlock::{Client, Durability, LockGuard, Locker, Retry};
use support::wait::PATIENCE;
use support::{Fleet, Reply, Server, Watchdog, eventually_async, need_process, need_server};

use crate::waiting::{is_watched, told};
use crate::{builder, connected, quorum};

const LONGEST: Duration = Duration::from_secs(30);
const VOLATILE: Durability = Durability::Volatile { longest_ttl: LONGEST };

/// So many keys, which are not in their order.
fn keys(count: usize) -> Vec<String> {
    (0..count).rev().map(|key| format!("account:{key}")).collect()
}

/// A locker on a fleet that keeps its keys, or may forget them.
async fn locker(fleet: &Fleet, durability: Durability) -> Locker {
    let locker = connected(builder(fleet).durability(durability).ttl(LONGEST)).await;
    if durability == VOLATILE {
        locker.initialise().await.unwrap();
    }
    locker
}

/// Waits until each key stands on so many nodes.
async fn standing(fleet: &Fleet, keys: &[String], nodes: usize) {
    eventually_async("each key stands on so many nodes", async || {
        keys.iter().all(|key| fleet.holders(key).len() == nodes)
    })
    .await;
}

#[tokio::test]
async fn one_two_and_sixteen_keys_are_set_and_deleted_together() {
    need_server!();
    for (size, durability) in [(1, VOLATILE), (1, Durability::Persistent), (5, VOLATILE)] {
        let fleet = Fleet::start(size);
        let (ours, theirs) = (locker(&fleet, durability).await, locker(&fleet, durability).await);
        for count in [1, 2, 16] {
            let keys = keys(count);
            let guard = ours.lock_all(&keys).await.unwrap();
            assert!(guard.is_valid() && guard.keys().len() == count);
            standing(&fleet, &keys, size).await;
            for key in &keys {
                assert!(theirs.lock(key).try_acquire().await.unwrap().is_none(), "{key}");
                let value = fleet[0].command(&["GET", key]);
                let token = guard.owner_token();
                assert_eq!(value, Reply::bulk(token.value()), "one value under all keys");
                assert!(fleet[0].command(&["PTTL", key]).int() > 20_000, "{key} expires");
            }
            guard.extend(LONGEST).await.unwrap();
            assert!(guard.release().await.unwrap().is_released());
            standing(&fleet, &keys, 0).await;
        }
    }
}

/// A guard, the number of those that are inside of each key, and how many acquisitions were made.
#[derive(Default)]
struct Inside {
    keys: [AtomicU32; KEYS],
    done: AtomicU32,
}

const KEYS: usize = 12;
const TASKS: u64 = 32;
const ACQUISITIONS: u32 = 10_000;

impl Inside {
    /// Enters each key, checks that no other task is inside, and leaves.
    async fn visit(&self, guard: LockGuard, set: &[usize]) {
        for key in set {
            let others = self.keys[*key].fetch_add(1, Ordering::SeqCst);
            assert_eq!(others, 0, "two are inside of {key}");
        }
        tokio::task::yield_now().await;
        for key in set {
            self.keys[*key].fetch_sub(1, Ordering::SeqCst);
        }
        assert!(guard.is_valid(), "it was inside for a moment only");
        self.done.fetch_add(1, Ordering::SeqCst);
        assert!(guard.release().await.unwrap().is_released());
    }
}

/// From one to four neighbours of a ring of keys: each set overlaps others, and together they are a
/// circle in which ordered locks would wait for one another.
fn neighbours(draw: u64) -> Vec<usize> {
    let (first, count) = (draw as usize % KEYS, 1 + (draw >> 32) as usize % 4);
    (0..count).map(|step| (first + step) % KEYS).collect()
}

/// The next of a row of numbers that have nothing in common (xorshift).
fn next(draw: &mut u64) -> u64 {
    *draw ^= *draw << 13;
    *draw ^= *draw >> 7;
    *draw ^= *draw << 17;
    *draw
}

/// Tasks take sets of keys that overlap, and plain locks of single ones. No two are ever inside of
/// one key, and each task comes to its end: each waits for as long as it takes.
async fn overlap(size: usize, durability: Durability, acquisitions: u32) {
    let fleet = Fleet::start(size);
    let ms = Duration::from_millis;
    let retry = Retry::full_jitter(ms(1), ms(2), ms(8));
    let builder = builder(&fleet).durability(durability).ttl(LONGEST).retry(retry).wait_forever();
    // So many at once keep a slow machine's nodes behind for longer than one alone waits.
    let locker = connected(builder.node_timeout(6 * PATIENCE)).await;
    if durability == VOLATILE {
        locker.initialise().await.unwrap();
    }
    let (inside, share) = (Arc::new(Inside::default()), acquisitions.div_ceil(TASKS as u32));
    let watchdog = Watchdog::with_patience("each task to have its share", 24 * PATIENCE);
    let tasks: Vec<_> = (1..=TASKS)
        .map(|task| {
            let (locker, inside, mut draw) = (locker.clone(), inside.clone(), task << 20 | 1);
            tokio::spawn(async move {
                for _ in 0..share {
                    let set = neighbours(next(&mut draw));
                    let guard = match set[..] {
                        [only] => locker.lock(format!("account:{only}")).await,
                        _ => locker.lock_all(set.iter().map(|key| format!("account:{key}"))).await,
                    };
                    inside.visit(guard.unwrap(), &set).await;
                }
            })
        })
        .collect();
    for task in tasks {
        while !task.is_finished() {
            watchdog.check();
            tokio::time::sleep(ms(5)).await;
        }
        task.await.unwrap();
    }
    assert!(inside.done.load(Ordering::SeqCst) >= acquisitions);
    let is_empty =
        |fleet: &Fleet| fleet.keys_left("").iter().all(|(_, key)| key.ends_with("quorlock:epoch"));
    eventually_async("nothing is left", async || is_empty(&fleet)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overlapping_sets_never_have_two_holders_of_a_key_and_all_tasks_end() {
    need_server!();
    overlap(1, Durability::Persistent, ACQUISITIONS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overlapping_sets_on_a_quorum_never_have_two_holders_of_a_key_and_all_tasks_end() {
    need_server!();
    overlap(3, VOLATILE, ACQUISITIONS / 10).await;
}

/// Another's key on one node: the lock is had by the others, and the other's key stays.
#[tokio::test]
async fn each_key_may_be_anothers_on_one_node() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker = locker(&fleet, Durability::Persistent).await;
    let keys = keys(3);
    for key in &keys {
        for node in 0..3 {
            let set = fleet[node].command(&["SET", key, "by-hand", "NX", "PX", "60000"]);
            assert_eq!(set, Reply::ok(), "{key} on node {node}");
            let guard = locker.lock_all(&keys).await.unwrap();
            eventually_async("the two others hold all keys", async || {
                let held = |other: &String| fleet.holders(other).len();
                keys.iter().all(|other| held(other) == if other == key { 3 } else { 2 })
            })
            .await;
            assert!(guard.is_valid());
            assert!(guard.release().await.unwrap().is_released());
            eventually_async("only the other's key is left", async || {
                fleet.keys_left("") == [(node, key.clone())]
            })
            .await;
            fleet[node].command(&["DEL", key]);
        }
    }
}

/// Each key in turn is deleted on one node while the lock is held: it is held on, and given back to
/// the node that lost it.
#[tokio::test]
async fn each_key_may_be_lost_by_one_node_while_it_is_held() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker = locker(&fleet, Durability::Persistent).await;
    let keys = keys(3);
    // It is extended each second; a node that has lost a key says so then, and is given it.
    let guard = locker.lock_all(&keys).ttl(Duration::from_secs(3)).await.unwrap();
    standing(&fleet, &keys, 3).await;
    for (node, key) in keys.iter().enumerate() {
        assert_eq!(fleet[node].command(&["DEL", key]).int(), 1);
        standing(&fleet, &keys, 3).await;
        assert!(guard.is_valid(), "{key} on node {node}");
    }
    assert!(guard.release().await.unwrap().is_released());
    standing(&fleet, &keys, 0).await;
}

#[tokio::test]
async fn several_keys_released_after_a_time_end_then_on_the_servers() {
    need_server!();
    const MIN_HOLD: Duration = Duration::from_millis(1_000);
    let fleet = Fleet::start(3);
    let locker = locker(&fleet, Durability::Persistent).await;
    let began = Instant::now();
    let guard = locker.lock_all(["a", "b"]).await.unwrap();
    assert!(guard.release_after(MIN_HOLD).await.unwrap().is_released());
    let next = locker.lock_all(["b", "c"]).wait(PATIENCE).await.unwrap();
    // A server counts from the millisecond that it had read last.
    assert!(began.elapsed() >= MIN_HOLD - Duration::from_millis(2));
    drop(next);
}

#[tokio::test]
async fn several_keys_that_a_shutdown_leaves_stay_until_their_ttl() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker = locker(&fleet, Durability::Persistent).await;
    let guard = locker.lock_all(["b", "a"]).ttl(Duration::from_secs(1)).await.unwrap();
    let found = locker.shutdown_leaving(PATIENCE).await.unwrap();
    assert!(found.released == 0 && found.left.len() == 1, "{found:?}");
    assert_eq!(found.left[0].key, b"a, b");
    assert!(!guard.is_valid());
    drop(guard);
    for key in ["a", "b"] {
        eventually_async("it expires", async || fleet.holders(key).is_empty()).await;
    }
    let expired = |node: &Server| node.info("expired_keys").unwrap().parse::<u64>().unwrap();
    assert_eq!(fleet.iter().map(expired).sum::<u64>(), 6, "no client deleted them");
}

/// The same node, other connections, other commands: both kinds of lock are as they were.
#[tokio::test]
async fn a_client_beside_them_changes_neither_kind_of_lock() {
    need_server!();
    let fleet = Fleet::start(1);
    let locker = locker(&fleet, Durability::Persistent).await;
    let client = Client::new(fleet[0].url()).unwrap().timeout(PATIENCE);
    let several = locker.lock_all(["a", "b"]).await.unwrap();
    let plain = locker.lock("c").await.unwrap();
    let others = tokio::spawn(async move {
        let mut pipeline = client.pipeline();
        for n in 1..=500 {
            pipeline.command(["SET", "n", &n.to_string()]);
        }
        let replies = pipeline.run().await.unwrap();
        let are_done = replies.iter().all(|reply| reply.as_bytes().ok() == Some(b"OK"));
        assert!(replies.len() == 500 && are_done, "{replies:?}");
        let last = client.command(["GET", "n"]).await.unwrap();
        let set = client.command(["SET", "b", "mine", "NX"]).await.unwrap();
        (last.as_bytes().map(<[u8]>::to_vec).ok(), set.is_null())
    });
    for _ in 0..50 {
        several.extend(LONGEST).await.unwrap();
        plain.extend(LONGEST).await.unwrap();
        assert!(locker.lock("n:1").await.unwrap().release().await.unwrap().is_released());
        let beside = locker.lock_all(["n:1", "n:2"]).await.unwrap();
        assert!(beside.release().await.unwrap().is_released());
    }
    let (last, was_refused) = others.await.unwrap();
    assert_eq!((last.as_deref(), was_refused), (Some(&b"500"[..]), true));
    assert!(several.release().await.unwrap().is_released());
    assert!(plain.release().await.unwrap().is_released());
}

/// `SET NX PX`, as other libraries lock, on one of the keys.
#[tokio::test]
async fn a_plain_lock_of_any_library_on_one_key_excludes_it_and_is_excluded() {
    need_server!();
    for durability in [Durability::Persistent, VOLATILE] {
        let fleet = Fleet::start(3);
        let locker = locker(&fleet, durability).await;
        let keys = keys(3);
        for key in &keys {
            let by_hand = ["SET", key, "by-hand", "NX", "PX", "60000"];
            let guard = locker.lock_all(&keys).await.unwrap();
            standing(&fleet, &keys, 3).await;
            assert!(fleet.command(&by_hand).iter().all(|reply| *reply == Reply::Nil), "{key}");
            assert!(guard.release().await.unwrap().is_released());
            standing(&fleet, &keys, 0).await;

            assert!(fleet.command(&by_hand).iter().all(|reply| *reply == Reply::ok()), "{key}");
            assert!(locker.lock_all(&keys).try_acquire().await.unwrap().is_none());
            let error = locker.lock_all(&keys).wait(Duration::ZERO).await.unwrap_err();
            assert!(error.is_contended(), "{error}");
            assert!(error.to_string().starts_with(&format!("lock \"{key}\" is held")), "{error}");
            let others = keys.iter().filter(|other| *other != key);
            assert!(others.into_iter().all(|other| fleet.holders(other).is_empty()), "all or none");
            fleet.command(&["DEL", key]);
        }
    }
}

/// A locker that would not be there in time by polling.
async fn patient(fleet: &Fleet) -> Locker {
    let retry = Retry::fixed(Duration::from_secs(60));
    let nodes = fleet.urls().into_iter().map(told);
    connected(quorum(nodes).wait(PATIENCE).ttl(Duration::from_secs(30)).retry(retry)).await
}

/// Another process lets go of one of the keys, and has never heard that it is waited for.
#[tokio::test]
async fn a_lock_of_several_keys_hears_when_the_one_in_its_way_changes() {
    need_process!();
    let _watchdog = Watchdog::new("the key in the way");
    let fleet = Fleet::start(5);
    let (holder, waiter) = (patient(&fleet).await, patient(&fleet).await);
    for keys in [["a", "b"], ["b", "a"]] {
        let held = holder.lock("b").await.unwrap();
        let before = waiter.stats().changed;
        let waiting = waiter.lock_all(keys);
        let waiting = tokio::spawn(async move { waiting.await.unwrap() });
        is_watched(&fleet).await;
        assert!(held.release().await.unwrap().is_released());
        assert!(waiting.await.unwrap().release().await.unwrap().is_released());
        assert_eq!(waiter.stats().changed, before + 1);
    }
}

/// The release of several keys hands none of them over, and who waits for one of them hears of it.
#[tokio::test]
async fn who_waits_for_one_of_several_keys_hears_when_they_are_released() {
    need_process!();
    let _watchdog = Watchdog::new("several are released");
    let fleet = Fleet::start(5);
    let (holder, waiter) = (patient(&fleet).await, patient(&fleet).await);
    let held = holder.lock_all(["a", "b"]).await.unwrap();
    let waiting = waiter.lock("b");
    let waiting = tokio::spawn(async move { waiting.await.unwrap() });
    is_watched(&fleet).await;
    assert!(held.release().await.unwrap().is_released());
    assert!(waiting.await.unwrap().is_valid());
    assert_eq!(waiter.stats().changed, 1);
}
