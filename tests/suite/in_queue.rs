//! Waiters in a queue whose node, or whose connection to it, fails them: on nodes in the process,
//! under a paused clock.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorlock::testing::{Nodes, Reaction, When};
use quorlock::{Error, Event, LockGuard, Locker, Observer, Retry};
use tokio::task::JoinHandle;
use tokio::time::Instant;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The node that keeps the queue of this key.
fn queue_node(nodes: &Nodes, key: &str) -> usize {
    let queue = format!("{{{key}}}:quorlock:queue");
    let is_kept = |node: usize| nodes[node].command(["ZCARD", &queue]).as_integer() != Ok(0);
    (0..nodes.len()).find(|node| is_kept(*node)).expect("it waits in a queue")
}

/// How many wait for `k` in the queue of each node.
fn places(nodes: &Nodes) -> Vec<i64> {
    let places = nodes.iter().map(|node| node.command(["ZCARD", "{k}:quorlock:queue"]));
    places.map(|count| count.as_integer().unwrap()).collect()
}

/// A waiter that is handed the lock, and whose connection to the node with the queue ends before
/// that has answered: the others' votes are enough, and an undo is pending there.
async fn handed_over_with_an_undo(
    nodes: &Nodes,
    [holder, waiter]: [&Locker; 2],
) -> (LockGuard, usize) {
    let held = holder.lock("k").await.unwrap();
    let waiting = waiter.lock("k").wait_forever();
    let waiting = tokio::spawn(async move { waiting.await.unwrap() });
    tokio::time::sleep(ms(100)).await;
    let node = queue_node(nodes, "k");
    nodes[node].add(When::after("turn_ask").nth(1).then(Reaction::Cut { after_bytes: 0 }));
    assert!(held.release().await.unwrap().is_released());
    (waiting.await.unwrap(), node)
}

async fn never_two(nodes: &Nodes, guard: LockGuard, node: usize, third: &Locker) {
    // One of the two that have granted is away while the lock is extended.
    let other = (0..3).find(|other| *other != node).unwrap();
    nodes[other].stop();
    let extended = guard.extend(Duration::from_secs(60)).await;
    nodes[other].restart(true).unwrap();
    let next = third.lock("k").wait(Duration::from_secs(30)).await;
    assert!(
        next.is_err() || !guard.is_valid(),
        "two have the lock, the first one by {extended:?}, for {:?} more",
        guard.remaining()
    );
}

async fn ready(locker: Locker) -> Locker {
    locker.ready(ms(1_000)).await.unwrap();
    locker
}

/// So many lockers, as of other processes.
async fn processes<const N: usize>(nodes: &Nodes) -> [Locker; N] {
    let mut lockers = Vec::new();
    for number in 0..N {
        let owner = format!("process-{number}");
        lockers.push(ready(nodes.locker().owner(owner).ttl(ms(10_000)).build().unwrap()).await);
    }
    lockers.try_into().ok().unwrap()
}

fn waits(locker: &Locker) -> JoinHandle<Result<LockGuard, Error>> {
    let request = locker.lock("k").wait_forever();
    tokio::spawn(async move { request.await })
}

/// A lock, another process that waits for it in a queue, and the node that keeps the queue.
async fn held_and_waited_for(
    nodes: &Nodes,
) -> (LockGuard, JoinHandle<Result<LockGuard, Error>>, usize) {
    let [holder, waiter] = processes(nodes).await;
    let held = holder.lock("k").await.unwrap();
    let waiting = waits(&waiter);
    tokio::time::sleep(ms(100)).await;
    (held, waiting, queue_node(nodes, "k"))
}

/// Its value would stay first in the queue, before those that wait, until its beat ends.
#[tokio::test(start_paused = true)]
async fn who_leaves_a_lock_that_the_node_with_the_queue_has_not_granted_leaves_the_queue_too() {
    let nodes = Nodes::new(3);
    let (held, waiting, node) = held_and_waited_for(&nodes).await;
    let busy = Reaction::Answer(b"-BUSY a script runs\r\n".to_vec());
    nodes[node].add(When::before("turn_ask").nth(1).then(busy));
    assert!(held.release().await.unwrap().is_released());
    let held = waiting.await.unwrap().unwrap();
    let places = || {
        ["queue", "beats"].map(|name| {
            nodes[node].command(["ZCARD", &format!("{{k}}:quorlock:{name}")]).as_integer().unwrap()
        })
    };
    assert_eq!(places(), [1, 1], "that node has not granted it");
    drop(held.forget());
    tokio::time::sleep(ms(1)).await;
    assert_eq!(places(), [0, 0]);
}

