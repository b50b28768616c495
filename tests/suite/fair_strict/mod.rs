//! Locks in strict order, which survives the loss of a node: on nodes in the process, under a
//! paused clock, and on real servers.

mod slow_nodes;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorlock::testing::{Node, Nodes, Reaction, When};
use quorlock::{Error, Extend, LockGuard, Locker, Retry};
use support::cancel::{PollTimes, poll_times};
use support::wait::PATIENCE;
use support::{Fleet, eventually_async, need_process};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::waiting::{hearing, waits};

const QUEUE: &str = "{k}:quorlock:queue";
const BEATS: &str = "{k}:quorlock:beats";

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A locker as of another process.
async fn process(nodes: &Nodes, name: &str) -> Locker {
    let locker = nodes.locker().owner(name).ttl(ms(10_000)).build().unwrap();
    locker.ready(ms(1_000)).await.unwrap();
    locker
}

/// `N` lockers, as of `N` processes.
async fn processes<const N: usize>(nodes: &Nodes) -> [Locker; N] {
    let mut lockers = Vec::new();
    for number in 0..N {
        lockers.push(process(nodes, &format!("process-{number}")).await);
    }
    lockers.try_into().ok().unwrap()
}

/// The nodes know the script from now on: what is asked next is answered at once.
async fn bring_the_script(locker: &Locker) {
    drop(locker.lock("another").fair_strict().await.unwrap());
    tokio::time::sleep(ms(5)).await;
}

fn calls(nodes: &Nodes, command: &str) -> u64 {
    nodes.iter().map(|node| node.calls(command)).sum()
}

/// How many stand in the queue of each node.
fn places(nodes: &Nodes) -> Vec<i64> {
    nodes.iter().map(|node| node.command(["ZCARD", QUEUE]).as_integer().unwrap()).collect()
}

/// Asks in strict order. Nodes answer within this time, by the paused clock: it has its place then.
async fn comes(locker: &Locker) -> JoinHandle<Result<LockGuard, Error>> {
    let waiting = asks(locker);
    tokio::time::sleep(ms(5)).await;
    waiting
}

fn asks(locker: &Locker) -> JoinHandle<Result<LockGuard, Error>> {
    tokio::spawn(locker.lock("k").fair_strict().wait_forever().acquire())
}

