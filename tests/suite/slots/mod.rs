//! Slots of one key: never more holders than slots, each with a number of its own.

mod beside;
mod revoked;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use quorlock::{LockGuard, LockRequest, Locker, Retry};
use support::wait::PATIENCE;
use support::{Fleet, Reply, eventually_async, need_process};
use tokio::task::JoinHandle;

use crate::waiting::hearing;
use crate::{builder, connected};

/// One that waits, as a task.
fn waiting(request: LockRequest) -> JoinHandle<LockGuard> {
    tokio::spawn(async move { request.wait(PATIENCE).await.unwrap() })
}

async fn is_free(locker: &Locker, count: u16) -> bool {
    locker.slots("k", count).acquire().try_acquire().await.unwrap().is_some()
}

async fn release(guard: LockGuard) {
    assert!(guard.release().await.unwrap().is_released());
}

fn queued(fleet: &Fleet, count: u16) -> i64 {
    let queue = format!("{{k}}:slots:{count}:quorlock:queue");
    fleet.command(&["ZCARD", &queue]).iter().map(Reply::int).sum()
}

async fn waits(fleet: &Fleet, count: u16, waiters: i64) {
    eventually_async("so many wait", async || queued(fleet, count) == waiters).await;
}

async fn nothing_is_left(fleet: &Fleet) {
    eventually_async("nothing is left", async || fleet.keys_left("").is_empty()).await;
}

#[tokio::test]
async fn so_many_have_a_slot_at_once_and_no_more_each_with_another_number() {
    need_process!();
    let fleet = Fleet::start(5);
    let (one, two) = (hearing(&fleet, "one").await, hearing(&fleet, "two").await);
    for _ in 0..5 {
        let mut guards = Vec::new();
        for number in 0..4 {
            let locker = if number % 2 == 0 { &one } else { &two };
            guards.push(locker.slots("k", 4).acquire().await.unwrap());
        }
        let mut numbers: Vec<u16> = guards.iter().flat_map(LockGuard::slots).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [0, 1, 2, 3]);
        assert!(!is_free(&one, 4).await && !is_free(&two, 4).await);
        assert!(guards.iter().all(|guard| guard.is_valid() && guard.key() == *b"k"));
        for guard in guards {
            guard.extend(Duration::from_secs(20)).await.unwrap();
            release(guard).await;
        }
        nothing_is_left(&fleet).await;
    }
}

/// All or nothing, beside others that have some.
#[tokio::test]
async fn several_slots_are_one_lock() {
    need_process!();
    let fleet = Fleet::start(5);
    let (one, two) = (hearing(&fleet, "one").await, hearing(&fleet, "two").await);
    let slots = one.slots("k", 4);
    let three = slots.acquire_many(3).await.unwrap();
    assert_eq!(three.slots().len(), 3);
    assert!(slots.acquire_many(2).try_acquire().await.unwrap().is_none());
    let last = two.slots("k", 4).acquire().await.unwrap();
    assert!(!three.slots().contains(&last.slots()[0]));
    three.extend(Duration::from_secs(20)).await.unwrap();
    release(three).await;
    assert!(slots.acquire_many(4).try_acquire().await.unwrap().is_none());
    let three = two.slots("k", 4).acquire_many(3).await.unwrap();
    release(last).await;
    release(three).await;
    nothing_is_left(&fleet).await;
    release(slots.acquire_many(4).await.unwrap()).await;
}

/// Each is a lock of the key that the manual names, for clients that know of no slots.
#[tokio::test]
async fn a_client_that_knows_of_no_slots_takes_one_and_is_kept_from_one() {
    need_process!();
    let fleet = Fleet::start(3);
    let locker = hearing(&fleet, "one").await;
    let plain = fleet.command(&["SET", "{k}:slot:0", "theirs", "NX", "PX", "60000"]);
    assert!(plain.iter().all(|reply| *reply != Reply::Nil), "{plain:?}");
    let guard = locker.slots("k", 2).acquire().await.unwrap();
    assert_eq!(guard.slots(), [1]);
    assert!(!is_free(&locker, 2).await);
    // A majority has answered; the last node may be about to.
    let is_everywhere = async || fleet.holders("{k}:slot:1").len() == 3;
    eventually_async("all nodes have set it", is_everywhere).await;
    let plain = fleet.command(&["SET", "{k}:slot:1", "theirs", "NX", "PX", "60000"]);
    assert!(plain.iter().all(|reply| *reply == Reply::Nil), "{plain:?}");
    assert!(guard.is_valid());
    let error = locker.slots("k", 2).acquire().wait(Duration::from_millis(50)).await.unwrap_err();
    assert!(error.is_contended() && error.holder().is_none(), "{error}");
    assert!(error.to_string().starts_with("too few of the 2 slots of \"k\" are free"), "{error}");
}