/// Its beat ends an hour from now, which no beat of one that lives does.
#[tokio::test(start_paused = true)]
async fn one_that_died_before_a_server_was_set_back_holds_no_one_up() {
    let nodes = Nodes::new(3);
    let (held, waiting, node) = held_and_waited_for(&nodes).await;
    let node = &nodes[node];
    let seconds = node.command(["TIME"]).as_items().unwrap()[0].as_bytes().unwrap().to_vec();
    let seconds: u64 = String::from_utf8(seconds).unwrap().parse().unwrap();
    let ends = ((seconds + 3_600) * 1_000).to_string();
    let added = node.command(["ZADD", "{k}:quorlock:queue", "0", "dead@process"]);
    assert_eq!(added.as_integer(), Ok(1));
    let added = node.command(["ZADD", "{k}:quorlock:beats", &ends, "dead@process"]);
    assert_eq!(added.as_integer(), Ok(1));
    let began = Instant::now();
    assert!(held.release().await.unwrap().is_released());
    assert!(waiting.await.unwrap().is_ok());
    assert!(began.elapsed() <= ms(5), "{:?}", began.elapsed());
}

/// Each question looks at 128 of them, and takes them out.
#[tokio::test(start_paused = true)]
async fn hundreds_that_died_in_the_queue_are_gone_after_one_beat() {
    let nodes = Nodes::new(3);
    let (held, waiting, node) = held_and_waited_for(&nodes).await;
    let node = &nodes[node];
    for number in 0..1_000 {
        let dead = format!("{number:03}@dead");
        assert_eq!(
            node.command(["ZADD", "{k}:quorlock:queue", "0", &dead]).as_integer(),
            Ok(1),
            "{dead}"
        );
    }
    tokio::time::sleep(ms(500)).await;
    let began = Instant::now();
    assert!(held.release().await.unwrap().is_released());
    assert!(waiting.await.unwrap().is_ok());
    assert!(began.elapsed() <= ms(5), "{:?}", began.elapsed());
}

/// A key that was contended a moment ago is asked for in the queue first; all nodes are asked only
/// after seconds, and have all the time there is to answer.
#[tokio::test(start_paused = true)]
async fn who_has_waited_in_the_queue_first_gives_the_nodes_their_time() {
    let nodes = Nodes::new(3);
    let [one, two] = processes(&nodes).await;
    let held = one.lock("k").await.unwrap();
    let waiting = waits(&two);
    tokio::time::sleep(ms(50)).await;
    assert!(held.release().await.unwrap().is_released());
    let held = waiting.await.unwrap().unwrap();
    let waiting = waits(&one);
    tokio::time::sleep(ms(6_000)).await;
    assert!(!waiting.is_finished());
    assert!(held.release().await.unwrap().is_released());
    assert!(waiting.await.unwrap().is_ok());
}

/// A minority that hangs delays no one for long, also where the queue was on it.
#[tokio::test(start_paused = true)]
async fn a_free_lock_waits_for_a_hung_queue_once_and_not_again() {
    let nodes = Nodes::new(3);
    let [one, two] = processes(&nodes).await;
    let held = one.lock("k").await.unwrap();
    let waiting = waits(&two);
    tokio::time::sleep(ms(20)).await;
    let node = queue_node(&nodes, "k");
    assert!(held.release().await.unwrap().is_released());
    assert!(waiting.await.unwrap().unwrap().release().await.unwrap().is_released());
    nodes[node].hang();
    for most in [ms(101), ms(1), ms(1)] {
        let began = Instant::now();
        let held = one.lock("k").await.unwrap();
        assert!(began.elapsed() <= most, "{:?}", began.elapsed());
        drop(held);
        tokio::time::sleep(ms(20)).await;
    }
}

/// Who was handed the lock knows that it is wanted, and whether it still is before the node with
/// the queue has said so: it comes behind those that wait, though it releases the lock at once.
#[tokio::test(start_paused = true)]
async fn who_was_handed_a_lock_and_wants_it_again_at_once_comes_behind_those_that_wait() {
    let nodes = Nodes::new(3);
    let [one, two, three] = processes(&nodes).await;
    let held = one.lock("k").await.unwrap();
    let first = waits(&two);
    tokio::time::sleep(ms(50)).await;
    let second = waits(&three);
    tokio::time::sleep(ms(50)).await;
    let node = queue_node(&nodes, "k");
    nodes[node].add(When::after("turn_ask").nth(1).then(Reaction::Delay(ms(20))));
    assert!(held.release().await.unwrap().is_released());
    drop(first.await.unwrap().unwrap());
    let again = waits(&two);
    let held = second.await.unwrap().unwrap();
    assert!(!again.is_finished());
    assert!(held.release().await.unwrap().is_released());
    assert!(again.await.unwrap().is_ok());
}

