//! Fences: numbers that rise with every holder of a lock.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorlock::testing::{Node, NodeBuilder, Reaction, When};
use quorlock::{Client, Durability, Event, Fence, LockGuard, Locker, LockerBuilder, Observer};
use support::in_process::{self, Inside};
use support::wait::PATIENCE;
use support::{Reply, Server, eventually_async, need_server};

use crate::{connected, quorum, single};

const KEY: &str = "{k}:quorlock:fence";

fn nodes(count: usize) -> Vec<Inside> {
    nodes_of(count, Node::builder)
}

fn nodes_of(count: usize, builder: impl Fn() -> NodeBuilder) -> Vec<Inside> {
    (0..count).map(|_| in_process::serve(builder()).unwrap()).collect()
}

fn builder(nodes: &[Inside]) -> LockerBuilder {
    quorum(nodes.iter().map(|node| node.url().unwrap()))
}

/// A locker all of whose locks are fenced.
async fn locker(nodes: &[Inside]) -> Locker {
    connected(builder(nodes).fenced(true)).await
}

fn fence(guard: &LockGuard) -> Fence {
    guard.fence().expect("it is fenced")
}

async fn released(guard: LockGuard) {
    assert!(guard.release().await.unwrap().is_released());
}

/// How often each node was asked to take a fence.
fn asked(nodes: &[Inside]) -> Vec<u64> {
    nodes.iter().map(|node| node.calls("fence")).collect()
}

/// The server's time in microseconds.
fn now(node: &Inside) -> u64 {
    let time = node.command(["TIME"]);
    let word = |at: usize| -> u64 {
        let word = time.as_items().unwrap()[at].as_bytes().unwrap();
        std::str::from_utf8(word).unwrap().parse().unwrap()
    };
    word(0) * 1_000_000 + word(1)
}

#[tokio::test]
async fn a_fence_rises_with_every_holder_whoever_it_is() {
    for count in [1, 3, 5] {
        let nodes = nodes(count);
        let lockers =
            [locker(&nodes).await, locker(&nodes).await, connected(builder(&nodes)).await];
        let mut last = None;
        for round in 0..30 {
            let lock = lockers[round % 3].lock("k").fenced();
            let guard = lock.await.unwrap();
            let held = Some(fence(&guard));
            assert!(held > last, "{held:?} behind {last:?}");
            guard.extend(Duration::from_secs(20)).await.unwrap();
            assert_eq!(guard.fence(), held);
            last = held;
            released(guard).await;
        }
    }
}

#[tokio::test]
async fn who_inspects_a_lock_sees_its_fence() {
    let nodes = nodes(3);
    let locker = connected(builder(&nodes)).await;
    let seen = async || locker.inspect("k").await.unwrap().fence();
    let plain = locker.lock("k").await.unwrap();
    assert_eq!(seen().await, None);
    released(plain).await;
    let fenced = locker.lock("k").fenced().await.unwrap();
    let fence = fenced.fence();
    assert_eq!(seen().await, fence);
    released(fenced).await;
    assert_eq!(seen().await, fence, "it outlasts its lock");
    assert_eq!(locker.inspect("a}b").await.unwrap().fence(), None, "it can have no name");
}

/// Observers are told of a lock's fence with the lock.
#[tokio::test]
async fn an_observer_is_told_of_the_fence() {
    #[derive(Default)]
    struct Fences(Mutex<Vec<Option<Fence>>>);
    impl Observer for Fences {
        fn on_event(&self, event: &Event<'_>) {
            if let Event::Acquired { fence, .. } = event {
                self.0.lock().unwrap().push(*fence);
            }
        }
    }
    let (nodes, fences) = (nodes(3), Arc::new(Fences::default()));
    let locker = connected(builder(&nodes).observer(fences.clone())).await;
    let fenced = locker.lock("k").fenced().await.unwrap();
    let expected = [fenced.fence(), None];
    released(fenced).await;
    released(locker.lock("k").await.unwrap()).await;
    assert_eq!(*fences.0.lock().unwrap(), expected);
}

#[tokio::test]
async fn without_being_asked_for_nothing_is_fenced() {
    let nodes = nodes(3);
    let locker = connected(builder(&nodes)).await;
    let guard = locker.lock("k").await.unwrap();
    assert_eq!(guard.fence(), None);
    released(guard).await;
    assert_eq!(asked(&nodes), [0; 3]);
    assert!(nodes.iter().all(|node| node.value(KEY).is_none()));
}