/// What a node that keeps no queue believes does not decide: the others hold all of them.
#[tokio::test]
async fn a_slot_that_the_queues_node_alone_believes_free_is_not_won_and_the_next_is() {
    need_process!();
    let fleet = Fleet::start(5);
    let locker = hearing(&fleet, "one").await;
    let held = locker.slots("k", 3).acquire_many(2).await.unwrap();
    let waiter = waiting(locker.slots("k", 3).acquire_many(3));
    waits(&fleet, 3, 1).await;
    let queue = fleet.command(&["EXISTS", "{k}:slots:3:quorlock:queue"]);
    let node = queue.iter().position(|there| *there == Reply::Int(1)).unwrap();
    waiter.abort();
    waits(&fleet, 3, 0).await;
    fleet[node].command(&["DEL", "{k}:slot:0", "{k}:slot:1", "{k}:slot:2"]);
    let free = locker.slots("k", 3).acquire().await.unwrap();
    assert!(!held.slots().contains(&free.slots()[0]), "{held:?} {free:?}");
    assert!(!is_free(&locker, 3).await);
    for guard in [held, free] {
        assert!(guard.is_valid());
        drop(guard);
    }
    nothing_is_left(&fleet).await;
}

#[tokio::test]
async fn those_that_wait_are_woken_in_the_order_of_their_arrival() {
    need_process!();
    let fleet = Fleet::start(5);
    let mut lockers = Vec::new();
    for name in ["first", "second", "third", "fourth"] {
        lockers.push(hearing(&fleet, name).await);
    }
    let mut held = vec![
        lockers[0].slots("k", 2).acquire().await.unwrap(),
        lockers[1].slots("k", 2).acquire().await.unwrap(),
    ];
    let mut waiters = Vec::new();
    for (at, locker) in lockers.iter().enumerate() {
        let locker = locker.clone().slots("k", 2);
        waiters.push(waiting(locker.acquire()));
        waits(&fleet, 2, at as i64 + 1).await;
    }
    for waiter in waiters {
        assert!(!waiter.is_finished());
        release(held.remove(0)).await;
        held.push(waiter.await.unwrap());
    }
    for guard in held {
        release(guard).await;
    }
    nothing_is_left(&fleet).await;
    let woken: u64 = lockers.iter().map(|locker| locker.stats().handed_over).sum();
    assert!(woken >= 4, "{woken}");
}

/// One that wants many keeps its place: those that come later and want few do not pass it.
#[tokio::test]
async fn one_that_wants_many_is_not_passed_by_those_that_want_few() {
    need_process!();
    let fleet = Fleet::start(3);
    let (one, two) = (hearing(&fleet, "one").await, hearing(&fleet, "two").await);
    let held = [(); 2].map(|()| one.slots("k", 3).acquire());
    let [first, second] = held;
    let (first, second) = (first.await.unwrap(), second.await.unwrap());
    let many = waiting(two.slots("k", 3).acquire_many(3));
    waits(&fleet, 3, 1).await;
    let few = waiting(one.slots("k", 3).acquire());
    waits(&fleet, 3, 2).await;
    release(first).await;
    assert!(!many.is_finished() && !few.is_finished());
    release(second).await;
    release(many.await.unwrap()).await;
    release(few.await.unwrap()).await;
    nothing_is_left(&fleet).await;
}

/// Several at once are enough for several that wait, and each is woken.
#[tokio::test]
async fn many_slots_that_are_let_go_of_at_once_wake_all_that_wait_for_one() {
    need_process!();
    let fleet = Fleet::start(5);
    let (one, two) = (hearing(&fleet, "one").await, hearing(&fleet, "two").await);
    let all = one.slots("k", 4).acquire_many(4).await.unwrap();
    let mut waiters = Vec::new();
    for number in 1..=4 {
        waiters.push(waiting(two.slots("k", 4).acquire()));
        waits(&fleet, 4, number).await;
    }
    release(all).await;
    let mut numbers = Vec::new();
    let mut guards = Vec::new();
    for waiter in waiters {
        let guard = waiter.await.unwrap();
        numbers.extend(guard.slots());
        guards.push(guard);
    }
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1, 2, 3]);
    assert!(two.stats().handed_over >= 4, "{:?}", two.stats());
    drop(guards);
    nothing_is_left(&fleet).await;
}