async fn has(waiting: JoinHandle<Result<LockGuard, Error>>) -> LockGuard {
    tokio::time::timeout(ms(60_000), waiting).await.unwrap().unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_free_lock_takes_one_question_to_each_node() {
    let nodes = Nodes::new(5);
    let locker = process(&nodes, "one").await;
    let guard = locker.lock("k").fair_strict().await.unwrap();
    assert!(nodes.iter().all(|node| node.value("k").is_some()));
    assert_eq!(calls(&nodes, "ticket_ask"), 5);
    assert_eq!(places(&nodes), [0; 5], "none waits");
    assert!(guard.release().await.unwrap().is_released());
    tokio::time::sleep(ms(5)).await;
    assert!(nodes.iter().all(|node| node.value("k").is_none()));
}

#[tokio::test(start_paused = true)]
async fn one_that_waits_stands_on_each_node_and_leaves_nothing_behind() {
    let nodes = Nodes::new(3);
    let [holder, waiter] = processes(&nodes).await;
    let held = holder.lock("k").fair_strict().await.unwrap();
    let waiting = comes(&waiter).await;
    assert_eq!(places(&nodes), [1; 3]);
    assert!(held.release().await.unwrap().is_released());
    let guard = has(waiting).await;
    assert!(guard.release().await.unwrap().is_released());
    tokio::time::sleep(ms(5)).await;
    for key in ["k", QUEUE, BEATS] {
        let left = nodes.iter().map(|node| node.command(["EXISTS", key]).as_integer().unwrap());
        assert_eq!(left.sum::<i64>(), 0, "{key}");
    }
}

/// It is told of the release, and asks for nothing meanwhile but twice a second, that it lives.
#[tokio::test(start_paused = true)]
async fn one_that_waits_is_woken_by_the_release_and_polls_nothing() {
    let nodes = Nodes::new(3);
    let [holder, waiter] = processes(&nodes).await;
    // Each extension would be a change of the lock, and be looked at.
    let held = holder.lock("k").auto_extend(Extend::Off).fair_strict().await.unwrap();
    let waiting = comes(&waiter).await;
    let asked = calls(&nodes, "ticket_ask");
    tokio::time::sleep(ms(5_000)).await;
    assert_eq!(calls(&nodes, "ticket_ask") - asked, 10 * 3);
    let began = Instant::now();
    assert!(held.release().await.unwrap().is_released());
    drop(has(waiting).await);
    assert!(began.elapsed() <= ms(1), "{:?}", began.elapsed());
    assert!(calls(&nodes, "ticket_ask") - asked <= 12 * 3, "once more, or twice");
}

async fn have_it_in_order(lockers: &[Locker], between: impl AsyncFn(usize)) {
    let order = Arc::new(Mutex::new(Vec::new()));
    let held = lockers[0].lock("k").fair_strict().await.unwrap();
    let mut coming = Vec::new();
    for (number, locker) in lockers.iter().enumerate().skip(1) {
        let request = locker.lock("k").fair_strict().wait(PATIENCE * 10);
        let order = order.clone();
        coming.push(tokio::spawn(async move {
            let guard = request.await.unwrap();
            order.lock().unwrap().push(number);
            assert!(guard.release().await.unwrap().is_released());
        }));
        between(number).await;
    }
    assert!(held.release().await.unwrap().is_released());
    for one in coming {
        one.await.unwrap();
    }
    let came: Vec<usize> = (1..lockers.len()).collect();
    assert_eq!(*order.lock().unwrap(), came);
}

#[tokio::test(start_paused = true)]
async fn processes_have_it_in_the_order_in_which_they_came() {
    let nodes = Nodes::new(5);
    let lockers: [Locker; 20] = processes(&nodes).await;
    have_it_in_order(&lockers, async |_| tokio::time::sleep(ms(5)).await).await;
}

/// Whichever node that is: with the queue of one node, the order would be lost once.
#[tokio::test(start_paused = true)]
async fn the_order_survives_the_loss_of_any_node() {
    for lost in 0..5 {
        let nodes = Nodes::new(5);
        let lockers: [Locker; 8] = processes(&nodes).await;
        have_it_in_order(&lockers, async |number| {
            tokio::time::sleep(ms(5)).await;
            if number == 4 {
                nodes[lost].stop();
                tokio::time::sleep(ms(5)).await;
            }
        })
        .await;
    }
}

/// A node that comes back without its queue learns it again from those that wait.
#[tokio::test(start_paused = true)]
async fn the_order_survives_nodes_that_are_away_one_after_the_other() {
    let nodes = Nodes::new(5);
    let lockers: [Locker; 6] = processes(&nodes).await;
    have_it_in_order(&lockers, async |number| {
        tokio::time::sleep(ms(5)).await;
        if number == 3 {
            for node in [0, 1] {
                nodes[node].stop();
                tokio::time::sleep(ms(100)).await;
                nodes[node].restart(true).unwrap();
                tokio::time::sleep(ms(3_000)).await;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn on_real_servers_they_have_it_in_that_order_too() {
    need_process!();
    let fleet = Fleet::start(3);
    let mut lockers = Vec::new();
    for number in 0..8 {
        lockers.push(hearing(&fleet, &format!("process-{number}")).await);
    }
    have_it_in_order(&lockers, async |number| {
        waits(&fleet, "k", 3 * number as i64).await;
    })
    .await;
    eventually_async("nothing is left", async || fleet.keys_left("").is_empty()).await;
}

/// Three would be a majority. Both have the same ticket then, and the lower value is first.
#[tokio::test(start_paused = true)]
async fn two_that_have_half_of_the_nodes_each_do_not_block_one_another() {
    for _ in 0..8 {
        let nodes = Nodes::new(4);
        let lockers: [Locker; 2] = processes(&nodes).await;
        bring_the_script(&lockers[0]).await;
        let asked = calls(&nodes, "ticket_ask");
        // The other two nodes hear the second one first.
        for node in nodes.iter().skip(2) {
            node.add(When::before("ticket_ask").nth(1).then(Reaction::Delay(ms(2))));
        }
        let began = Instant::now();
        let mut waiting = vec![asks(&lockers[0])];
        tokio::task::yield_now().await;
        waiting.push(asks(&lockers[1]));
        while !waiting.is_empty() {
            tokio::time::sleep(ms(1)).await;
            assert!(began.elapsed() < ms(100), "they wait for one another");
            if let Some(at) = waiting.iter().position(JoinHandle::is_finished) {
                let guard = waiting.remove(at).await.unwrap().unwrap();
                let asked = calls(&nodes, "ticket_ask") - asked;
                assert!(asked > 2 * 4, "the first question gave it to one");
                assert!(guard.release().await.unwrap().is_released());
            }
        }
    }
}

/// A client that knows of no queue, and tells no one when it lets go.
#[tokio::test(start_paused = true)]
async fn one_that_waits_for_a_plain_client_has_it_when_that_lets_go_or_expires() {
    let nodes = Nodes::new(3);
    let locker = process(&nodes, "one").await;
    for node in nodes.iter() {
        assert!(node.command(["SET", "k", "foreign", "NX", "PX", "400"]).is_ok());
    }
    let began = Instant::now();
    let waiting = comes(&locker).await;
    let guard = has(waiting).await;
    assert!((ms(400)..=ms(405)).contains(&began.elapsed()), "{:?}", began.elapsed());
    assert!(guard.release().await.unwrap().is_released());

    for node in nodes.iter() {
        assert!(node.command(["SET", "k", "foreign", "NX", "PX", "60000"]).is_ok());
    }
    let waiting = comes(&locker).await;
    tokio::time::sleep(ms(300)).await;
    let began = Instant::now();
    nodes.iter().for_each(|node| assert_eq!(node.command(["DEL", "k"]).as_integer(), Ok(1)));
    drop(has(waiting).await);
    assert!(began.elapsed() <= ms(1), "{:?}: it watches the lock on each node", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_dies_is_waited_for_until_its_lock_ends() {
    let nodes = Nodes::new(3);
    let locker = process(&nodes, "one").await;
    for node in nodes.iter() {
        stands(node, "1", "a1@gone", 300);
        assert!(node.command(["SET", "k", "a1@gone", "NX", "PX", "300"]).is_ok());
    }
    let began = Instant::now();
    drop(has(comes(&locker).await).await);
    assert!((ms(300)..=ms(305)).contains(&began.elapsed()), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_dies_is_passed_when_its_beat_is_over() {
    let nodes = Nodes::new(3);
    let [holder, waiter] = processes(&nodes).await;
    let held = holder.lock("k").fair_strict().await.unwrap();
    nodes.iter().for_each(|node| stands(node, "1", "a1@gone", 1_500));
    let waiting = comes(&waiter).await;
    tokio::time::sleep(ms(300)).await;
    assert!(held.release().await.unwrap().is_released());
    tokio::time::sleep(ms(300)).await;
    assert!(!waiting.is_finished(), "the other may live");
    let began = Instant::now();
    drop(has(waiting).await);
    assert!(began.elapsed() <= ms(1_500), "{:?}", began.elapsed());
}

/// A value stands on this node with this ticket, and lives for as many milliseconds.
fn stands(node: &Node, ticket: &str, value: &str, millis: u64) {
    let ends = in_millis(node, millis);
    for (key, score) in [(QUEUE, ticket), (BEATS, &ends)] {
        assert_eq!(node.command(["ZADD", key, score, value]).as_integer(), Ok(1));
    }
}

/// What this node's clock will tell after as many milliseconds.
fn in_millis(node: &Node, later: u64) -> String {
    let time = node.command(["TIME"]);
    let number = |at: usize| -> u64 {
        let word = time.as_items().unwrap()[at].as_bytes().unwrap().to_vec();
        String::from_utf8(word).unwrap().parse().unwrap()
    };
    (number(0) * 1_000 + number(1) / 1_000 + later).to_string()
}

#[tokio::test(start_paused = true)]
async fn one_that_is_cancelled_at_any_poll_leaves_nothing_and_holds_no_one_up() {
    for polls in 0..12 {
        let nodes = Nodes::new(3);
        let [holder, cancelled, next] = processes(&nodes).await;
        let held = holder.lock("k").fair_strict().await.unwrap();
        let asking = cancelled.lock("k").fair_strict().wait_forever().acquire();
        assert!(matches!(poll_times(asking, polls).await, PollTimes::Dropped));
        tokio::time::sleep(ms(5)).await;
        assert_eq!(places(&nodes), [0; 3], "{polls}");
        let last = comes(&next).await;
        let began = Instant::now();
        assert!(held.release().await.unwrap().is_released());
        assert!(has(last).await.release().await.unwrap().is_released());
        assert!(began.elapsed() <= ms(5), "{polls}: {:?}", began.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_try_has_it_only_where_none_waits() {
    let nodes = Nodes::new(3);
    let [holder, waiter, tries] = processes(&nodes).await;
    let held = holder.lock("k").fair_strict().await.unwrap();
    let waiting = comes(&waiter).await;
    // The lock is free, and the question of the one that waits is under way.
    for node in nodes.iter() {
        node.add(When::before("ticket_ask").nth(1).then(Reaction::Delay(ms(50))));
        assert_eq!(node.command(["DEL", "k"]).as_integer(), Ok(1));
    }
    tokio::time::sleep(ms(1)).await;
    let tried = tries.lock("k").fair_strict().try_acquire().await.unwrap();
    assert!(tried.is_none());
    drop(has(waiting).await);
    tokio::time::sleep(ms(5)).await;
    assert!(tries.lock("k").fair_strict().try_acquire().await.unwrap().is_some());
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn what_has_no_tickets_is_refused() {
    let nodes = Nodes::new(3);
    let locker = process(&nodes, "one").await;
    let limited = Retry::default().tries_max(3);
    for (request, reason) in [
        (locker.lock_all(["a", "b"]), "for a lock of one key"),
        (locker.read("a"), "for a lock of one key"),
        (locker.slots("a", 2).acquire(), "for a lock of one key"),
        (locker.lock("a}b"), "no name for its queue"),
        (locker.lock("k").wait(Duration::ZERO), "that does not wait"),
        (locker.lock("k").retry(limited), "leave `retry` as it is"),
    ] {
        let error = request.fair_strict().await.unwrap_err();
        assert!(error.is_misuse() && error.to_string().contains(reason), "{error}");
    }
}

/// Nor does it try without end.
#[tokio::test(start_paused = true)]
async fn where_no_node_answers_it_fails_as_any_other() {
    let nodes = Nodes::new(3);
    let locker = process(&nodes, "one").await;
    nodes.iter().for_each(|node| node.stop());
    tokio::time::sleep(ms(10)).await;
    for wait in [ms(1), ms(300), ms(5_000)] {
        let request = locker.lock("k").fair_strict().wait(wait).unavailable_wait(ms(5_000));
        let error = tokio::time::timeout(ms(8_000), request.acquire()).await.unwrap().unwrap_err();
        assert!(error.is_unavailable(), "{wait:?}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_fenced_and_each_fence_is_higher() {
    let nodes = Nodes::new(5);
    let lockers: [Locker; 4] = processes(&nodes).await;
    let mut waiting = Vec::new();
    for locker in &lockers {
        let request = locker.lock("k").fair_strict().fenced().wait_forever();
        waiting.push(tokio::spawn(request.acquire()));
        tokio::time::sleep(ms(5)).await;
    }
    let mut fences = Vec::new();
    for one in waiting {
        let guard = has(one).await;
        fences.push(guard.fence().unwrap().number());
        assert!(guard.release().await.unwrap().is_released());
    }
    assert!(fences.is_sorted_by(|one, other| one < other), "{fences:?}");
}

/// It has waited, and so stands in the queues while it has the lock.
#[tokio::test(start_paused = true)]
async fn one_that_becomes_a_reader_leaves_the_queues_of_writers() {
    let nodes = Nodes::new(3);
    let [holder, waiter, reader] = processes(&nodes).await;
    let held = holder.lock("k").fair_strict().await.unwrap();
    let waiting = comes(&waiter).await;
    assert!(held.release().await.unwrap().is_released());
    let guard = has(waiting).await;
    assert_eq!(places(&nodes), [1; 3]);
    let read = guard.downgrade().await.unwrap();
    assert_eq!(places(&nodes), [0; 3]);
    drop(reader.read("k").try_acquire().await.unwrap().expect("readers share"));
    tokio::time::sleep(ms(5)).await;
    drop(read);
    tokio::time::sleep(ms(5)).await;
    assert!(nodes.iter().all(|node| node.value("k").is_none()), "it is handed to no one");
}

/// One node has not made a reader of it, and does not hear that it has left the queue.
#[tokio::test(start_paused = true)]
async fn one_that_is_a_reader_on_some_nodes_alone_leaves_all_queues() {
    let nodes = Nodes::new(3);
    let [holder, waiter] = processes(&nodes).await;
    let held = holder.lock("k").fair_strict().await.unwrap();
    let waiting = comes(&waiter).await;
    assert!(held.release().await.unwrap().is_released());
    let guard = has(waiting).await;
    let refused = Reaction::Answer(b"-ERR not now\r\n".to_vec());
    nodes[1].add(When::before("downgrade").then(refused));
    nodes[1].add(When::before("zrem").then(Reaction::Answer(b":0\r\n".to_vec())));
    drop(guard.downgrade().await.unwrap());
    tokio::time::sleep(ms(5)).await;
    assert_eq!(places(&nodes), [0; 3]);
    assert!(nodes.iter().all(|node| node.value("k").is_none()), "it is handed to no one");
}

#[tokio::test(start_paused = true)]
async fn it_becomes_a_read_lock_and_holds_no_one_up() {
    let nodes = Nodes::new(3);
    let [writer, reader] = processes(&nodes).await;
    let guard = writer.lock("k").fair_strict().await.unwrap();
    let waiting = comes(&reader).await;
    let read = guard.downgrade().await.unwrap();
    assert!(!waiting.is_finished());
    assert!(read.release().await.unwrap().is_released());
    let began = Instant::now();
    drop(has(waiting).await);
    assert!(began.elapsed() <= ms(5), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn one_is_let_go_of_where_others_are_deleted_natively() {
    let nodes = Nodes::builder(3).each(|node| node.valkey("9.1.2")).build();
    let [one, two] = processes(&nodes).await;
    let guard = one.lock("k").fair_strict().await.unwrap();
    let waiting = comes(&two).await;
    assert!(guard.release().await.unwrap().is_released());
    assert!(has(waiting).await.release().await.unwrap().is_released());
    tokio::time::sleep(ms(5)).await;
    assert!(nodes.iter().all(|node| node.value("k").is_none()));
    assert_eq!(calls(&nodes, "delifeq"), 0, "it would leave the queue as it is");
}

/// Two that hold a node each, and none a majority: the third node is another client's. The one with
/// the higher ticket gives way.
#[tokio::test(start_paused = true)]
async fn those_that_have_a_node_give_way_to_the_first() {
    let nodes = Nodes::new(3);
    let [one, two] = processes(&nodes).await;
    bring_the_script(&one).await;
    assert!(nodes[2].command(["SET", "k", "foreign", "NX", "PX", "60000"]).is_ok());
    nodes[1].add(When::before("ticket_ask").nth(1).then(Reaction::Delay(ms(3))));
    let began = Instant::now();
    let mut waiting = vec![asks(&one)];
    tokio::task::yield_now().await;
    waiting.push(asks(&two));
    while !waiting.iter().any(JoinHandle::is_finished) {
        tokio::time::sleep(ms(1)).await;
        assert!(began.elapsed() < ms(100), "neither gives way");
    }
    // It was answered first, and so has the lower ticket.
    assert!(waiting[1].is_finished());
    drop(waiting.remove(1).await.unwrap().unwrap());
    drop(has(waiting.remove(0)).await);
}

/// As before, but both have tickets: the question of the first comes late to a node, three
/// milliseconds after the lock is free, and the other one is the first there until then.
#[tokio::test(start_paused = true)]
async fn one_that_has_a_node_alone_asks_again_and_gives_way() {
    let nodes = Nodes::new(3);
    let [one, two] = processes(&nodes).await;
    bring_the_script(&one).await;
    for node in nodes.iter() {
        assert!(node.command(["SET", "k", "foreign", "NX", "PX", "60000"]).is_ok());
    }
    nodes[1].add(When::before("ticket_ask").nth(2).then(Reaction::Delay(ms(13))));
    let first = comes(&one).await;
    let second = comes(&two).await;
    [0, 1].iter().for_each(|number| drop(nodes[*number].command(["DEL", "k"])));
    let free = Instant::now();
    drop(has(first).await);
    assert!(free.elapsed() < ms(100), "neither gives way: {:?}", free.elapsed());
    drop(has(second).await);
}
