//! Waiting on nodes inside this process under a driven clock, where each bound is exact.

use std::time::Duration;

use quorlock::testing::{Nodes, Reaction, When};
use quorlock::{Error, Extend, LockGuard, Locker, LockerBuilder, Retry};
use support::{PollTimes, poll_times};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A timer comes so late at most, and so do those that nodes keep for the ends of keys.
const GRAIN: Duration = ms(1);

/// A node that hangs is waited for so long.
const NODE_TIMEOUT: Duration = ms(100);

/// How often one that waits asks for itself.
const BEAT: Duration = ms(500);

/// Whoever polled would be so late.
const POLLS: Duration = Duration::from_secs(60);

/// As another process, one that does not find the lock free by polling.
pub(crate) async fn process(nodes: &Nodes, name: &str) -> Locker {
    connected(nodes.locker().owner(name).retry(Retry::fixed(POLLS))).await
}

pub(super) async fn connected(builder: LockerBuilder) -> Locker {
    let builder = builder.ttl(ms(30_000)).auto_extend(Extend::Off);
    let builder = builder.unavailable_wait(Duration::MAX).node_timeout(NODE_TIMEOUT);
    let locker = builder.build().unwrap();
    locker.ready(ms(1_000)).await.unwrap();
    while !locker.health().iter().all(|node| node.tells_hand_overs && node.tells_changes) {
        sleep(ms(1)).await;
    }
    locker
}

/// Waits for the key in a task; when it has it, and the guard.
fn wait(locker: &Locker, limit: Duration) -> JoinHandle<(Instant, Result<LockGuard, Error>)> {
    let request = locker.lock("k").wait(limit);
    tokio::spawn(async move {
        let ended = request.await;
        (Instant::now(), ended)
    })
}

/// A lock of another library, on all nodes.
fn hold_foreign(nodes: &Nodes, life: Duration) {
    let life = life.as_millis().to_string();
    nodes.iter().for_each(|node| drop(node.command(["SET", "k", "theirs", "NX", "PX", &life])));
}

/// The lock is held: by another locker, or by another library.
enum Held {
    By(LockGuard),
    Foreign,
}

impl Held {
    async fn begin(nodes: &Nodes, by: Option<&Locker>) -> Self {
        match by {
            Some(holder) => Self::By(holder.lock("k").await.unwrap()),
            None => {
                hold_foreign(nodes, ms(30_000));
                Self::Foreign
            }
        }
    }

    fn release(self, nodes: &Nodes) {
        match self {
            Self::By(guard) => drop(guard),
            Self::Foreign => nodes.iter().for_each(|node| drop(node.command(["DEL", "k"]))),
        }
    }
}

/// What is left on the nodes when nothing is under way any more.
async fn left(nodes: &Nodes) -> Vec<Vec<u8>> {
    sleep(ms(50)).await;
    nodes.iter().flat_map(|node| node.keys()).collect()
}

/// Its connections end, which is known at once: not only when those who wait would ask again.
#[tokio::test(start_paused = true)]
async fn who_waits_at_a_node_that_goes_has_the_lock_from_another_one_as_soon() {
    let nodes = Nodes::new(5);
    let holder = process(&nodes, "holder").await;
    let waiters = [process(&nodes, "one").await, process(&nodes, "other").await];
    let guard = holder.lock("k").await.unwrap();
    // They have met others at the key, and so ask the node with the queue before all.
    for waiter in &waiters {
        assert!(waiter.lock("k").try_acquire().await.unwrap().is_none());
    }
    let waiting: Vec<_> = waiters.iter().map(|waiter| wait(waiter, ms(10_000))).collect();
    sleep(ms(10)).await;
    let queue = b"{k}:quorlock:queue".to_vec();
    let keeps_queue = |node: &&quorlock::testing::Node| node.keys().contains(&queue);
    nodes.iter().find(keeps_queue).unwrap().stop();
    sleep(ms(5)).await;
    let released = Instant::now();
    drop(guard);
    for (place, waiting) in waiting.into_iter().enumerate() {
        let (at, won) = waiting.await.unwrap();
        drop(won.unwrap());
        assert!(at - released <= ms(50), "{place}: {:?}", at - released);
    }
}