#[tokio::test]
async fn a_fence_is_asked_for_once_on_fresh_keys_and_on_used_ones() {
    let nodes = nodes(5);
    let locker = locker(&nodes).await;
    for round in 0..50 {
        for key in ["k".to_owned(), format!("fresh-{round}")] {
            released(locker.lock(key).await.unwrap()).await;
        }
    }
    eventually_async("all were asked", async || asked(&nodes).iter().all(|asked| *asked >= 100))
        .await;
    // A machine that is busy may hold a command up for longer than the tokens are ahead.
    assert!(asked(&nodes).iter().all(|asked| *asked < 110), "{:?}", asked(&nodes));
}

/// Where the nodes' clocks are ahead, or another client's was.
#[tokio::test]
async fn who_is_behind_the_fences_asks_twice_and_knows_better_then() {
    let nodes = nodes(3);
    let ahead = now(&nodes[0]) + 2_000_000;
    for node in &nodes {
        node.command(["SET", KEY, &ahead.to_string()]);
    }
    let locker = locker(&nodes).await;
    let guard = locker.lock("k").await.unwrap();
    assert_eq!(fence(&guard).number(), ahead + 1);
    released(guard).await;
    for _ in 0..50 {
        released(locker.lock("k").await.unwrap()).await;
    }
    // Twice the first time.
    let is_asked = async || asked(&nodes).iter().all(|asked| *asked >= 52);
    eventually_async("all were asked", is_asked).await;
    assert!(asked(&nodes).iter().all(|asked| *asked < 60), "{:?}", asked(&nodes));
}

/// Its fence is beyond what the others would take.
#[tokio::test]
async fn a_node_that_is_far_ahead_does_not_carry_the_others_with_it() {
    let nodes = nodes(3);
    let far = now(&nodes[0]) + 3_600_000_000;
    nodes[0].command(["SET", KEY, &far.to_string()]);
    let locker = locker(&nodes).await;
    for _ in 0..5 {
        let guard = locker.lock("k").await.unwrap();
        assert!(fence(&guard).number() < far - 3_000_000_000);
        released(guard).await;
    }
    assert_eq!(nodes[0].value(KEY).unwrap(), far.to_string().as_bytes());
}

#[tokio::test]
async fn a_node_that_forgot_its_fences_stands_at_its_time() {
    let nodes = nodes(3);
    let locker = locker(&nodes).await;
    let guard = locker.lock("k").await.unwrap();
    let before = fence(&guard);
    released(guard).await;
    nodes.iter().for_each(|node| drop(node.command(["DEL", KEY])));
    let guard = locker.lock("k").await.unwrap();
    assert!(fence(&guard) > before);
    released(guard).await;
}

#[tokio::test]
async fn a_fence_that_is_none_grants_no_lock_and_leaves_none() {
    for (set, why) in [
        (&["RPUSH", KEY, "x"][..], "WRONGTYPE"),
        (&["SET", KEY, "x"], "not a whole number"),
        (&["SET", KEY, "9007199254740992"], "not a whole number"),
        (&["SET", KEY, "-1"], "not a whole number"),
    ] {
        let nodes = nodes(3);
        nodes.iter().for_each(|node| drop(node.command(set)));
        let locker = locker(&nodes).await;
        let error = locker.lock("k").wait(Duration::ZERO).await.unwrap_err();
        assert!(error.is_unavailable(), "{error}");
        let told = format!("{:?}", error.nodes());
        assert!(told.contains(why), "{told}");
        let is_gone = async || nodes.iter().all(|node| node.value("k").is_none());
        eventually_async("no lock is left", is_gone).await;
        // Unfenced, it is to be had.
        let plain = connected(builder(&nodes)).await;
        released(plain.lock("k").await.unwrap()).await;
    }
}

#[tokio::test]
async fn a_key_whose_fence_can_have_no_name_is_refused_before_anything_is_sent() {
    let nodes = nodes(1);
    let locker = connected(builder(&nodes)).await;
    let error = locker.lock("a}b").fenced().await.unwrap_err();
    assert!(error.is_misuse() && error.to_string().contains("fence"), "{error}");
    released(locker.lock("a}b").await.unwrap()).await;
}

#[tokio::test]
async fn a_lock_of_several_keys_has_one_fence_above_that_of_each() {
    let nodes = nodes(3);
    let locker = locker(&nodes).await;
    let one = locker.lock("a").await.unwrap();
    let first = fence(&one);
    released(one).await;
    let all = locker.lock_all(["a", "b"]).await.unwrap();
    let both = fence(&all);
    assert!(both > first);
    released(all).await;
    for key in ["a", "b"] {
        let one = locker.lock(key).await.unwrap();
        assert!(fence(&one) > both);
        released(one).await;
    }
}

#[tokio::test]
async fn who_adopts_a_lock_has_a_higher_fence_than_who_left_it() {
    let nodes = nodes(3);
    let (holder, adopter) = (locker(&nodes).await, locker(&nodes).await);
    let guard = holder.lock("k").await.unwrap();
    let before = fence(&guard);
    let token = guard.forget();
    let guard = adopter.adopt("k", &token).await.unwrap();
    assert!(fence(&guard) > before);
    released(guard).await;
}

