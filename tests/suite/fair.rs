//! Locks that are acquired in the order of arrival: on nodes in the process, under a paused clock,
//! and on real servers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorlock::testing::{Nodes, Reaction, When};
use quorlock::{LockRequest, Locker, Retry};
use support::wait::PATIENCE;
use support::{Fleet, eventually_async, need_process};

use crate::waiting::{hearing, queued, waits};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A locker as of another process.
async fn process(nodes: &Nodes, name: &str) -> Locker {
    let locker = nodes.locker().owner(name).ttl(ms(10_000)).build().unwrap();
    locker.ready(ms(1_000)).await.unwrap();
    locker
}

fn calls(nodes: &Nodes, command: &str) -> u64 {
    nodes.iter().map(|node| node.calls(command)).sum()
}

#[tokio::test(start_paused = true)]
async fn a_free_lock_is_asked_for_where_its_queue_is_and_then_on_all_nodes() {
    let nodes = Nodes::new(5);
    let locker = process(&nodes, "one").await;
    let guard = locker.lock("k").fair().await.unwrap();
    assert!(nodes.iter().all(|node| node.value("k").is_some()));
    // What the script sets is counted, too.
    assert_eq!((calls(&nodes, "set"), calls(&nodes, "turn_ask")), (6, 2));
    assert!(guard.release().await.unwrap().is_released());
    let plain = locker.lock("other").await.unwrap();
    assert_eq!((calls(&nodes, "set"), calls(&nodes, "turn_ask")), (11, 2));
    drop(plain);
}

/// One that has met no one asks all nodes otherwise, and could come first.
#[tokio::test(start_paused = true)]
async fn a_newcomer_asks_no_node_for_the_lock_while_others_wait_for_it() {
    let nodes = Nodes::new(3);
    let (holder, waiter) = (process(&nodes, "holder").await, process(&nodes, "waiter").await);
    let held = holder.lock("k").await.unwrap();
    let waiting = tokio::spawn(waiter.lock("k").fair().wait_forever().acquire());
    tokio::time::sleep(ms(100)).await;
    for is_fair in [true, false] {
        let newcomer = process(&nodes, &format!("newcomer-{is_fair}")).await;
        let tries = calls(&nodes, "set");
        let request = newcomer.lock("k").wait_forever();
        let request = if is_fair { request.fair() } else { request };
        let coming = tokio::spawn(request.acquire());
        tokio::time::sleep(ms(10)).await;
        assert_eq!(calls(&nodes, "set") - tries, if is_fair { 0 } else { 3 });
        coming.abort();
        assert!(coming.await.unwrap_err().is_cancelled());
    }
    drop(held);
    assert!(waiting.await.unwrap().is_ok());
}

/// Nor does it try without end.
#[tokio::test(start_paused = true)]
async fn where_no_node_answers_it_fails_as_any_other() {
    let nodes = Nodes::new(3);
    let locker = process(&nodes, "one").await;
    nodes.iter().for_each(|node| node.stop());
    tokio::time::sleep(ms(10)).await;
    for wait in [ms(1), ms(300), ms(5_000)] {
        let request = locker.lock("k").fair().wait(wait).unavailable_wait(ms(5_000));
        let error = tokio::time::timeout(ms(8_000), request.acquire()).await.unwrap().unwrap_err();
        assert!(error.is_unavailable(), "{wait:?}: {error}");
    }
}

/// As a first try that asks all nodes is not.
#[tokio::test(start_paused = true)]
async fn a_free_lock_is_had_though_the_wait_is_shorter_than_a_round_trip() {
    let nodes = Nodes::new(3);
    let locker = process(&nodes, "one").await;
    for node in nodes.iter() {
        node.add(When::after_any().then(Reaction::Delay(ms(20))));
    }
    let guard = locker.lock("k").fair().wait(ms(5)).await.unwrap();
    let error = locker.lock("k").fair().wait(ms(5)).await.unwrap_err();
    assert!(error.is_contended(), "{error}");
    drop(guard);
}

