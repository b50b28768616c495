//! Each kind of lock, dropped at every poll of its requests, and of what is done with its guard: no
//! key is left, and what it would keep out can be had.

use std::future::IntoFuture;
use std::pin::pin;
use std::time::Duration;

use quorlock::{Error, LockGuard, LockRequest, Locker};
use support::wait::{PATIENCE, eventually_async};
use support::{Fleet, need_process, poll_times};
use tokio::time::timeout;

use super::POLLS_MAX;
use crate::waiting::hearing;

/// Asks a locker for what stands under this key.
type Ask = fn(&Locker, &str) -> LockRequest;

/// A kind of lock, and what another client has meanwhile: what keeps it out, or goes with it.
#[derive(Clone, Copy)]
struct Kind {
    /// Its key, too. None begins with another's name.
    name: &'static str,
    ask: Ask,
    other: Ask,
}

const fn kind(name: &'static str, ask: Ask, other: Ask) -> Kind {
    Kind { name, ask, other }
}

/// Each with what keeps it out.
const KINDS: [Kind; 13] = [
    kind("lock", lock, lock),
    kind("fair", |of, key| lock(of, key).fair(), lock),
    kind("strict", |of, key| lock(of, key).fair_strict(), |of, key| lock(of, key).fair_strict()),
    kind("delayed", |of, key| lock(of, key).lock_delay(DELAY), lock),
    kind("reader", read, write),
    kind("read-in-turn", |of, key| read(of, key).fair(), write),
    kind("writer", write, read),
    kind("written-in-turn", |of, key| write(of, key).fair(), read),
    kind("slot", one_slot, both_slots),
    kind("in-turn-slot", |of, key| one_slot(of, key).fair(), both_slots),
    kind("two-slots", both_slots, one_slot),
    kind(
        "several",
        |of, key| of.lock_all([key, &format!("{key}-too")]),
        |of, key| of.lock(format!("{key}-too")),
    ),
    kind("part", |of, key| of.segments(key, 4).of(6), |of, key| of.segments(key, 4).of(2)),
];

/// Each with what it may be had beside.
const BESIDE: [Kind; 2] = [kind("reader", read, read), kind("slot", one_slot, one_slot)];

const DELAY: Duration = Duration::from_millis(300);

/// For so long a request waits for what keeps it out, before that is let go of.
const WAITS: Duration = Duration::from_millis(30);

fn lock(locker: &Locker, key: &str) -> LockRequest {
    locker.lock(key)
}

fn read(locker: &Locker, key: &str) -> LockRequest {
    locker.read(key)
}

fn write(locker: &Locker, key: &str) -> LockRequest {
    locker.write(key)
}

fn one_slot(locker: &Locker, key: &str) -> LockRequest {
    locker.slots(key, 2).acquire()
}

fn both_slots(locker: &Locker, key: &str) -> LockRequest {
    locker.slots(key, 2).acquire_many(2)
}

/// A kind of lock, for a client that drops its futures, and for another one.
struct Case {
    fleet: Fleet,
    ours: Locker,
    theirs: Locker,
    kind: Kind,
}

impl Case {
    fn ask(&self) -> LockRequest {
        (self.kind.ask)(&self.ours, self.kind.name).wait(PATIENCE)
    }

    async fn acquire(&self) -> LockGuard {
        self.ask().await.unwrap()
    }

    /// The other lock, in the hand of the other client.
    async fn other(&self) -> LockGuard {
        (self.kind.other)(&self.theirs, self.kind.name).wait(PATIENCE).await.unwrap()
    }

    async fn leaves_nothing(&self, polls: usize) {
        let name = self.kind.name;
        let what = format!("{name}, {polls} polls: nothing is left");
        eventually_async(&what, async || {
            let left = self.fleet.keys_left("");
            !left.iter().any(|(_, key)| key.trim_start_matches('{').starts_with(name))
        })
        .await;
        release(self.other().await).await;
    }
}

async fn release(guard: LockGuard) {
    assert!(guard.release().await.unwrap().is_released());
}

/// Drops a future of each kind at its first, its second, … poll, until it is done by then: the
/// operation says whether it is.
async fn at_every_poll(kinds: &[Kind], operation: impl AsyncFn(&Case, usize) -> bool) {
    need_process!();
    let fleet = Fleet::start(3);
    let (ours, theirs) = (hearing(&fleet, "ours").await, hearing(&fleet, "theirs").await);
    let mut case = Case { fleet, ours, theirs, kind: kinds[0] };
    for kind in kinds {
        case.kind = *kind;
        let mut polls = 0;
        loop {
            let is_done = operation(&case, polls).await;
            case.leaves_nothing(polls).await;
            if is_done {
                break;
            }
            polls += 1;
            assert!(polls < POLLS_MAX, "{}: never done", kind.name);
        }
    }
}