/// What a client of another library lets go of is asked for as soon as the servers tell of that.
#[tokio::test(start_paused = true)]
async fn a_lock_that_another_library_releases_is_acquired_without_a_pause() {
    let nodes = Nodes::new(3);
    let [one] = processes(&nodes).await;
    for node in 0..3 {
        nodes[node].command(["SET", "k", "foreign", "PX", "10000"]);
    }
    let waiting = waits(&one);
    tokio::time::sleep(ms(100)).await;
    assert!(!waiting.is_finished());
    let began = Instant::now();
    for node in 0..3 {
        nodes[node].command(["DEL", "k"]);
    }
    assert!(waiting.await.unwrap().is_ok());
    assert_eq!(began.elapsed(), Duration::ZERO);
}

/// A server that is busy for a moment, as with a snapshot, keeps its queue.
#[tokio::test(start_paused = true)]
async fn a_place_outlasts_a_stall_of_the_node_that_keeps_it() {
    let nodes = Nodes::new(3);
    let [holder, one, two] = processes(&nodes).await;
    let held = holder.lock("k").await.unwrap();
    let first = waits(&one);
    tokio::time::sleep(ms(250)).await;
    let second = waits(&two);
    tokio::time::sleep(ms(200)).await;
    let node = queue_node(&nodes, "k");
    // The first one's sign of life falls into the stall.
    nodes[node].hang();
    tokio::time::sleep(ms(160)).await;
    nodes[node].resume();
    tokio::time::sleep(ms(1_000)).await;
    assert_eq!(places(&nodes)[node], 2);
    assert!(held.release().await.unwrap().is_released());
    let held = first.await.unwrap().unwrap();
    assert!(!second.is_finished());
    assert!(held.release().await.unwrap().is_released());
    assert!(second.await.unwrap().is_ok());
}

/// A server that was told `SCRIPT FLUSH`, or has another process now, is brought the script.
#[tokio::test(start_paused = true)]
async fn a_node_that_has_lost_its_scripts_keeps_its_queue() {
    let nodes = Nodes::new(3);
    let [holder, waiter] = processes(&nodes).await;
    let held = holder.lock("k").await.unwrap();
    let waiting = waits(&waiter);
    tokio::time::sleep(ms(100)).await;
    let before = places(&nodes);
    nodes[queue_node(&nodes, "k")].command(["SCRIPT", "FLUSH"]);
    tokio::time::sleep(ms(1_000)).await;
    assert_eq!(places(&nodes), before);
    assert!(held.release().await.unwrap().is_released());
    assert!(waiting.await.unwrap().is_ok());
}

/// To ask it a second time would be of no use.
#[tokio::test(start_paused = true)]
async fn a_node_that_may_not_keep_a_queue_is_passed_over_at_once() {
    let nodes = Nodes::new(3);
    let [holder, waiter, other] = processes(&nodes).await;
    let held = holder.lock("k").await.unwrap();
    let waiting = waits(&waiter);
    tokio::time::sleep(ms(100)).await;
    let node = queue_node(&nodes, "k");
    let refused = Reaction::Answer(b"-NOPERM this user has no permissions\r\n".to_vec());
    nodes[node].add(When::before("turn_ask").nth(1).then(refused));
    let passing = waits(&other);
    tokio::time::sleep(ms(50)).await;
    let places = places(&nodes);
    assert_eq!((places[node], places.iter().sum()), (1, 2), "{places:?}");
    assert!(held.release().await.unwrap().is_released());
    drop(waiting.await.unwrap().unwrap());
    assert!(passing.await.unwrap().is_ok());
}

/// The other nodes are told of the release after the one with the queue, and then asked again.
#[tokio::test(start_paused = true)]
async fn who_is_handed_a_lock_before_the_others_are_told_of_its_release_asks_them_again() {
    let nodes = Nodes::new(3);
    let [holder, waiter] = processes(&nodes).await;
    let held = holder.lock("k").await.unwrap();
    let waiting = waits(&waiter);
    tokio::time::sleep(ms(100)).await;
    let node = queue_node(&nodes, "k");
    for other in (0..3).filter(|other| *other != node) {
        nodes[other].add(When::before("release").then(Reaction::Delay(ms(3))));
    }
    let began = Instant::now();
    drop(held);
    assert!(waiting.await.unwrap().is_ok());
    assert!(began.elapsed() <= ms(10), "{:?}", began.elapsed());
}

