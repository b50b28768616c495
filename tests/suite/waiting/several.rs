//! Waiting for several keys: one node is asked first, the same for all. Exact, on nodes inside this
//! process under a driven clock.

use std::time::Duration;

use quorlock::testing::{Node, Nodes, Reaction, When};
use quorlock::{LockGuard, Locker, Retry};
use tokio::time::{Instant, sleep};

use super::exact::{connected, ms};

const KEYS: [&str; 2] = ["a", "b"];

/// As another process, one that tries again after each pause and hears of nothing.
async fn process(nodes: &Nodes, name: &str, pause: Duration) -> Locker {
    let retry = Retry::fixed(pause).tries_max(u32::MAX);
    connected(nodes.locker().owner(name).retry(retry)).await
}

/// A client's value that was left under these keys, on some nodes.
fn leave<'a>(nodes: impl IntoIterator<Item = &'a Node>) {
    for node in nodes {
        KEYS.iter().for_each(|key| drop(node.command(["SET", key, "theirs", "PX", "600000"])));
    }
}

fn asked(node: &Node) -> u64 {
    node.calls("eval") + node.calls("evalsha")
}

/// The node that is asked first: the one that is asked most.
async fn first(nodes: &Nodes) -> usize {
    let waiter = process(nodes, "finder", ms(1)).await;
    leave(nodes.iter());
    let error = waiter.lock_all(KEYS).wait(ms(50)).await.unwrap_err();
    assert!(error.is_contended(), "{error}");
    nodes.iter().for_each(|node| drop(node.command(["DEL", KEYS[0], KEYS[1]])));
    let most = nodes.iter().enumerate().max_by_key(|(_, node)| asked(node));
    most.unwrap().0
}

/// One that waits in a task while both keys are held, and then are free on all nodes but one.
async fn freed_elsewhere(nodes: &Nodes, first: usize, hangs: bool) -> (Duration, LockGuard) {
    let waiter = process(nodes, "waiter", ms(10)).await;
    leave(nodes.iter());
    let request = waiter.lock_all(KEYS).wait(ms(10_000));
    let waiting = tokio::spawn(async move { request.await.unwrap() });
    sleep(ms(100)).await;
    if hangs {
        nodes[first].hang();
    }
    let others = nodes.iter().enumerate().filter(|(index, _)| *index != first);
    others.for_each(|(_, node)| drop(node.command(["DEL", KEYS[0], KEYS[1]])));
    let freed = Instant::now();
    let guard = waiting.await.unwrap();
    (freed.elapsed(), guard)
}

#[tokio::test(start_paused = true)]
async fn of_four_tries_that_find_a_key_held_three_cost_one_node_a_command() {
    let nodes = Nodes::new(5);
    let first = first(&nodes).await;
    let waiter = process(&nodes, "waiter", ms(10)).await;
    leave(nodes.iter());
    let before: Vec<u64> = nodes.iter().map(asked).collect();
    let error = waiter.lock_all(KEYS).wait(ms(1_000)).await.unwrap_err();
    assert!(error.is_contended() && error.to_string().contains("\"a\""), "{error}");
    let tries = asked(&nodes[first]) - before[first];
    assert!((80..=110).contains(&tries), "{tries} in a second");
    for (index, node) in nodes.iter().enumerate().filter(|(index, _)| *index != first) {
        let count = asked(node) - before[index];
        assert!(count.abs_diff(tries / 4 + 1) <= 1, "{index}: {count} of {tries}");
    }
}

/// It counts for one node, and there are others.
#[tokio::test(start_paused = true)]
async fn what_was_left_on_the_first_node_alone_keeps_keys_no_longer_than_four_tries() {
    let nodes = Nodes::new(5);
    let first = first(&nodes).await;
    let (took, guard) = freed_elsewhere(&nodes, first, false).await;
    assert!(took <= ms(4 * 11 + 2), "{took:?}");
    assert!(guard.is_valid());
}

#[tokio::test(start_paused = true)]
async fn a_first_node_that_hangs_keeps_keys_no_longer_than_its_timeout() {
    let nodes = Nodes::new(5);
    let first = first(&nodes).await;
    let (took, guard) = freed_elsewhere(&nodes, first, true).await;
    assert!(took <= ms(100 + 20), "{took:?}");
    assert!(guard.is_valid());
}

/// And not from when the others were.
#[tokio::test(start_paused = true)]
async fn a_lock_of_several_keys_lives_from_when_the_first_node_was_asked() {
    let nodes = Nodes::new(3);
    let first = first(&nodes).await;
    let waiter = process(&nodes, "waiter", ms(10)).await;
    leave(nodes.iter());
    let request = waiter.lock_all(KEYS).ttl(ms(10_000)).wait(ms(10_000));
    let waiting = tokio::spawn(async move {
        let guard = request.await.unwrap();
        (guard.remaining(), guard)
    });
    sleep(ms(5)).await;
    let slow = |command| When::before(command).then(Reaction::Delay(ms(40)));
    nodes[first].add(slow("evalsha"));
    nodes.iter().for_each(|node| drop(node.command(["DEL", KEYS[0], KEYS[1]])));
    let (remaining, guard) = waiting.await.unwrap();
    // Drift is a hundredth of it.
    assert!(remaining <= ms(9_900 - 40 + 2), "{remaining:?}");
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn a_try_that_asks_one_node_in_vain_and_then_all_counts_once() {
    let nodes = Nodes::new(5);
    let first = first(&nodes).await;
    let retry = Retry::fixed(ms(10)).tries_max(6);
    let waiter = connected(nodes.locker().owner("waiter").retry(retry)).await;
    leave(nodes.iter());
    nodes[first].hang();
    let error = waiter.lock_all(KEYS).wait(ms(10_000)).await.unwrap_err();
    assert!(error.to_string().contains("after 6 tries"), "{error}");
}