/// Nodes tell of changes, as the handshake says, and then refuse to when they are asked.
#[tokio::test(start_paused = true)]
async fn where_nodes_refuse_to_tell_of_changes_a_lock_of_another_library_is_polled() {
    let nodes = Nodes::new(3);
    let waiter = connected(nodes.locker().retry(Retry::fixed(ms(5)))).await;
    let refused = Reaction::Answer(b"-NOPERM no 'client|caching'\r\n".to_vec());
    nodes.add(When::before("client").then(refused));
    hold_foreign(&nodes, ms(30_000));
    for held_for in [ms(20), ms(200)] {
        let waiting = wait(&waiter, ms(10_000));
        sleep(held_for).await; // long before its next beat
        assert!(waiter.health().iter().any(|node| !node.tells_changes));
        let freed = Instant::now();
        Held::Foreign.release(&nodes);
        let (at, won) = waiting.await.unwrap();
        assert!(won.is_ok() && at - freed <= ms(7), "{held_for:?}: {:?}", at - freed);
        drop(won);
        sleep(ms(2_000)).await; // until it is forgotten that others were met here
        hold_foreign(&nodes, ms(30_000));
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_that_are_busy_when_they_are_to_tell_of_changes_are_asked_again() {
    let nodes = Nodes::new(3);
    let waiter = process(&nodes, "waiter").await;
    let busy = Reaction::Answer(b"-BUSY a script runs\r\n".to_vec());
    nodes.add(When::before("client").times(2).then(busy));
    hold_foreign(&nodes, ms(30_000));
    let waiting = wait(&waiter, ms(10_000));
    sleep(BEAT + ms(20)).await;
    let freed = Instant::now();
    Held::Foreign.release(&nodes);
    let (at, won) = waiting.await.unwrap();
    assert!(won.is_ok() && at - freed <= ms(2), "{:?}", at - freed);
    assert!(waiter.health().iter().all(|node| node.tells_changes));
}

#[tokio::test(start_paused = true)]
async fn case_25_a_lock_whose_holder_was_killed_is_taken_within_20_ms_of_its_end() {
    let nodes = Nodes::new(5);
    let waiter = process(&nodes, "waiter").await;
    let behind = process(&nodes, "behind").await;
    // At all distances from a beat, and around the eighth, at which all nodes are asked.
    let lives = (20..1_700).step_by(41).chain((3_900..4_150).step_by(7));
    for life in lives {
        let end = Instant::now() + ms(life);
        hold_foreign(&nodes, ms(life));
        let first = wait(&waiter, ms(10_000));
        sleep(ms(1)).await;
        let second = wait(&behind, ms(10_000));
        let (at, won) = first.await.unwrap();
        let late = at.checked_duration_since(end).expect("not before the end");
        assert!(late <= ms(20), "{life} ms: {late:?}");
        drop(won.unwrap());
        drop(second.await.unwrap().1.unwrap());
        assert_eq!(left(&nodes).await, [b""; 0]);
        sleep(ms(1_000)).await; // the contention is forgotten
    }
}

#[tokio::test(start_paused = true)]
async fn case_25_so_is_one_of_this_library_that_was_extended_and_then_killed() {
    let nodes = Nodes::new(5);
    let waiter = process(&nodes, "waiter").await;
    for extended_after in [0, 1, 9, 10, 11, 250, 499, 501, 800] {
        let holder = process(&nodes, "holder").await;
        let guard = holder.lock("k").ttl(ms(1_000)).await.unwrap();
        let waits = wait(&waiter, ms(10_000));
        sleep(ms(extended_after)).await;
        guard.extend(ms(1_000)).await.unwrap();
        let end = Instant::now() + ms(1_000);
        drop(guard.forget());
        drop(holder);
        let (at, won) = waits.await.unwrap();
        let late = at.checked_duration_since(end).expect("not before the end");
        assert!(late <= ms(20), "extended after {extended_after} ms: {late:?}");
        drop(won.unwrap());
        assert_eq!(left(&nodes).await, [b""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_in_the_queue_ends_when_it_is_over_and_names_the_holder_of_then() {
    let nodes = Nodes::new(5);
    let (one, two) = (process(&nodes, "one").await, process(&nodes, "two").await);
    let waiter = process(&nodes, "waiter").await;
    for limit in [4, 10, 50, 499, 500, 501, 1_234, 3_999, 4_000, 4_001, 4_500, 9_000] {
        let guard = one.lock("k").await.unwrap();
        let next = wait(&two, ms(60_000));
        sleep(ms(1)).await;
        let began = Instant::now();
        let waits = wait(&waiter, ms(limit));
        sleep_until(began + ms(limit) / 2).await;
        drop(guard);
        let next = next.await.unwrap().1.unwrap();
        let (at, ended) = waits.await.unwrap();
        let error = ended.unwrap_err();
        let took = at - began;
        assert!(ms(limit) <= took && took <= ms(limit) + GRAIN, "{limit}: {took:?}");
        let holder = error.holder().and_then(|holder| holder.owner.as_deref());
        assert!(error.is_contended() && holder == Some(two.owner()), "{limit}: {error}");
        drop(next);
        assert_eq!(left(&nodes).await, [b""; 0]);
        sleep(ms(1_000)).await;
    }
}

/// Every command takes so long to each node and back.
fn far(nodes: &Nodes, one_way: Duration) {
    nodes.add(When::before_any().then(Reaction::Delay(one_way)));
    nodes.add(When::after_any().then(Reaction::Delay(one_way)));
}

#[tokio::test(start_paused = true)]
async fn case_23_no_release_is_missed_at_whatever_point_of_a_waiters_way_it_comes() {
    for (one_way, is_ours) in [(3, true), (3, false), (15, true), (15, false)] {
        let nodes = Nodes::new(5);
        let (holder, waiter) = (process(&nodes, "holder").await, process(&nodes, "waiter").await);
        far(&nodes, ms(one_way));
        for after in 0..16 * one_way {
            let held = Held::begin(&nodes, is_ours.then_some(&holder)).await;
            let waits = wait(&waiter, ms(60_000));
            sleep(ms(after)).await;
            let released = Instant::now();
            held.release(&nodes);
            let (at, won) = waits.await.unwrap();
            let took = at - released;
            // There, and in turn: the word of the hand-over, the question to all, its answer. Who
            // has missed the word looks after 10 ms, and asks.
            let bound = 8 * ms(one_way) + ms(10) + 3 * GRAIN;
            assert!(took <= bound, "{one_way} ms, {is_ours}, after {after} ms: {took:?}");
            drop(won.unwrap());
            assert_eq!(left(&nodes).await, [b""; 0]);
            sleep(ms(1_000)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_foreign_release_that_reaches_the_nodes_one_after_the_other_is_not_missed() {
    for between in [1, 3, 8, 20, 100] {
        for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 1, 0, 4, 3]] {
            let nodes = Nodes::new(5);
            let waiter = process(&nodes, "waiter").await;
            hold_foreign(&nodes, ms(30_000));
            let waits = wait(&waiter, ms(60_000));
            sleep(ms(20)).await;
            for node in order {
                drop(nodes[node].command(["DEL", "k"]));
                sleep(ms(between)).await;
            }
            let released = Instant::now();
            let (at, won) = waits.await.unwrap();
            let took = at.saturating_duration_since(released);
            assert!(took <= BEAT, "{between} {order:?}: {took:?}");
            drop(won.unwrap());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn case_24_a_waiter_that_is_dropped_when_it_is_called_passes_that_on() {
    let nodes = Nodes::new(5);
    let holder = process(&nodes, "holder").await;
    let (first, second) = (process(&nodes, "first").await, process(&nodes, "second").await);
    far(&nodes, ms(1));
    for is_ours in [true, false] {
        let mut dropped_behind = 0;
        for polls in 0.. {
            let held = Held::begin(&nodes, is_ours.then_some(&holder)).await;
            let request = first.lock("k").wait_forever().acquire();
            let cancelled = tokio::spawn(poll_times(request, polls));
            sleep(ms(30)).await;
            let waits = wait(&second, ms(60_000));
            sleep(ms(30)).await;
            let was_called = !cancelled.is_finished();
            let released = Instant::now();
            held.release(&nodes);
            let ended = cancelled.await.unwrap();
            let dropped = Instant::now().max(released);
            let is_dropped = matches!(ended, PollTimes::Dropped);
            drop(ended);
            let took = waits.await.unwrap().0 - dropped;
            // The undo there, the word of the hand-over, the question to all, its answer.
            assert!(took <= ms(4) + GRAIN, "{is_ours}, dropped after {polls} polls: {took:?}");
            dropped_behind += u32::from(was_called && is_dropped);
            assert_eq!(left(&nodes).await, [b""; 0]);
            sleep(ms(1_000)).await;
            if !is_dropped {
                break;
            }
        }
        assert!(dropped_behind > 0, "none was dropped when it was called: {is_ours}");
    }
}

#[tokio::test(start_paused = true)]
async fn case_24_one_that_leaves_before_the_release_costs_the_next_one_no_more_than_a_beat() {
    let nodes = Nodes::new(5);
    let holder = process(&nodes, "holder").await;
    let (first, second) = (process(&nodes, "first").await, process(&nodes, "second").await);
    for (is_ours, after) in [(true, 0), (true, 200), (false, 0), (false, 200), (false, 600)] {
        let held = Held::begin(&nodes, is_ours.then_some(&holder)).await;
        let cancelled = wait(&first, ms(60_000));
        sleep(ms(20)).await;
        let waits = wait(&second, ms(60_000));
        sleep(ms(20)).await;
        cancelled.abort();
        assert!(cancelled.await.is_err());
        sleep(ms(after)).await;
        let released = Instant::now();
        held.release(&nodes);
        let took = waits.await.unwrap().0 - released;
        // Another locker knows of the queue. Of one that knows nothing, the next one learns by its
        // own question that it is the first.
        let bound = if is_ours || after > 500 { 2 * GRAIN } else { BEAT + GRAIN };
        assert!(took <= bound, "{is_ours}, {after} ms later: {took:?}");
        assert_eq!(left(&nodes).await, [b""; 0]);
        sleep(ms(1_000)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_ends_while_it_is_asked_how_long_it_lives_is_taken_in_turn() {
    let nodes = Nodes::new(5);
    let waiter = process(&nodes, "waiter").await;
    far(&nodes, ms(3));
    for life in 1..60 {
        hold_foreign(&nodes, ms(life));
        let end = Instant::now() + ms(life);
        let (at, won) = wait(&waiter, ms(60_000)).await.unwrap();
        let took = at - end;
        assert!(took <= ms(20), "{life} ms: {took:?}");
        drop(won.unwrap());
        assert_eq!(left(&nodes).await, [b""; 0]);
        sleep(ms(1_000)).await;
    }
}

/// Who holds the lock is looked up for the error, and a node that hangs is not waited for.
#[tokio::test(start_paused = true)]
async fn who_gives_up_is_told_so_and_by_whom_in_time_though_nodes_hang() {
    let faults = [(0, 0, 0), (0, 0, 2), (50, 0, 1), (50, 1, 1), (50, 0, 2), (350, 0, 2)];
    for (limit, down, hung) in faults {
        let nodes = Nodes::new(5);
        let (holder, waiter) = (process(&nodes, "holder").await, process(&nodes, "waiter").await);
        let held = holder.lock("k").await.unwrap();
        sleep(ms(20)).await;
        (0..down).for_each(|node| nodes[node].stop());
        sleep(ms(20)).await;
        (down..down + hung).for_each(|node| nodes[node].hang());
        let began = Instant::now();
        let error = waiter.lock("k").wait(ms(limit)).await.unwrap_err();
        let late = began.elapsed().saturating_sub(ms(limit));
        assert!(late <= GRAIN, "{limit} ms, {down} nodes are down, {hung} hang: {late:?} late");
        assert!(error.is_contended(), "{error}");
        let owner = error.holder().and_then(|holder| holder.owner.as_deref());
        assert!(owner.is_some_and(|owner| owner.starts_with("holder@")), "{error}");
        drop(held);
    }
}

#[tokio::test(start_paused = true)]
async fn case_26_an_extension_asks_one_node_for_the_first_that_waits_and_wakes_no_other() {
    let nodes = Nodes::new(5);
    let holder = process(&nodes, "holder").await;
    let (first, second) = (process(&nodes, "first").await, process(&nodes, "second").await);
    let guard = holder.lock("k").await.unwrap();
    let waits = [wait(&first, ms(60_000)), {
        sleep(ms(20)).await;
        wait(&second, ms(60_000))
    }];
    sleep(ms(20)).await;
    let calls = |name| nodes.iter().map(|node| node.calls(name)).sum::<u64>();
    let names = ["SET", "turn_ask", "PTTL", "turn_leave"];
    let before = names.map(calls);
    for _ in 0..20 {
        guard.extend(ms(30_000)).await.unwrap();
        sleep(ms(20)).await;
    }
    let [set, ask, pttl, leave] = names.map(calls);
    assert_eq!((set, leave), (before[0], before[3]), "no node is asked for the lock");
    // The server tells the first of them of each change, and so it asks that node, and looks there.
    let (asked, looked) = (ask - before[1], pttl - before[2]);
    let by_extensions = 20 * 5;
    assert!(asked <= 20 && looked <= by_extensions + 2 * 20, "{asked} questions, {looked} looks");
    let (one, two) = (first.stats(), second.stats());
    assert_eq!((one.handed_over, two.handed_over, two.changed, two.by_time), (0, 0, 0, 0));
    assert!(one.waiting == 1 && two.waiting == 1);
    drop(guard);
    for waits in waits {
        drop(waits.await.unwrap().1.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiter_whose_first_question_is_unanswered_leaves_nothing_when_the_node_is_back() {
    // It is dropped, or its time is over, before it is known that the node is silent, and behind.
    for (is_dropped, after) in [(true, 2), (true, 50), (true, 300), (false, 50), (false, 300)] {
        let nodes = Nodes::new(5);
        let waiter = process(&nodes, "waiter").await;
        hold_foreign(&nodes, ms(60_000));
        // The node with the queue is the one that is asked.
        nodes.add(When::before("turn_ask").nth(1).then(Reaction::Hang));
        let limit = if is_dropped { 60_000 } else { after };
        let began = Instant::now();
        let waits = wait(&waiter, ms(limit));
        sleep(ms(1)).await;
        // The next one, which is asked then, answers.
        nodes.iter().for_each(|node| node.clear_rules());
        sleep(ms(after - 1)).await;
        let silent: Vec<_> = nodes.iter().filter(|node| !node.is_running()).collect();
        assert_eq!(silent.len(), 1);
        if is_dropped {
            waits.abort();
            assert!(waits.await.is_err());
        } else {
            let (at, ended) = waits.await.unwrap();
            assert!(ended.unwrap_err().is_contended());
            // Who holds it is asked for, and the silent one is waited for.
            let took = at - began;
            assert!(took <= ms(limit) + NODE_TIMEOUT + GRAIN, "{took:?}");
        }
        sleep(ms(700)).await;
        silent.iter().for_each(|node| node.resume());
        sleep(ms(200)).await;
        for node in &nodes {
            assert_eq!(node.keys(), [b"k"], "dropped: {is_dropped}, after {after} ms");
            assert_eq!(node.value("k").as_deref(), Some(&b"theirs"[..]));
        }
    }
}

/// The queue knows of no holder, and grants the key; the others know of one.
#[tokio::test(start_paused = true)]
async fn one_that_the_other_nodes_refuse_has_the_lock_as_soon_as_they_let_go() {
    for after in [3, 20, 100, 300, 499] {
        let nodes = Nodes::new(5);
        let waiter = process(&nodes, "waiter").await;
        hold_foreign(&nodes, ms(30_000));
        let waiting = wait(&waiter, ms(10_000));
        sleep(ms(20)).await;
        let queue = b"{k}:quorlock:queue".to_vec();
        let is_queue = |node: &&quorlock::testing::Node| node.keys().contains(&queue);
        nodes.iter().find(is_queue).unwrap().command(["DEL", "k"]);
        sleep(ms(after)).await;
        assert!(!waiting.is_finished());
        let freed = Instant::now();
        Held::Foreign.release(&nodes);
        let (at, won) = waiting.await.unwrap();
        let late = at - freed;
        assert!(won.is_ok() && late <= ms(20), "after {after} ms: {late:?}");
    }
}
