//! Latches and barriers on real servers.

mod beside;

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use quorlock::{Barrier, Error, Latch, LatchState, Locker};
use support::process::{Process, tied};
use support::wait::PATIENCE;
use support::{Fleet, Reply, need_process, need_server};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::{builder, connected, single};

async fn latch(fleet: &Fleet, parties: usize) -> Latch {
    connected(builder(fleet)).await.latch("l", parties).unwrap()
}

#[tokio::test]
async fn all_who_wait_go_on_when_the_last_party_arrives() {
    need_server!();
    for size in [1, 3] {
        let fleet = Fleet::start(size);
        let open = latch(&fleet, 3).await;
        let released_count = Arc::new(AtomicUsize::new(0));
        let mut waiting = JoinSet::new();
        for name in [None, Some("a"), Some("b")] {
            let (latch, released_count) = (latch(&fleet, 3).await, released_count.clone());
            waiting.spawn(async move {
                match name {
                    Some(name) => latch.arrive_and_wait(name).await.unwrap(),
                    None => latch.wait().await.unwrap(),
                }
                released_count.fetch_add(1, Ordering::SeqCst);
            });
        }
        let has_one_missing =
            async || matches!(open.state().await.unwrap(), LatchState::Closed { missing: 1, .. });
        support::eventually_async("two have arrived", has_one_missing).await;
        assert_eq!(released_count.load(Ordering::SeqCst), 0, "never early");
        assert!(open.arrive("c").await.unwrap().is_open());
        timeout(PATIENCE, waiting.join_all()).await.expect("all go on");
        let Reply::Int(left) = fleet[0].command(&["PTTL", "l"]) else { panic!("no PTTL") };
        assert!(left > 0, "it ends by itself");
    }
}

#[tokio::test]
async fn a_minority_that_is_gone_or_hangs_keeps_no_party_back() {
    need_process!();
    let fleet = Fleet::start(5);
    let (one, two) = (latch(&fleet, 2).await, latch(&fleet, 2).await);
    fleet[0].pause();
    fleet[1].stop();
    let waiting = tokio::spawn(async move { one.arrive_and_wait("a").await });
    let arrived =
        timeout(PATIENCE, two.arrive_and_wait("b")).await.expect("three of five are there");
    arrived.unwrap();
    timeout(PATIENCE, waiting).await.expect("it is told").unwrap().unwrap();
    fleet[0].resume();
}

#[tokio::test]
async fn parties_pass_a_barrier_round_by_round() {
    need_server!();
    let fleet = Fleet::start(3);
    let passed = Arc::new([const { AtomicUsize::new(0) }; 5]);
    let mut parties = JoinSet::new();
    for name in 0..3 {
        let mut barrier = connected(builder(&fleet)).await.barrier("b", 3).unwrap();
        let passed = passed.clone();
        parties.spawn(async move {
            for (round, count) in passed.iter().enumerate() {
                count.fetch_add(1, Ordering::SeqCst);
                assert_eq!(barrier.pass(name.to_string()).await.unwrap(), round as u64);
                assert_eq!(count.load(Ordering::SeqCst), 3, "all have come to round {round}");
            }
        });
    }
    timeout(4 * PATIENCE, parties.join_all()).await.expect("all pass");
}

#[tokio::test]
async fn one_server_counts_down_without_names() {
    need_server!();
    let fleet = Fleet::start(1);
    let waiting = latch(&fleet, 3).await;
    let waiting = tokio::spawn(async move { waiting.wait().await });
    let (one, two) = (latch(&fleet, 3).await, latch(&fleet, 3).await);
    let mut missing = Vec::new();
    for latch in [&one, &two] {
        match latch.count_down().await.unwrap() {
            LatchState::Closed { missing: count, .. } => missing.push(count),
            state => panic!("{state:?} early"),
        }
    }
    assert_eq!(missing, [2, 1]);
    assert!(one.count_down().await.unwrap().is_open());
    timeout(PATIENCE, waiting).await.expect("it is told").unwrap().unwrap();
    assert!(two.count_down().await.unwrap().is_open(), "and stays so");
    assert_eq!(fleet[0].command(&["ZCARD", "l"]), Reply::Int(4), "three, and the mark");
    let several = Fleet::start(3);
    let error = latch(&several, 3).await.count_down().await.unwrap_err();
    assert!(error.is_misuse(), "{error}");
}