/// Each by its own name, and a lock of the key by none of them.
#[tokio::test]
async fn the_keys_own_lock_and_another_number_of_slots_have_queues_of_their_own() {
    need_process!();
    let fleet = Fleet::start(3);
    let (one, two) = (hearing(&fleet, "one").await, hearing(&fleet, "two").await);
    let whole = one.lock("k").await.unwrap();
    let first = one.slots("k", 1).acquire().await.unwrap();
    assert_eq!(first.slots(), [0]);
    let waiter = waiting(two.slots("k", 1).acquire());
    waits(&fleet, 1, 1).await;
    // Of three slots two are free, whatever those believe that know of one.
    let more = two.slots("k", 3).acquire_many(2).await.unwrap();
    assert_eq!(more.slots().iter().min(), Some(&1));
    assert!(!is_free(&two, 3).await && !waiter.is_finished());
    for guard in [first, more, whole] {
        release(guard).await;
    }
    release(waiter.await.unwrap()).await;
    nothing_is_left(&fleet).await;
}

/// By a task that asks in turn, and has no queue: at the pauses that it was given.
#[tokio::test]
async fn one_that_polls_finds_a_slot_and_stands_in_no_queue() {
    need_process!();
    let fleet = Fleet::start(3);
    let (one, two) = (hearing(&fleet, "one").await, hearing(&fleet, "two").await);
    let held = one.slots("k", 1).acquire().await.unwrap();
    let polls = Retry::fixed(Duration::from_millis(10)).tries_max(10_000);
    let request = two.slots("k", 1).acquire().retry(polls);
    let waiter = waiting(request);
    let has_asked = async || two.stats().waiting == 1;
    eventually_async("it polls", has_asked).await;
    assert_eq!(queued(&fleet, 1), 0);
    release(held).await;
    release(waiter.await.unwrap()).await;
    nothing_is_left(&fleet).await;
}

/// The node of the queue and the others have other scripts, and each lacks its own.
#[tokio::test]
async fn several_slots_are_had_of_servers_that_have_forgotten_the_scripts() {
    need_process!();
    let fleet = Fleet::start(3);
    let locker = hearing(&fleet, "one").await;
    for wait in [Duration::ZERO, PATIENCE] {
        for _ in 0..5 {
            fleet.command(&["SCRIPT", "FLUSH"]);
            release(locker.slots("k", 3).acquire_many(2).wait(wait).await.unwrap()).await;
        }
    }
    nothing_is_left(&fleet).await;
}

/// Never more at once than there are slots, also by those that come and go all the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_of_processes_has_never_more_than_there_are() {
    need_process!();
    let fleet = Fleet::start(5);
    let mut tasks = Vec::new();
    let (inside, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    for name in ["one", "two", "three", "four"] {
        let locker = hearing(&fleet, name).await;
        for task in 0..8_u16 {
            let (slots, inside, most) = (locker.slots("k", 5), inside.clone(), most.clone());
            tasks.push(tokio::spawn(async move {
                let weight = 1 + task % 2;
                for _ in 0..20 {
                    let guard = slots.acquire_many(weight).wait(PATIENCE).await.unwrap();
                    let now = inside.fetch_add(weight.into(), Ordering::SeqCst) + u32::from(weight);
                    most.fetch_max(now, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    inside.fetch_sub(weight.into(), Ordering::SeqCst);
                    release(guard).await;
                }
            }));
        }
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert!((2..=5).contains(&most.load(Ordering::SeqCst)), "{most:?}");
    nothing_is_left(&fleet).await;
}

#[tokio::test]
async fn what_cannot_be_is_refused_with_a_reason() {
    need_process!();
    let fleet = Fleet::start(1);
    let locker = connected(builder(&fleet)).await;
    for (request, reason) in [
        (locker.slots("k", 0).acquire(), "a key has from 1 to 64"),
        (locker.slots("k", 65).acquire(), "a key has from 1 to 64"),
        (locker.slots("k", 2).acquire_many(0), "0 of 2 slots"),
        (locker.slots("k", 2).acquire_many(3), "3 of 2 slots"),
        (locker.slots("", 2).acquire(), "empty"),
        (locker.slots("a}", 2).acquire(), "brace"),
        (locker.slots("k", 2).acquire().fenced(), "slots have no fence"),
    ] {
        let error = request.await.unwrap_err();
        assert!(error.is_misuse() && error.to_string().contains(reason), "{error}");
    }
    let fenced = connected(builder(&fleet).fenced(true)).await;
    let guard = fenced.slots("k", 2).acquire().await.unwrap();
    assert!(guard.fence().is_none());
    let error = guard.downgrade().await.unwrap_err();
    assert!(error.is_misuse(), "{error}");
    nothing_is_left(&fleet).await;
}
