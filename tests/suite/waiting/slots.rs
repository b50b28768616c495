//! Asking for slots and waiting for them, exactly: on nodes inside this process under a driven
//! clock. What one node believes decides neither who has a slot nor for how long one waits.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorlock::testing::{Node, Nodes, Reaction, When};
use quorlock::{Error, Event, Extend, LockGuard, LockRequest, Locker, Observer, Retry};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::exact::{connected, ms};

/// As another process, one that finds nothing free by polling.
async fn process(nodes: &Nodes, name: &str) -> Locker {
    let polls = Retry::fixed(Duration::from_secs(60));
    connected(nodes.locker().owner(name).retry(polls)).await
}

/// Waits in a task; when that has ended, and how.
fn wait(request: LockRequest) -> JoinHandle<(Instant, Result<LockGuard, Error>)> {
    tokio::spawn(async move {
        let ended = request.wait(ms(60_000)).await;
        (Instant::now(), ended)
    })
}

/// The node that keeps the queue for these slots, while one waits there.
fn keeps(nodes: &Nodes, count: u16) -> usize {
    let queue = format!("{{k}}:slots:{count}:quorlock:queue").into_bytes();
    nodes.iter().position(|node| node.keys().contains(&queue)).unwrap()
}

/// The same, while none does.
async fn would_keep(nodes: &Nodes, count: u16) -> usize {
    let locker = process(nodes, "finder").await;
    let held = locker.slots("k", count).acquire_many(count).await.unwrap();
    let waiting = wait(locker.slots("k", count).acquire());
    sleep(ms(10)).await;
    let node = keeps(nodes, count);
    waiting.abort();
    drop(held);
    sleep(ms(50)).await;
    assert!(nodes.iter().all(|node| node.keys().is_empty()));
    node
}