/// It has no place in a queue: of several keys, also where they are one, and of a key whose queue
/// can have no name.
#[tokio::test(start_paused = true)]
async fn a_lock_without_a_queue_is_acquired_as_soon_as_the_key_in_its_way_is_released() {
    let nodes = Nodes::new(3);
    let [holder] = processes(&nodes).await;
    let patient = Retry::fixed(Duration::from_secs(60));
    let waiter = ready(nodes.locker().ttl(ms(10_000)).retry(patient).build().unwrap()).await;
    let requests = [
        ("b", waiter.lock_all(["a", "b", "c"])),
        ("b", waiter.lock_all(["b"])),
        ("a}b", waiter.lock("a}b")),
        ("job:{}", waiter.lock("job:{}")),
    ];
    for (key, request) in requests {
        let held = holder.lock(key).await.unwrap();
        let request = request.wait_forever();
        let waiting = tokio::spawn(async move { request.await });
        tokio::time::sleep(ms(100)).await;
        assert!(!waiting.is_finished(), "{key}");
        let began = Instant::now();
        assert!(held.release().await.unwrap().is_released());
        assert!(waiting.await.unwrap().is_ok());
        assert!(began.elapsed() <= ms(10), "{key}: {:?}", began.elapsed());
    }
}

/// It would be ahead of those that wait, in the round trip behind the release.
#[tokio::test(start_paused = true)]
async fn who_was_refused_a_moment_ago_asks_the_queue_before_all_nodes() {
    let nodes = Nodes::new(3);
    let [holder, waiter] = processes(&nodes).await;
    let held = holder.lock("k").await.unwrap();
    assert!(waiter.lock("k").try_acquire().await.unwrap().is_none());
    let calls = || ["set", "turn_ask"].map(|name| nodes.iter().map(|it| it.calls(name)).sum());
    let [tries, asked]: [u64; 2] = calls();
    let waiting = waits(&waiter);
    tokio::time::sleep(ms(10)).await;
    assert_eq!(calls(), [tries, asked + 1]);
    drop(held);
    drop(waiting.await.unwrap().unwrap());
}

/// Keeps whether the holder was known to those that began to wait, and was a guard of their own.
#[derive(Default)]
struct Holders(Mutex<Vec<bool>>);

impl Observer for Holders {
    fn on_event(&self, event: &Event<'_>) {
        if let Event::Waiting { holder, .. } = event {
            self.0.lock().unwrap().push(holder.is_some_and(|holder| holder.is_own));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_guard_of_another_key_is_not_told_as_the_holder() {
    let nodes = Nodes::new(3);
    let told = Arc::new(Holders::default());
    let locker = nodes.locker().ttl(ms(10_000)).observer(told.clone()).build().unwrap();
    let locker = ready(locker).await;
    let [holder] = processes(&nodes).await;
    let (other, held) = (locker.lock("other").await.unwrap(), holder.lock("k").await.unwrap());
    let waiting = [waits(&locker), waits(&locker)];
    tokio::time::sleep(ms(100)).await;
    assert_eq!(*told.0.lock().unwrap(), [false, false]);
    drop((other, held));
    for waiting in waiting {
        drop(waiting.await.unwrap().unwrap());
    }
}

// What an attempt in a queue leaves pending is as much in the way of an extension as what a plain
// one leaves: otherwise the key would count that is deleted a moment later, and two would hold the
// lock.

#[tokio::test(start_paused = true)]
async fn an_extension_does_not_count_a_key_whose_undo_was_put_off() {
    let nodes = Nodes::new(3);
    let [holder, waiter, third] = processes(&nodes).await;
    let busy = b"-BUSY Redis is busy running a script.\r\n".to_vec();
    for node in 0..3 {
        let rule = When::before("turn_leave").from(2).times(4);
        nodes[node].add(rule.then(Reaction::Answer(busy.clone())));
    }
    let (guard, node) = handed_over_with_an_undo(&nodes, [&holder, &waiter]).await;
    tokio::time::sleep(ms(500)).await;
    never_two(&nodes, guard, node, &third).await;
}

#[tokio::test(start_paused = true)]
async fn an_extension_does_not_count_a_key_whose_undo_is_in_doubt() {
    let nodes = Nodes::builder(3).each(|node| node.user("app", "on >pw ~* &* +@all -client|kill"));
    let nodes = nodes.build();
    let [holder, waiter, third] = ["holder", "waiter", "third"]
        .map(|name| nodes.locker_as("app", "pw").owner(name).ttl(ms(10_000)).build().unwrap());
    let (holder, waiter, third) = (ready(holder).await, ready(waiter).await, ready(third).await);
    let (guard, node) = handed_over_with_an_undo(&nodes, [&holder, &waiter]).await;
    tokio::time::sleep(ms(1_000)).await;
    // An extension may give the node the key that it lacks, between two repetitions of the undo.
    for _ in 0..1_200 {
        if nodes[node].value("k").is_some() {
            break;
        }
        tokio::time::sleep(ms(10)).await;
    }
    never_two(&nodes, guard, node, &third).await;
}