#[tokio::test]
async fn an_acquisition_that_is_dropped_at_any_poll_leaves_nothing() {
    at_every_poll(&KINDS, async |case, polls| {
        let ended = poll_times(case.ask().into_future(), polls).await.completed();
        ended.map(Result::unwrap).is_some()
    })
    .await;
}

#[tokio::test]
async fn a_try_that_is_dropped_at_any_poll_leaves_nothing() {
    at_every_poll(&KINDS, async |case, polls| {
        let tried = poll_times(case.ask().try_acquire(), polls).await.completed();
        tried.map(|tried| tried.unwrap().expect("it is free")).is_some()
    })
    .await;
}

/// What keeps it out is let go of while it waits, and it has the lock then, or is dropped.
#[tokio::test]
async fn one_that_waits_and_is_dropped_at_any_poll_leaves_nothing() {
    at_every_poll(&KINDS, async |case, polls| {
        let in_the_way = case.other().await;
        let mut asking = pin!(poll_times(case.ask().into_future(), polls));
        let is_over = match timeout(WAITS, &mut asking).await {
            Ok(ended) => {
                assert!(ended.completed().is_none(), "{}: had beside another", case.kind.name);
                true
            }
            Err(_) => false,
        };
        release(in_the_way).await;
        if is_over {
            return false;
        }
        let ended = timeout(PATIENCE, asking).await.expect("its turn has come");
        ended.completed().map(Result::unwrap).is_some()
    })
    .await;
}

#[tokio::test]
async fn a_try_of_what_another_has_is_dropped_at_any_poll_and_leaves_that() {
    at_every_poll(&KINDS, async |case, polls| {
        let in_the_way = case.other().await;
        let tried = poll_times(case.ask().try_acquire(), polls).await.completed();
        release(in_the_way).await;
        tried.inspect(|tried| assert!(matches!(tried, Ok(None)), "{tried:?}")).is_some()
    })
    .await;
}

#[tokio::test]
async fn one_that_is_dropped_at_any_poll_beside_another_leaves_that() {
    at_every_poll(&BESIDE, async |case, polls| {
        let beside = case.other().await;
        let ended = poll_times(case.ask().into_future(), polls).await.completed();
        release(beside).await;
        ended.map(Result::unwrap).is_some()
    })
    .await;
}

#[tokio::test]
async fn a_release_that_is_dropped_at_any_poll_leaves_nothing() {
    at_every_poll(&KINDS, async |case, polls| {
        let released = poll_times(case.acquire().await.release(), polls).await.completed();
        released.inspect(|found| assert!(found.as_ref().unwrap().is_released())).is_some()
    })
    .await;
}

#[tokio::test]
async fn an_extension_that_is_dropped_at_any_poll_leaves_the_lock_held() {
    at_every_poll(&KINDS, async |case, polls| {
        let guard = case.acquire().await;
        let ttl = Duration::from_secs(15);
        let extended = poll_times(guard.extend(ttl), polls).await.completed();
        assert!(guard.is_valid(), "{}: {polls} polls", case.kind.name);
        release(guard).await;
        extended.map(Result::unwrap).is_some()
    })
    .await;
}

#[tokio::test]
async fn a_run_that_is_dropped_at_any_poll_leaves_nothing() {
    at_every_poll(&KINDS, async |case, polls| {
        let work = async |_| {
            tokio::task::yield_now().await;
            Ok::<_, Error>(())
        };
        let ran = poll_times(case.ask().run_async(work), polls).await.completed();
        ran.map(Result::unwrap).is_some()
    })
    .await;
}

/// Only what has one key is asked for within a guard.
#[tokio::test]
async fn a_request_within_a_guard_is_dropped_at_any_poll_and_leaves_that() {
    let has_one_key =
        |kind: &&Kind| !["slot", "in-turn-slot", "two-slots", "several"].contains(&kind.name);
    let kinds: Vec<Kind> = KINDS.iter().filter(has_one_key).copied().collect();
    at_every_poll(&kinds, async |case, polls| {
        let guard = case.acquire().await;
        let within = poll_times(case.ask().within(&guard), polls).await.completed();
        let is_done = within.map(Result::unwrap).is_some(); // and is dropped
        assert!(guard.is_valid(), "{}: {polls} polls", case.kind.name);
        release(guard).await;
        is_done
    })
    .await;
}