/// A barrier of one server, for a process of its own.
async fn barrier(fleet: &Fleet, parties: usize) -> Barrier {
    connected(builder(fleet)).await.barrier("b", parties).unwrap()
}

/// Whether it has passed; otherwise the round must be broken.
fn has_passed(told: Result<u64, Error>) -> bool {
    told.map_or_else(|error| !assert_broken(&error), |_| true)
}

fn assert_broken(error: &Error) -> bool {
    assert!(error.is_broken(), "{error}");
    true
}

const MOMENT: Duration = Duration::from_millis(50);

#[tokio::test]
async fn parties_pass_round_by_round_and_one_whose_wait_is_over_breaks_a_round_for_all() {
    need_server!();
    let fleet = Fleet::start(1);
    let mut parties = JoinSet::new();
    for name in 0..3 {
        let mut barrier = barrier(&fleet, 3).await;
        parties.spawn(async move {
            for round in 0..5 {
                let passed = barrier.pass_or_break(name.to_string(), PATIENCE).await;
                assert_eq!(passed.unwrap(), round);
            }
            // One stays away from the next round, for which another one would wait without an end.
            match name {
                0 => assert_broken(&barrier.pass("0").await.unwrap_err()),
                1 => assert_broken(&barrier.pass_or_break("1", MOMENT).await.unwrap_err()),
                _ => true,
            }
        });
    }
    timeout(4 * PATIENCE, parties.join_all()).await.expect("all are told");
    let mut late = barrier(&fleet, 3).await.at_round(5);
    let error = late.pass_or_break("2", PATIENCE).await.unwrap_err();
    assert!(error.is_broken() && error.to_string().contains("\"b/5\""), "{error}");
    let Reply::Int(left) = fleet[0].command(&["PTTL", "b/5"]) else { panic!("no PTTL") };
    assert!(left > 0, "it ends by itself");
}

/// The last party comes when the wait of the others is about to be over, and just after that.
#[tokio::test]
async fn all_are_told_the_same_of_a_round_when_its_end_and_the_last_party_meet() {
    need_server!();
    let fleet = Fleet::start(1);
    let (first, second) = (connected(builder(&fleet)).await, connected(builder(&fleet)).await);
    let mut outcomes = [0; 2];
    for attempt in 0..60_u32 {
        let key = format!("b:{attempt}");
        let new = |locker: &Locker| locker.barrier(&key, 3).unwrap();
        let (mut one, mut two, mut last) = (new(&first), new(&second), new(&second));
        let about = MOMENT * (attempt + 30) / 60;
        let told = tokio::join!(
            one.pass_or_break("one", MOMENT),
            two.pass_or_break("two", MOMENT),
            async {
                tokio::time::sleep(about).await;
                last.pass_or_break("last", Duration::ZERO).await
            }
        );
        let told = [told.0, told.1, told.2].map(has_passed);
        assert_eq!(told, [told[0]; 3], "attempt {attempt}");
        outcomes[usize::from(told[0])] += 1;
    }
    println!("of 60 rounds, broken and passed: {outcomes:?}");
}

/// Says to a process of this program where the server is at which it is a party.
const SERVER: &str = "QUORLOCK_SUITE_BARRIER";