#[tokio::test]
async fn who_waits_has_a_higher_fence_than_who_is_waited_for() {
    let nodes = nodes(5);
    let lockers = [locker(&nodes).await, locker(&nodes).await];
    let mut guard = lockers[0].lock("k").await.unwrap();
    for round in 1..20 {
        let waiting = lockers[round % 2].clone();
        let waits = tokio::spawn(async move { waiting.lock("k").await.unwrap() });
        eventually_async("it waits", async || lockers[round % 2].stats().waiting == 1).await;
        let before = fence(&guard);
        released(guard).await;
        guard = waits.await.unwrap();
        assert!(fence(&guard) > before);
    }
    released(guard).await;
}

/// The fence is asked for behind what takes the lock, and no answer is awaited before: it costs no
/// round trip.
#[tokio::test]
async fn who_adopts_asks_for_the_lock_and_its_fence_at_once() {
    let nodes = nodes(3);
    let (holder, adopter) = (locker(&nodes).await, locker(&nodes).await);
    let token = holder.lock("k").await.unwrap().forget();
    // The fence may have been taken by a majority.
    eventually_async("all were asked", async || asked(&nodes) == [1; 3]).await;
    for node in &nodes {
        node.add(When::after("adopt").then(Reaction::Drop));
    }
    let adopts = tokio::spawn(async move { adopter.adopt("k", &token).await });
    eventually_async("the fence is asked for", async || asked(&nodes) == [2; 3]).await;
    adopts.abort();
}

/// The same, when the lock goes over to one that waits.
#[tokio::test]
async fn whose_turn_it_is_asks_for_the_lock_and_its_fence_at_once() {
    let nodes = nodes(5);
    let lockers = [locker(&nodes).await, locker(&nodes).await];
    let guard = lockers[0].lock("k").await.unwrap();
    eventually_async("all were asked", async || asked(&nodes) == [1; 5]).await;
    let waiting = lockers[1].clone();
    let waits = tokio::spawn(async move { waiting.lock("k").await });
    eventually_async("it waits", async || lockers[1].stats().waiting == 1).await;
    let before = asked(&nodes);
    for node in &nodes {
        node.add(When::after("set").then(Reaction::Drop));
    }
    released(guard).await;
    let is_asked = async || {
        asked(&nodes).iter().zip(&before).filter(|(now, before)| now > before).count() >= 4
    };
    eventually_async("the fence is asked for", is_asked).await;
    waits.abort();
}

#[tokio::test]
async fn on_servers_that_may_forget_a_lock_is_fenced_as_well() {
    let nodes = nodes(3);
    let durability = Durability::Volatile { longest_ttl: Duration::from_secs(10) };
    let locker = connected(builder(&nodes).durability(durability).fenced(true)).await;
    locker.initialise().await.unwrap();
    let mut last = None;
    for _ in 0..5 {
        let guard = locker.lock("k").await.unwrap();
        assert!(guard.fence() > last);
        last = guard.fence();
        released(guard).await;
    }
}

#[tokio::test]
async fn a_token_releases_a_fenced_lock_and_the_next_fence_is_higher() {
    let nodes = nodes(3);
    let (holder, other) = (locker(&nodes).await, locker(&nodes).await);
    let guard = holder.lock("k").await.unwrap();
    let before = fence(&guard);
    let token = guard.forget();
    assert!(other.release_by_token("k", &token).await.unwrap().is_released());
    let guard = other.lock("k").await.unwrap();
    assert!(fence(&guard) > before);
    released(guard).await;
}

#[cfg(feature = "blocking")]
#[test]
fn a_plain_threads_lock_has_its_fence() {
    let nodes = nodes(3);
    let locker = builder(&nodes).build_blocking().unwrap();
    locker.ready(PATIENCE).unwrap();
    let mut last = None;
    for _ in 0..5 {
        let guard = locker.lock("k").fenced().acquire().unwrap();
        assert!(guard.fence() > last);
        last = guard.fence();
        assert!(guard.release().unwrap().is_released());
    }
    assert!(locker.lock("k").acquire().unwrap().fence().is_none());
}

/// On the same server, and each gets the answers to its own commands.
#[tokio::test]
async fn a_client_beside_fenced_locks_changes_neither() {
    let nodes = nodes(3);
    let locker = locker(&nodes).await;
    let client = Client::new(nodes[0].url().unwrap()).unwrap().timeout(PATIENCE);
    let mut last = None;
    for round in 1..=100 {
        let guard = locker.lock("k").await.unwrap();
        let echoed = client.command(["ECHO", &format!("nonce-{round}")]).await.unwrap();
        assert_eq!(echoed.as_bytes().unwrap(), format!("nonce-{round}").as_bytes());
        assert!(guard.fence() > last);
        last = guard.fence();
        released(guard).await;
    }
}