/// What a client has left on a node alone.
fn leave(node: &Node, slot: u16) {
    node.command(["SET", &format!("{{k}}:slot:{slot}"), "left", "PX", "600000"]);
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_is_free_is_had_by_one_that_does_not_wait() {
    for limit in [0, 3] {
        let nodes = Nodes::new(5);
        let locker = process(&nodes, "one").await;
        nodes.add(When::before_any().then(Reaction::Delay(ms(10))));
        let slots = locker.slots("k", 2);
        let one = slots.acquire().wait(ms(limit)).await.unwrap();
        let two = slots.acquire().try_acquire().await.unwrap().expect("there is another");
        assert_ne!(one.slots(), two.slots());
        let error = slots.acquire().wait(ms(limit)).await.unwrap_err();
        assert!(error.is_contended(), "{error}");
    }
}

/// The try takes the time of that node, and of one round trip.
#[tokio::test(start_paused = true)]
async fn with_the_queues_node_silent_a_slot_is_had_from_the_others() {
    let nodes = Nodes::new(5);
    let node = would_keep(&nodes, 3).await;
    let locker = process(&nodes, "one").await;
    nodes[node].hang();
    let began = Instant::now();
    let guard = locker.slots("k", 3).acquire().wait(ms(80)).await.unwrap();
    assert!(began.elapsed() <= ms(210), "{:?}", began.elapsed());
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn with_all_nodes_silent_that_is_what_is_told_and_soon() {
    for limit in [0, 30, 80] {
        let nodes = Nodes::new(5);
        let locker = process(&nodes, "one").await;
        nodes.iter().for_each(Node::hang);
        let began = Instant::now();
        let error = locker.slots("k", 3).acquire().wait(ms(limit)).await.unwrap_err();
        assert!(error.is_unavailable(), "{error}");
        assert!(began.elapsed() <= ms(410), "{:?}", began.elapsed());
    }
}

/// Every four seconds it looks at all nodes; it keeps its place, and is woken as before.
#[tokio::test(start_paused = true)]
async fn one_that_waits_long_is_woken_as_soon_as_one_that_does_not() {
    for count in [1, 2] {
        for after in [3_000, 4_100, 4_700, 8_500] {
            let nodes = Nodes::new(5);
            let (holder, waiter) = (process(&nodes, "h").await, process(&nodes, "w").await);
            let held = holder.slots("k", count).acquire_many(count).await.unwrap();
            let waiting = wait(waiter.slots("k", count).acquire());
            sleep(ms(after)).await;
            let freed = Instant::now();
            drop(held);
            let (at, won) = waiting.await.unwrap();
            assert!(won.is_ok() && at - freed <= ms(20), "{count}, {after}: {:?}", at - freed);
        }
    }
}

#[derive(Default)]
struct Told(Mutex<u32>);

impl Observer for Told {
    fn on_event(&self, event: &Event<'_>) {
        *self.0.lock().unwrap() += u32::from(matches!(event, Event::Waiting { .. }));
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_waits_long_is_told_of_once_and_counts_once() {
    let (nodes, told) = (Nodes::new(5), Arc::new(Told::default()));
    let holder = process(&nodes, "h").await;
    let waiter = connected(nodes.locker().owner("w").observer(told.clone())).await;
    let held = holder.slots("k", 2).acquire_many(2).await.unwrap();
    let waiting = wait(waiter.slots("k", 2).acquire());
    for _ in 0..50 {
        sleep(ms(333)).await;
        let stats = waiter.stats();
        assert_eq!((stats.waiting, stats.ended), (1, 0));
    }
    drop(held);
    drop(waiting.await.unwrap().1.unwrap());
    assert_eq!((*told.0.lock().unwrap(), waiter.stats().ended), (1, 1));
}

/// However often it is told before there are enough.
#[tokio::test(start_paused = true)]
async fn one_that_wants_all_is_woken_by_the_last_that_lets_go() {
    let (nodes, count) = (Nodes::new(3), 40);
    let (holder, waiter) = (process(&nodes, "h").await, process(&nodes, "w").await);
    let mut guards = Vec::new();
    for _ in 0..count {
        guards.push(holder.slots("k", count).acquire().await.unwrap());
    }
    let waiting = wait(waiter.slots("k", count).acquire_many(count));
    let mut freed = Instant::now();
    for guard in guards {
        sleep(ms(3)).await;
        freed = Instant::now();
        drop(guard);
    }
    let (at, won) = waiting.await.unwrap();
    assert!(won.is_ok() && at - freed <= ms(20), "{:?}", at - freed);
}

/// Of four slots the first and the third are free.
#[tokio::test(start_paused = true)]
async fn where_no_node_tells_of_anything_slots_are_found_that_are_no_neighbours() {
    let rules = "on >pw ~* resetchannels +@all";
    let nodes = Nodes::builder(3).each(|node| node.user("deaf", rules)).build();
    let locker = nodes.locker_as("deaf", "pw").ttl(ms(30_000)).build().unwrap();
    locker.ready(ms(1_000)).await.unwrap();
    [1, 3].into_iter().for_each(|slot| nodes.iter().for_each(|node| leave(node, slot)));
    let began = Instant::now();
    let two = locker.slots("k", 4).acquire_many(2).await.unwrap();
    let mut numbers = two.slots();
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 2]);
    assert!(began.elapsed() <= ms(20), "{:?}", began.elapsed());
}

/// It has no right to the queue's names, so all it has to do with are its slots.
#[tokio::test(start_paused = true)]
async fn who_may_touch_slots_alone_leaves_none_of_them_behind() {
    let rules = "on >pw ~{k}:slot:* &* +@all";
    for weight in [1, 2] {
        let nodes = Nodes::builder(3).each(|node| node.user("app", rules)).build();
        let locker = connected(nodes.locker_as("app", "pw")).await;
        for is_awaited in [true, false] {
            let guard = locker.slots("k", 4).acquire_many(weight).await.unwrap();
            match is_awaited {
                true => assert!(guard.release().await.unwrap().is_released()),
                false => drop(guard),
            }
            sleep(ms(20)).await;
            assert!(nodes.iter().all(|node| node.keys().is_empty()), "weight {weight}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_left_on_the_queues_node_alone_keeps_no_one_from_a_slot() {
    for count in [2, 16] {
        let nodes = Nodes::new(5);
        let node = would_keep(&nodes, count).await;
        let (holder, waiter) = (process(&nodes, "h").await, process(&nodes, "w").await);
        let held = holder.slots("k", count).acquire_many(count - 1).await.unwrap();
        let free = (0..count).find(|slot| !held.slots().contains(slot)).unwrap();
        leave(&nodes[node], free);
        let tried = waiter.slots("k", count).acquire().try_acquire().await.unwrap();
        assert_eq!(tried.expect("four of five have it free").slots(), [free]);
        sleep(ms(20)).await;
        leave(&nodes[node], free);
        let began = Instant::now();
        let (at, won) = wait(waiter.slots("k", count).acquire()).await.unwrap();
        assert!(won.is_ok() && at - began <= ms(4_100), "{count}: {:?}", at - began);
    }
}

/// By the first in the queue: those behind it keep their places.
#[tokio::test(start_paused = true)]
async fn what_was_left_there_without_an_end_is_found_out_as_well() {
    let nodes = Nodes::new(5);
    let node = would_keep(&nodes, 1).await;
    let (one, other) = (process(&nodes, "one").await, process(&nodes, "other").await);
    nodes[node].command(["SET", "{k}:slot:0", "left"]);
    let began = Instant::now();
    let first = wait(one.slots("k", 1).acquire());
    sleep(ms(100)).await;
    let second = wait(other.slots("k", 1).acquire());
    let (at, won) = first.await.unwrap();
    let guard = won.unwrap();
    assert!(at - began <= ms(4_100), "{:?}", at - began);
    sleep(ms(1_000)).await;
    assert!(guard.is_valid() && !second.is_finished());
    assert!(guard.release().await.unwrap().is_released());
    let (at, won) = second.await.unwrap();
    assert!(won.is_ok() && at - began <= ms(10_000), "{:?}", at - began);
}

/// It gives slots that all others hold. They are asked for, and not all the time.
#[tokio::test(start_paused = true)]
async fn a_queues_node_that_has_forgotten_all_costs_few_commands_and_no_lock() {
    let nodes = Nodes::new(5);
    let node = would_keep(&nodes, 64).await;
    let holder = process(&nodes, "h").await;
    let waiter = connected(nodes.locker().owner("w")).await;
    let held = holder.slots("k", 64).acquire_many(64).await.unwrap();
    nodes[node].command(["FLUSHALL"]);
    let calls = |node: &Node| node.calls("SET") + node.calls("EVALSHA") + node.calls("MGET");
    let before: u64 = nodes.iter().map(calls).sum();
    let waiting = wait(waiter.slots("k", 64).acquire());
    sleep(ms(5_000)).await;
    let sent = nodes.iter().map(calls).sum::<u64>() - before;
    assert!(held.is_valid() && !waiting.is_finished() && sent <= 700, "{sent}");
    let tries = waiter.slots("k", 64).acquire().retry(Retry::fixed(ms(10)).tries_max(3));
    let error = tries.await.unwrap_err();
    assert!(error.to_string().contains("after 3 tries"), "{error}");
}

/// The node that keeps the queue has lost both slots, and offers one that its holder still has.
#[tokio::test(start_paused = true)]
async fn one_that_is_offered_what_others_have_asks_again_within_half_a_second() {
    for slot in [0, 1] {
        let nodes = Nodes::new(3);
        let node = would_keep(&nodes, 2).await;
        let (holder, waiter) = (process(&nodes, "h").await, process(&nodes, "w").await);
        let slots = holder.slots("k", 2);
        let hold = async || slots.acquire().auto_extend(Extend::Off).await.unwrap();
        let (held, mut freed) = (hold().await, hold().await);
        let mut held = held;
        if freed.slots() != [slot] {
            std::mem::swap(&mut held, &mut freed);
        }
        nodes[node].command(["FLUSHALL"]);
        let waiting = wait(waiter.slots("k", 2).acquire());
        sleep(ms(50)).await;
        assert!(!waiting.is_finished());
        assert!(freed.release().await.unwrap().is_released());
        let free = Instant::now();
        let (had, got) = waiting.await.unwrap();
        assert_eq!(got.unwrap().slots(), [slot]);
        assert!(had - free <= ms(501), "{:?}", had - free);
        drop(held);
    }
}

/// It waits at the second best node, and those that come later at the best, which is back.
#[tokio::test(start_paused = true)]
async fn one_that_waits_at_another_node_moves_when_the_best_is_back() {
    let nodes = Nodes::new(5);
    let best = would_keep(&nodes, 1).await;
    let (holder, waiter) = (process(&nodes, "h").await, process(&nodes, "w").await);
    let barger = process(&nodes, "b").await;
    let mut held = holder.slots("k", 1).acquire().await.unwrap();
    nodes[best].stop();
    sleep(ms(20)).await;
    let waiting = wait(waiter.slots("k", 1).acquire());
    sleep(ms(100)).await;
    nodes[best].restart(true).unwrap();
    let began = Instant::now();
    while !waiting.is_finished() {
        let next = wait(barger.slots("k", 1).acquire());
        sleep(ms(20)).await;
        drop(held);
        while !next.is_finished() && !waiting.is_finished() {
            sleep(ms(1)).await;
        }
        if waiting.is_finished() {
            break;
        }
        held = next.await.unwrap().1.unwrap();
    }
    let (at, won) = waiting.await.unwrap();
    assert!(won.is_ok() && at - began <= ms(9_000), "{:?}", at - began);
}