/// What is handed on inside a process overtakes the others.
#[tokio::test(start_paused = true)]
async fn who_waits_elsewhere_is_not_overtaken_by_one_of_the_holders_process() {
    let nodes = Nodes::new(3);
    let builder = nodes.locker().owner("one").ttl(ms(10_000)).local_handover(ms(5_000));
    let (one, other) = (builder.build().unwrap(), process(&nodes, "other").await);
    one.ready(ms(1_000)).await.unwrap();
    let held = one.lock("k").fair().await.unwrap();
    let waiting = tokio::spawn(other.lock("k").fair().wait_forever().acquire());
    tokio::time::sleep(ms(10)).await;
    let next = tokio::spawn(one.lock("k").fair().wait_forever().acquire());
    tokio::time::sleep(ms(10)).await;
    drop(held);
    let had = waiting.await.unwrap().unwrap();
    assert!(!next.is_finished());
    drop(had);
    assert!(next.await.unwrap().is_ok());
}

/// They come one after the other, and have it in that order, each for a moment.
async fn have_it_in_order(
    lockers: Vec<Locker>,
    request: fn(&Locker) -> LockRequest,
    queue: Queue<'_>,
) {
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut coming = Vec::new();
    let held = lockers[0].lock("k").fair().await.unwrap();
    for (number, locker) in lockers.iter().enumerate().skip(1) {
        let (request, order) = (request(locker).wait(PATIENCE * 10), order.clone());
        coming.push(tokio::spawn(async move {
            let guard = request.await.unwrap();
            order.lock().unwrap().push(number);
            assert!(guard.release().await.unwrap().is_released());
        }));
        match queue {
            Queue::Of(fleet) => waits(fleet, "k", number as i64).await,
            Queue::Driven => tokio::time::sleep(ms(5)).await,
        }
    }
    assert!(held.release().await.unwrap().is_released());
    for one in coming {
        one.await.unwrap();
    }
    let came: Vec<usize> = (1..lockers.len()).collect();
    assert_eq!(*order.lock().unwrap(), came);
}

enum Queue<'a> {
    Of(&'a Fleet),
    Driven,
}

#[tokio::test(start_paused = true)]
async fn processes_have_it_in_the_order_in_which_they_came() {
    let nodes = Nodes::new(5);
    let mut lockers = Vec::new();
    for number in 0..20 {
        lockers.push(process(&nodes, &format!("process-{number}")).await);
    }
    have_it_in_order(lockers, |locker| locker.lock("k").fair(), Queue::Driven).await;
}

#[tokio::test]
async fn on_real_servers_they_have_it_in_that_order_too() {
    need_process!();
    let fleet = Fleet::start(3);
    let mut lockers = Vec::new();
    for number in 0..8 {
        lockers.push(hearing(&fleet, &format!("process-{number}")).await);
    }
    let request = |locker: &Locker| locker.lock("k").fair().fenced();
    have_it_in_order(lockers, request, Queue::Of(&fleet)).await;
    eventually_async("none is left in the queue", async || queued(&fleet, "k") == 0).await;
}

/// The order is lost once, and no one waits without end.
#[tokio::test(start_paused = true)]
async fn when_the_node_of_the_queue_fails_another_one_keeps_it() {
    let nodes = Nodes::new(5);
    let lockers =
        [process(&nodes, "a").await, process(&nodes, "b").await, process(&nodes, "c").await];
    let held = lockers[0].lock("k").fair().await.unwrap();
    let waiting: Vec<_> = lockers[1..]
        .iter()
        .map(|locker| tokio::spawn(locker.lock("k").fair().wait_forever().acquire()))
        .collect();
    tokio::time::sleep(ms(100)).await;
    let has_queue =
        |node: &usize| nodes[*node].command(["EXISTS", "{k}:quorlock:queue"]).as_integer() == Ok(1);
    let queue_node = (0..5).find(has_queue).unwrap();
    nodes[queue_node].stop();
    tokio::time::sleep(ms(3_000)).await;
    assert!((0..5).filter(|node| *node != queue_node).any(|node| has_queue(&node)));
    assert!(held.release().await.unwrap().is_released());
    for one in waiting {
        let guard = one.await.unwrap().unwrap();
        assert!(guard.release().await.unwrap().is_released());
    }
}