#[tokio::test]
async fn a_fenced_lock_that_ends_after_a_time_leaves_its_fence() {
    let nodes = nodes(3);
    let locker = locker(&nodes).await;
    let guard = locker.lock("k").await.unwrap();
    let before = fence(&guard);
    assert!(guard.release_after(Duration::from_millis(100)).await.unwrap().is_released());
    let guard = locker.lock("k").await.unwrap();
    assert!(fence(&guard) > before);
    released(guard).await;
}

#[tokio::test]
async fn what_a_shutdown_leaves_is_adopted_with_higher_fences() {
    let nodes = nodes(3);
    let (holder, adopter) = (locker(&nodes).await, locker(&nodes).await);
    let guard = holder.lock("k").await.unwrap();
    let before = fence(&guard);
    let mut found = holder.shutdown_leaving(PATIENCE).await.unwrap();
    drop(guard);
    let left = found.left.pop().unwrap();
    let guard = adopter.adopt(&left.key, &left.token).await.unwrap();
    assert!(fence(&guard) > before);
    released(guard).await;
}

/// It excludes and is excluded, and makes no fence fall.
#[tokio::test]
async fn a_client_that_knows_no_fences_is_no_way_round_them() {
    let nodes = nodes(3);
    let fenced = locker(&nodes).await;
    let plain = connected(builder(&nodes)).await;
    let first = fenced.lock("k").await.unwrap();
    let before = fence(&first);
    assert!(plain.lock("k").try_acquire().await.unwrap().is_none());
    released(first).await;
    let between = plain.lock("k").await.unwrap();
    assert!(fenced.lock("k").try_acquire().await.unwrap().is_none());
    released(between).await;
    for node in &nodes {
        node.command(["SET", "k", "of another library", "NX", "PX", "10000"]);
        node.command(["DEL", "k"]);
    }
    let last = fenced.lock("k").await.unwrap();
    assert!(fence(&last) > before);
    released(last).await;
}

/// The first of two answers says that the token is too low, and the other one is yet to come.
#[tokio::test]
async fn with_a_node_down_too_low_a_token_is_followed_by_a_higher_one() {
    for _ in 0..20 {
        let nodes = nodes(3);
        let ahead = now(&nodes[0]) + 2_000_000;
        let locker = connected(builder(&nodes)).await;
        for node in &nodes {
            node.command(["SET", KEY, &ahead.to_string()]);
        }
        nodes[2].add(When::before_any().then(Reaction::Cut { after_bytes: 0 }));
        // The scripts are not known there either.
        let guard = locker.lock("k").fenced().wait(Duration::ZERO).await.unwrap();
        assert!(fence(&guard).number() > ahead);
        released(guard).await;
    }
}

#[tokio::test]
async fn a_locker_all_of_whose_locks_are_fenced_refuses_a_name_before_it_sends_it() {
    let nodes = nodes(1);
    let locker = locker(&nodes).await;
    assert!(locker.lock("a}b").await.unwrap_err().is_misuse());
    let token = quorlock::OwnerToken::from("left:x".to_owned());
    assert!(locker.adopt("a}b", &token).await.unwrap_err().is_misuse());
    assert_eq!((nodes[0].calls("set"), nodes[0].calls("adopt")), (0, 0));
}

/// By the words of each server. Rights to read a key alone came with Redis 7.
#[tokio::test]
async fn what_a_user_may_not_is_told_as_a_right_and_leaves_no_lock() {
    need_server!();
    let server = Server::start();
    let cases = [
        ("set", "~* &* +@all -set"),
        ("time", "~* &* +@all -time"),
        ("get", "~* &* +@all -get"),
        ("write", "~k %R~{k}:quorlock:fence &* +@all"),
    ];
    for (user, rules) in cases {
        let words = ["ACL", "SETUSER", user, "on", ">pw"];
        let words: Vec<&str> = words.into_iter().chain(rules.split(' ')).collect();
        if server.command(&words) != Reply::ok() {
            assert_eq!(user, "write", "every server knows the others");
            continue;
        }
        let url = server.url_as(&format!("{user}:pw"));
        let locker = connected(single(url).fenced(true)).await;
        let error = locker.lock("k").wait(Duration::ZERO).await.unwrap_err();
        assert!(error.is_authentication(), "{user}: {error}");
        let is_gone = async || server.command(&["EXISTS", "k"]).int() == 0;
        eventually_async("no lock is left", is_gone).await;
    }
}