#[tokio::test]
async fn the_others_break_the_round_to_which_a_party_that_was_killed_does_not_come() {
    need_process!();
    if let Ok(url) = std::env::var(SERVER) {
        // The party that is killed: it passes one round, and does not come to the next.
        let locker = connected(single(&*url)).await;
        locker.barrier("b", 3).unwrap().pass("killed").await.unwrap();
        return std::future::pending().await;
    }
    let fleet = Fleet::start(1);
    let mut command = tied(&std::env::current_exe().unwrap());
    let name = "latch::the_others_break_the_round_to_which_a_party_that_was_killed_does_not_come";
    command.args(["--exact", name, "--nocapture"]).env(SERVER, &fleet.urls()[0]);
    command.stdout(Stdio::null());
    let mut process = Process::spawn(command).unwrap();
    let (mut one, mut two) = (barrier(&fleet, 3).await, barrier(&fleet, 3).await);
    let all = async { tokio::join!(one.pass("one"), two.pass("two")) };
    let passed = timeout(4 * PATIENCE, all).await.expect("three have come");
    assert_eq!((passed.0.unwrap(), passed.1.unwrap()), (0, 0));
    process.kill();
    let began = Instant::now();
    let (one, two) =
        tokio::join!(one.pass_or_break("one", 8 * MOMENT), two.pass_or_break("two", PATIENCE));
    assert!(assert_broken(&one.unwrap_err()) && assert_broken(&two.unwrap_err()));
    let took = began.elapsed();
    assert!(took >= 8 * MOMENT && took < PATIENCE, "the shorter of the waits: {took:?}");
}

/// What stands under the key is left as it is, and named.
#[tokio::test]
async fn a_lock_and_a_latch_of_one_key_refuse_each_other() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker: Locker = connected(builder(&fleet)).await;
    let latch = locker.latch("k", 2).unwrap();
    let guard = locker.lock("k").await.unwrap();
    let error = latch.arrive("a").await.unwrap_err();
    assert!(error.is_misuse(), "{error}");
    assert!(guard.release().await.unwrap().is_released());
    latch.arrive("a").await.unwrap();
    let error = locker.lock("k").wait(Duration::from_secs(1)).await.unwrap_err();
    assert!(error.is_foreign(), "{error}");
    assert!(matches!(latch.state().await.unwrap(), LatchState::Closed { missing: 1, .. }));
}

#[cfg(feature = "blocking")]
#[test]
fn plain_threads_use_latches_and_barriers() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker = Locker::quorum(fleet.urls()).unwrap().build_blocking().unwrap();
    let latch = locker.latch("l", 2).unwrap().ttl(Duration::from_secs(20)).unwrap();
    let waiting = {
        let latch = latch.clone();
        std::thread::spawn(move || latch.arrive_and_wait("a"))
    };
    assert!(!latch.wait_timeout(Duration::from_millis(1)).unwrap().is_open());
    assert!(latch.arrive("b").unwrap().is_open());
    waiting.join().unwrap().unwrap();
    assert!(latch.state().unwrap().is_open());
    latch.wait().unwrap();
    let mut barrier =
        locker.barrier("b", 1).unwrap().ttl(Duration::from_secs(20)).unwrap().at_round(3);
    assert_eq!((barrier.pass("a").unwrap(), barrier.round()), (3, 4));
}

#[cfg(feature = "blocking")]
#[test]
fn plain_threads_count_down_and_break_barriers() {
    need_server!();
    let fleet = Fleet::start(1);
    let locker = Locker::single(&fleet.urls()[0]).unwrap().build_blocking().unwrap();
    let latch = locker.latch("l", 2).unwrap();
    assert!(!latch.count_down().unwrap().is_open());
    assert!(latch.count_down().unwrap().is_open());
    let mut barrier = locker.barrier("b", 2).unwrap();
    let waiting = {
        let mut barrier = barrier.clone();
        std::thread::spawn(move || barrier.pass_or_break("a", PATIENCE))
    };
    assert_eq!(barrier.pass_or_break("b", PATIENCE).unwrap(), 0);
    assert_eq!(waiting.join().unwrap().unwrap(), 0);
    assert!(barrier.pass_or_break("b", MOMENT).unwrap_err().is_broken());
}