/// Behind a writer that waits, and not beside the reader that has it.
#[tokio::test(start_paused = true)]
async fn a_fair_reader_stands_behind_those_that_wait() {
    let nodes = Nodes::new(3);
    let [one, writer, two] = [
        process(&nodes, "one").await,
        process(&nodes, "writer").await,
        process(&nodes, "two").await,
    ];
    let reads = [one.read("k").fair().await.unwrap(), one.read("k").fair().await.unwrap()];
    let writing = tokio::spawn(writer.write("k").fair().wait_forever().acquire());
    tokio::time::sleep(ms(5)).await;
    let reading = tokio::spawn(two.read("k").fair().wait_forever().acquire());
    tokio::time::sleep(ms(5)).await;
    assert!(!reading.is_finished());
    for guard in reads {
        assert!(guard.release().await.unwrap().is_released());
    }
    let written = writing.await.unwrap().unwrap();
    assert!(!reading.is_finished());
    assert!(written.release().await.unwrap().is_released());
    assert!(reading.await.unwrap().unwrap().release().await.unwrap().is_released());
}

#[tokio::test(start_paused = true)]
async fn slots_are_had_in_the_order_of_arrival() {
    let nodes = Nodes::new(3);
    let mut lockers = Vec::new();
    for number in 0..5 {
        lockers.push(process(&nodes, &format!("process-{number}")).await);
    }
    let held = lockers[0].slots("k", 2).acquire_many(2).fair().await.unwrap();
    let mut waiting = Vec::new();
    for locker in &lockers[1..] {
        let request = locker.slots("k", 2).acquire_many(2).fair().wait_forever();
        waiting.push(tokio::spawn(request.acquire()));
        tokio::time::sleep(ms(5)).await;
    }
    assert!(held.release().await.unwrap().is_released());
    while !waiting.is_empty() {
        let next = waiting.remove(0).await.unwrap().unwrap();
        tokio::time::sleep(ms(50)).await;
        assert!(waiting.iter().all(|one| !one.is_finished()));
        assert!(next.release().await.unwrap().is_released());
    }
}

#[tokio::test(start_paused = true)]
async fn a_fair_lock_is_deleted_natively() {
    let nodes = Nodes::builder(3).each(|node| node.valkey("9.1.2")).build();
    let locker = process(&nodes, "one").await;
    let guard = locker.lock("k").fair().await.unwrap();
    assert!(guard.release().await.unwrap().is_released());
    tokio::time::sleep(ms(5)).await;
    assert!(nodes.iter().all(|node| node.value("k").is_none()));
    assert!(calls(&nodes, "delifeq") >= 2);
}

#[tokio::test(start_paused = true)]
async fn what_stands_in_no_queue_is_refused() {
    let nodes = Nodes::new(3);
    let locker = process(&nodes, "one").await;
    let limited = Retry::default().tries_max(3);
    for (request, reason) in [
        (locker.lock_all(["a", "b"]), "several keys as one stand in no queue"),
        (locker.lock_all(["a"]), "several keys as one stand in no queue"),
        (locker.lock("a}b"), "has no queue"),
        (locker.lock("k").wait(Duration::ZERO), "that does not wait"),
        (locker.lock("k").retry(limited), "leave `retry` as it is"),
    ] {
        let error = request.fair().await.unwrap_err();
        assert!(error.is_misuse() && error.to_string().contains(reason), "{error}");
    }
    // Whatever was said before.
    let error = locker.lock("k").fair().wait(Duration::ZERO).await.unwrap_err();
    assert!(error.is_misuse(), "{error}");
    assert!(locker.lock("k").fair().try_acquire().await.unwrap().is_some());
}
