//! Locks of several keys, all or nothing.

use std::time::Duration;

use super::Behaviour::{Down, Grants, Hangs};
use super::{World, ms, pass};
use crate::error::Error;
use crate::lease::Release;
use crate::lock::{LockGuard, LockRequest};
use crate::options::Durability;
use crate::testing::Nodes;

const KEYS: [&str; 3] = ["a", "b", "c"];

impl World {
    fn all(&self, keys: &[&str]) -> LockRequest {
        self.locker.lock_all(keys)
    }

    /// On how many nodes each of [`KEYS`] holds anything.
    fn each(&self) -> [usize; 3] {
        KEYS.map(|key| self.keys(key))
    }
}

fn misuse(request: LockRequest) -> String {
    let refused = request.acquire();
    let mut refused = std::pin::pin!(refused);
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    match refused.as_mut().poll(&mut cx) {
        std::task::Poll::Ready(Err(error)) if error.is_misuse() => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn no_key_a_key_twice_and_too_many_keys_are_refused() {
    let world = World::ready(1).await;
    assert!(misuse(world.all(&[])).contains("no key was given"));
    let twice = misuse(world.all(&["b", "a", "b"]));
    assert!(twice.contains("\"b\" was given twice"), "{twice}");
    let many: Vec<String> = (0..65).map(|key| key.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(misuse(world.all(&many)).contains("65 keys"));
    assert!(misuse(world.all(&["a", ""])).contains("the key is empty"));
    assert!(world.all(&many[1..]).await.is_ok(), "sixty-four");
}

#[tokio::test(start_paused = true)]
async fn all_keys_are_held_and_released_as_one() {
    let world = World::ready(3).await;
    let guard = world.all(&["c", "a", "b"]).await.unwrap();
    assert_eq!(world.each(), [3; 3]);
    assert_eq!(guard.keys(), KEYS, "sorted");
    assert_eq!(guard.key(), "a, b, c");
    let value = |key: &str| world.nodes[0].value(key).unwrap();
    assert!(KEYS.iter().all(|key| value(key) == value("a")), "one value");
    assert!(guard.release().await.unwrap().is_released());
    assert_eq!(world.each(), [0; 3]);
    drop(world.all(&KEYS).await.unwrap());
    pass(ms(1)).await;
    assert_eq!(world.each(), [0; 3], "a drop releases, too");
}

#[tokio::test(start_paused = true)]
async fn one_key_is_a_lock_as_well() {
    let world = World::ready(3).await;
    let guard = world.all(&["a"]).await.unwrap();
    assert_eq!(guard.keys(), ["a"]);
    assert!(world.locker.lock("a").try_acquire().await.unwrap().is_none());
    assert!(guard.release().await.unwrap().is_released());
    assert!(world.locker.lock("a").try_acquire().await.unwrap().is_some());
}

/// Where a key is held nothing is taken, and the error names the key.
#[tokio::test(start_paused = true)]
async fn a_key_that_is_held_keeps_all_others_free() {
    let world = World::ready(3).await;
    for held in KEYS {
        let plain = world.locker.lock(held).await.unwrap();
        assert!(world.all(&KEYS).try_acquire().await.unwrap().is_none());
        let error = world.all(&KEYS).wait(Duration::ZERO).await.unwrap_err();
        assert!(error.is_contended(), "{error}");
        assert!(error.to_string().starts_with(&format!("lock \"{held}\" is held by ")), "{error}");
        assert!(error.holder().unwrap().is_own, "{error}");
        let expected = KEYS.map(|key| if key == held { 3 } else { 0 });
        assert_eq!(world.each(), expected, "with {held}");
        assert!(plain.release().await.unwrap().is_released());
    }
    let all = world.all(&["a", "b"]).await.unwrap();
    assert!(world.all(&["b", "c"]).try_acquire().await.unwrap().is_none());
    let other = world.all(&["c"]).await.unwrap();
    drop((all, other));
}

/// Each key of each node in turn is another's: the lock is held on the other nodes, and nothing is
/// left of it where it could not be.
#[tokio::test(start_paused = true)]
async fn each_key_may_lose_one_nodes_grant() {
    for key in KEYS {
        for node in 0..3 {
            let world = World::ready(3).await;
            world.nodes[node].steal(key);
            let guard = world.all(&KEYS).await.unwrap();
            let held = KEYS.map(|other| if other == key { 3 } else { 2 });
            assert_eq!(world.each(), held, "{key} on node {node}");
            assert!(guard.release().await.unwrap().is_released());
            let left = KEYS.map(|other| usize::from(other == key));
            assert_eq!(world.each(), left, "{key} on node {node} stays the other's");
        }
    }
}

/// The grants of a minority are undone, on just the nodes that gave them.
#[tokio::test(start_paused = true)]
async fn partial_grants_are_undone() {
    let world = World::ready(5).await;
    for (node, key) in [(0, "a"), (1, "b"), (2, "c")] {
        world.nodes[node].steal(key);
    }
    let refused = world.all(&KEYS).try_acquire().await.unwrap();
    assert!(refused.is_none());
    pass(ms(1)).await;
    assert_eq!(world.each(), [1; 3], "what is another's, and nothing else");
}

#[tokio::test(start_paused = true)]
async fn all_keys_are_extended_and_the_loss_of_one_is_the_locks() {
    let world = World::ready(3).await;
    let guard = world.all(&KEYS).await.unwrap();
    pass(ms(60_000)).await;
    assert!(guard.is_valid() && world.each() == [3; 3]);
    guard.extend(ms(50_000)).await.unwrap();
    assert!(KEYS.iter().all(|key| world.nodes[0].left(key) > ms(49_000)));
    world.nodes[1].delete("b");
    world.nodes[2].steal("c");
    let lost = guard.extend(ms(50_000)).await.unwrap_err();
    assert!(lost.is_lost() && !guard.is_valid(), "{lost}");
    assert!(matches!(guard.release().await.unwrap(), Release::Expired | Release::Taken));
    assert_eq!(world.each(), [0, 0, 1]);
}

/// A node that has lost one of the keys is given it again, once a majority has confirmed that it
/// holds them all.
#[tokio::test(start_paused = true)]
async fn a_node_that_lost_a_key_is_given_it_again() {
    let world = World::ready(3).await;
    let guard = world.all(&KEYS).await.unwrap();
    world.nodes[0].delete("b");
    pass(ms(4_000)).await;
    assert_eq!(world.each(), [3; 3]);
    world.set(1..2, Down);
    pass(ms(30_000)).await;
    assert!(guard.is_valid(), "the healed node counts");
}

/// A node that has lost one of the keys still has the others for longer than the lock's TTL, by an
/// extension that no majority granted: given the lost one, it keeps their life.
#[tokio::test(start_paused = true)]
async fn a_key_that_lives_for_longer_keeps_its_life_when_another_is_given_again() {
    let world = World::ready(3).await;
    let guard = world.all(&KEYS).await.unwrap();
    world.set(1..3, Down);
    assert!(guard.extend(ms(60_000)).await.unwrap_err().is_unavailable());
    world.set(1..3, Grants);
    world.nodes[0].delete("b");
    pass(ms(4_000)).await;
    assert_eq!(world.each(), [3; 3]);
    let left = KEYS.map(|key| world.nodes[0].left(key));
    assert!(left[0] > ms(55_000) && left[2] > ms(55_000), "{left:?}");
    assert!(left[1] <= ms(10_000), "{left:?}");
    assert!(guard.is_valid());
}

/// A node that forgot the script says so, and is sent it whole, once.
#[tokio::test(start_paused = true)]
async fn the_script_is_sent_whole_to_nodes_that_have_forgotten_it() {
    let world = World::ready(3).await;
    let got = |what: &str| world.got(0, what).len();
    assert!(world.all(&KEYS).await.unwrap().release().await.unwrap().is_released());
    assert_eq!((got("acquire"), got("ACQUIRE")), (1, 0), "the handshake has brought it");
    world.nodes.iter().for_each(|node| node.forget_scripts());
    let guard = world.all(&KEYS).await.unwrap();
    assert_eq!((got("acquire"), got("ACQUIRE")), (2, 1));
    assert!(guard.release().await.unwrap().is_released());
    assert!(world.all(&KEYS).await.unwrap().release().await.unwrap().is_released());
    assert_eq!((got("acquire"), got("ACQUIRE")), (3, 1));
}

/// Behind a lock that ends stands a value that no lock wrote: it is looked for once the way is
/// another key's, and named.
#[tokio::test(start_paused = true)]
async fn a_foreign_value_behind_another_holder_is_found_and_named() {
    let world = World::ready(3).await;
    let plain = world.locker.lock("a").await.unwrap();
    for node in &world.nodes {
        assert!(node.command(["HSET", "b", "field", "value"]).as_error().is_none());
    }
    let releasing = async {
        pass(ms(1_000)).await;
        assert!(plain.release().await.unwrap().is_released());
    };
    let waiting = world.all(&KEYS).wait_forever().acquire();
    let (waited, ()) = tokio::join!(waiting, releasing);
    let error = waited.unwrap_err();
    assert!(error.is_foreign() && error.to_string().starts_with("\"b\" holds"), "{error}");
    assert_eq!((world.keys("a"), world.keys("c")), (0, 0));
}

/// What hangs is undone when it comes back, with all keys.
#[tokio::test(start_paused = true)]
async fn a_node_that_hung_is_told_to_delete_all_keys() {
    let world = World::ready(3).await;
    drop(world.all(&KEYS).await.unwrap());
    pass(ms(1)).await;
    world.set(0..2, Hangs);
    let error = world.all(&KEYS).wait(Duration::ZERO).await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    world.set(0..2, Grants);
    pass(ms(1_000)).await;
    assert_eq!(world.each(), [0; 3]);
}

#[tokio::test(start_paused = true)]
async fn it_is_kept_until_its_least_time_is_over() {
    let world = World::ready(3).await;
    let guard = world.all(&KEYS).await.unwrap();
    assert!(guard.release_after(ms(3_000)).await.unwrap().is_released());
    assert!(KEYS.iter().all(|key| world.nodes[2].left(key) == ms(3_000)));
    pass(ms(3_001)).await;
    assert_eq!(world.each(), [0; 3]);
}

#[tokio::test(start_paused = true)]
async fn its_token_is_neither_adopted_nor_released() {
    let world = World::ready(3).await;
    let guard: LockGuard = world.all(&KEYS).await.unwrap();
    let token = guard.forget();
    assert!(token.as_str().starts_with("all:") && !token.is_left_behind());
    let refused = |error: Error| {
        assert!(error.is_misuse(), "{error}");
        assert!(error.to_string().contains("several keys"), "{error}");
    };
    refused(world.locker.adopt("a", &token).await.unwrap_err());
    refused(world.locker.release_by_token("a", &token).await.unwrap_err());
    assert_eq!(world.each(), [3; 3], "left to their expiry");
    let left = world.locker.lock_all(["x", "y"]).await.unwrap();
    let shutdown = world.locker.shutdown_leaving(ms(1_000)).await.unwrap();
    assert_eq!(shutdown.left[0].key, b"x, y");
    assert_eq!(shutdown.left[0].keys, [b"x", b"y"]);
    refused(world.beside().locker.adopt("x", &shutdown.left[0].token).await.unwrap_err());
    drop(left);
}

/// Where servers may forget, the nodes vote on all keys at once.
#[tokio::test(start_paused = true)]
async fn volatile_nodes_vote_on_all_keys() {
    let nodes = Nodes::new(3);
    let durability = Durability::Volatile { longest_ttl: Duration::from_secs(30) };
    let locker = nodes.locker().durability(durability).build().unwrap();
    locker.initialise().await.unwrap();
    let guard = locker.lock_all(KEYS).await.unwrap();
    assert!(locker.lock("b").try_acquire().await.unwrap().is_none());
    let error = locker.lock_all(["c", "d"]).wait(Duration::ZERO).await.unwrap_err();
    assert!(error.is_contended() && error.to_string().contains("\"c\""), "{error}");
    assert!(guard.release().await.unwrap().is_released());
    // A node that forgot gives no vote.
    for node in 0..2 {
        assert!(nodes[node].command(["FLUSHALL"]).is_ok());
    }
    let error = locker.lock_all(KEYS).wait(Duration::ZERO).await.unwrap_err();
    assert!(error.is_unavailable() && error.retry_after().is_some(), "{error}");
}
