//! Every kind of lock, dropped at every poll of every operation.
//!
//! Nothing of it may be left, and it may keep no one out for longer than what it has left lives.

use std::future::IntoFuture;
use std::pin::pin;
use std::time::Duration;

use quorlock::{Error, LockGuard, LockRequest, Locker};
use support::wait::{PATIENCE, eventually_async};
use support::{Fleet, PollTimes, need_process, poll_times};
use tokio::time::timeout;

use super::POLLS_MAX;
use crate::waiting::hearing;

/// Asks a locker for what stands under this key.
type Ask = fn(&Locker, &str) -> LockRequest;

/// A kind of lock: its name, how it is asked for, and what keeps it out.
#[derive(Clone, Copy)]
struct Member(&'static str, Ask, Ask);

const MEMBERS: [Member; 11] = [
    Member("lock", |of, key| of.lock(key), |of, key| of.lock(key)),
    Member("fair", |of, key| of.lock(key).fair(), |of, key| of.lock(key)),
    Member("strict", |of, key| of.lock(key).fair_strict(), |of, key| of.lock(key).fair_strict()),
    Member("delayed", |of, key| of.lock(key).lock_delay(DELAY), |of, key| of.lock(key)),
    Member("reader", |of, key| of.read(key), |of, key| of.write(key)),
    Member("read-in-turn", |of, key| of.read(key).fair(), |of, key| of.write(key)),
    Member("writer", |of, key| of.write(key), |of, key| of.read(key)),
    Member("slot", |of, key| of.slots(key, 2).acquire(), all_slots),
    Member("two-slots", all_slots, |of, key| of.slots(key, 2).acquire()),
    Member(
        "several",
        |of, key| of.lock_all([key, &format!("{key}-too")]),
        |of, key| of.lock(format!("{key}-too")),
    ),
    Member("segment", |of, key| of.segments(key, 4).of(6), |of, key| of.segments(key, 4).of(2)),
];

const DELAY: Duration = Duration::from_millis(300);

/// For so long a request goes on until what keeps it out is let go of, if nothing is seen of it.
const WAITS: Duration = Duration::from_millis(30);

fn all_slots(locker: &Locker, key: &str) -> LockRequest {
    locker.slots(key, 2).acquire_many(2)
}

/// One kind on its key, for one who is dropped and one who is not.
struct Case {
    fleet: Fleet,
    ours: Locker,
    theirs: Locker,
    member: Member,
}

impl Case {
    fn ask(&self) -> LockRequest {
        let Member(name, ask, _) = self.member;
        ask(&self.ours, name).wait(PATIENCE)
    }

    async fn acquire(&self) -> LockGuard {
        self.ask().await.unwrap()
    }

    /// What keeps it out, in the hand of the other.
    async fn keep_out(&self) -> LockGuard {
        let Member(name, _, kept_out_by) = self.member;
        kept_out_by(&self.theirs, name).wait(PATIENCE).await.unwrap()
    }

    /// Returns when nothing of it is left, and it is not in the way of what it keeps out.
    async fn leaves_nothing(&self, polls: usize) {
        let name = self.member.0;
        let what = format!("{name}, {polls} polls: nothing is left");
        eventually_async(&what, async || {
            let left = self.fleet.keys_left("");
            !left.iter().any(|(_, key)| key.trim_start_matches('{').starts_with(name))
        })
        .await;
        assert!(self.keep_out().await.release().await.unwrap().is_released(), "{name}");
    }
}

/// Drops an operation of each kind at its first, its second, … poll, until it is done by then.
async fn dropped_at_every_poll(operation: impl AsyncFn(&Case, usize) -> bool) {
    need_process!();
    let fleet = Fleet::start(3);
    let (ours, theirs) = (hearing(&fleet, "ours").await, hearing(&fleet, "theirs").await);
    let mut case = Case { fleet, ours, theirs, member: MEMBERS[0] };
    for member in MEMBERS {
        case.member = member;
        let mut polls = 0;
        loop {
            let is_done = operation(&case, polls).await;
            case.leaves_nothing(polls).await;
            if is_done {
                break;
            }
            polls += 1;
            assert!(polls < POLLS_MAX, "{}: never done", member.0);
        }
    }
}

/// Whether it was done, and went well.
fn is_done<T>(ended: PollTimes<Result<T, Error>>) -> bool {
    match ended {
        PollTimes::Dropped => false,
        PollTimes::Completed(done) => {
            drop(done.unwrap());
            true
        }
    }
}

#[tokio::test]
async fn an_acquisition() {
    dropped_at_every_poll(async |case, polls| {
        is_done(poll_times(case.ask().into_future(), polls).await)
    })
    .await;
}

#[tokio::test]
async fn a_single_try() {
    dropped_at_every_poll(async |case, polls| {
        is_done(poll_times(case.ask().try_acquire(), polls).await)
    })
    .await;
}

/// What keeps it out is let go of while it waits, and it has the lock then, or is dropped.
#[tokio::test]
async fn an_acquisition_that_waits() {
    dropped_at_every_poll(async |case, polls| {
        let in_the_way = case.keep_out().await;
        let mut asking = pin!(poll_times(case.ask().into_future(), polls));
        let ended = timeout(WAITS, &mut asking).await.ok();
        assert!(in_the_way.release().await.unwrap().is_released());
        is_done(match ended {
            Some(ended) => ended,
            None => timeout(PATIENCE, asking).await.expect("its turn has come"),
        })
    })
    .await;
}

#[tokio::test]
async fn a_try_of_what_another_has() {
    dropped_at_every_poll(async |case, polls| {
        let in_the_way = case.keep_out().await;
        let ended = poll_times(case.ask().try_acquire(), polls).await;
        assert!(in_the_way.release().await.unwrap().is_released());
        is_done(ended)
    })
    .await;
}

#[tokio::test]
async fn a_release() {
    dropped_at_every_poll(async |case, polls| {
        let guard = case.acquire().await;
        is_done(poll_times(guard.release(), polls).await)
    })
    .await;
}

#[tokio::test]
async fn an_extension() {
    dropped_at_every_poll(async |case, polls| {
        let guard = case.acquire().await;
        is_done(poll_times(guard.extend(Duration::from_secs(15)), polls).await)
    })
    .await;
}

#[tokio::test]
async fn a_run_under_it() {
    dropped_at_every_poll(async |case, polls| {
        let work = async |_| {
            tokio::task::yield_now().await;
            Ok::<_, Error>(())
        };
        is_done(poll_times(case.ask().run_async(work), polls).await)
    })
    .await;
}

/// By its owner, who has the lock already: for a lock of one key.
#[tokio::test]
async fn another_handle_of_it() {
    dropped_at_every_poll(async |case, polls| {
        let guard = case.acquire().await;
        let has_one_key = guard.keys().len() == 1 && guard.slots().is_empty();
        if !has_one_key {
            return true;
        }
        let within = poll_times(case.ask().within(&guard), polls).await;
        assert!(guard.is_valid(), "{}: {polls} polls", case.member.0);
        is_done(within)
    })
    .await;
}
