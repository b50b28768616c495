//! `Locker::once`.

use std::future::{pending, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::{ms, pass};
use crate::error::Error;
use crate::lock::{Held, Locker};
use crate::recipe::{Once, Ran, period_key};
use crate::testing::Nodes;

const AT_LEAST: Duration = ms(5_000);
const AT_MOST: Duration = ms(60_000);

fn job(locker: &Locker) -> Once {
    locker.once("job").at_least(AT_LEAST).at_most(AT_MOST)
}

/// Whether a job that takes no time was run here.
async fn is_run(once: Once) -> bool {
    matches!(once.run(|_held| ready(Ok::<_, Error>(()))).await.unwrap(), Ran::Here(()))
}

fn replicas(nodes: &Nodes) -> [Locker; 2] {
    ["one", "two"].map(|owner| nodes.locker().owner(owner).build().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_is_late_skips_what_another_has_run_and_learns_who() {
    let nodes = Nodes::new(5);
    let [one, two] = replicas(&nodes);
    let ran = job(&one).run(|held| async move {
        pass(ms(100)).await;
        assert!(held.is_valid());
        Ok::<_, Error>(7)
    });
    assert_eq!(ran.await.unwrap().here(), Some(7));
    pass(ms(4_899)).await;
    let skipped = job(&two).run(|_held| ready(Ok::<_, Error>(8))).await.unwrap();
    let Ran::Elsewhere(holder) = skipped else { panic!("{skipped:?}") };
    assert!(holder.owner.as_deref().is_some_and(|owner| owner.starts_with("one@")), "{holder:?}");
    assert!(holder.remaining <= ms(1), "{holder:?}");
    pass(ms(1)).await;
    assert!(is_run(job(&two)).await, "its time is over");
}

/// The mistake that `at_least` is for: a lock that ends with its job lets the next one in.
#[tokio::test(start_paused = true)]
async fn without_a_minimum_a_short_job_is_run_by_each_that_is_late() {
    let nodes = Nodes::new(5);
    for locker in replicas(&nodes) {
        assert!(is_run(locker.once("job")).await);
        pass(ms(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn one_runs_it_while_the_other_finds_it_running() {
    let nodes = Nodes::new(3);
    let [one, two] = replicas(&nodes);
    let (first, second) = tokio::join!(
        job(&one).run(|_held| async {
            pass(ms(1_000)).await;
            Ok::<_, Error>(())
        }),
        async {
            pass(ms(1)).await;
            is_run(job(&two)).await
        }
    );
    assert!(matches!(first, Ok(Ran::Here(()))) && !second);
}

/// A run that began counts as one, whatever comes of it: no late replica tries it again.
#[tokio::test(start_paused = true)]
async fn a_job_that_failed_panicked_or_was_dropped_has_been_run() {
    let nodes = Nodes::new(3);
    let [one, two] = replicas(&nodes);
    let no_context = || Context::from_waker(Waker::noop());
    for way in ["failed", "panicked", "panicked before it began", "was dropped"] {
        match way {
            "failed" => {
                let failed = job(&one).run(|_held| ready(Err::<(), _>(Error::misuse("no"))));
                assert!(failed.await.unwrap_err().is_misuse());
            }
            "was dropped" => {
                let mut dropped = pin!(job(&one).run(|_held| pending::<Result<(), Error>>()));
                tokio::select! {
                    biased;
                    _ = dropped.as_mut() => unreachable!(),
                    () = pass(ms(50)) => {}
                }
            }
            way => {
                let is_early = way != "panicked";
                let bomb = |_: Held| {
                    assert!(!is_early, "a bomb");
                    async { panic!("a bomb") as Result<(), Error> }
                };
                let mut running = Box::pin(job(&one).run(bomb));
                // Connected already, it needs a few polls for the nodes' answers.
                let has_panicked = loop {
                    let polled = AssertUnwindSafe(|| running.as_mut().poll(&mut no_context()));
                    match catch_unwind(polled) {
                        Ok(Poll::Pending) => tokio::task::yield_now().await,
                        Ok(Poll::Ready(_)) => break false,
                        Err(_) => break true,
                    }
                };
                assert!(has_panicked);
            }
        }
        pass(ms(100)).await;
        assert_eq!(nodes.holding("job"), 3, "{way}");
        assert!(!is_run(job(&two)).await, "{way}");
        pass(AT_LEAST).await;
        assert_eq!(nodes.holding("job"), 0, "{way}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_dies_frees_it_after_the_longest_time() {
    let nodes = Nodes::new(3);
    let [one, two] = replicas(&nodes);
    // Its future is never polled again, and never dropped.
    let mut dead = Box::pin(job(&one).run(|_held| pending::<Result<(), Error>>()));
    tokio::select! {
        biased;
        _ = dead.as_mut() => unreachable!(),
        () = pass(ms(10)) => {}
    }
    std::mem::forget(dead);
    pass(AT_MOST - ms(20)).await;
    assert!(!is_run(job(&two)).await);
    pass(ms(10)).await;
    assert!(is_run(job(&two)).await);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_outlasts_its_longest_time_is_dropped_and_said_to_be_lost() {
    let nodes = Nodes::new(3);
    let [one, two] = replicas(&nodes);
    let error = job(&one).run(|_held| pending::<Result<(), Error>>()).await.unwrap_err();
    assert!(error.is_lost(), "{error}");
    // The keys outlive the lease by what it keeps as a reserve, and are left to their end.
    assert_eq!(nodes.holding("job"), 3);
    pass(AT_MOST / 30).await;
    assert!(is_run(job(&two)).await);
}

/// Each of three has a node: none has a majority, and none may take that for another's run.
#[tokio::test(start_paused = true)]
async fn a_try_that_nobody_wins_is_repeated() {
    let nodes = Nodes::new(3);
    let [locker, _] = replicas(&nodes);
    let divide = |life: &str| {
        for (node, value) in nodes.iter().zip(["a", "b"]) {
            node.command(["SET", "job", value, "PX", life]);
        }
    };
    divide("500");
    assert!(is_run(job(&locker)).await);
    pass(AT_LEAST).await;
    divide("30000");
    let error = job(&locker).run(|_held| ready(Ok::<_, Error>(()))).await.unwrap_err();
    assert!(error.is_contended(), "{error}");
}

#[test]
fn the_period_is_counted_from_1970_and_stands_in_the_key() {
    let key = |wall| period_key("job", ms(86_400_000), wall).unwrap();
    assert_eq!(key(ms(86_399_999)), "job/0");
    assert_eq!(key(ms(86_400_000)), "job/1");
    assert_eq!(key(ms(20_420 * 86_400_000 + 5)), "job/20420");
    assert_eq!(any_once().key().unwrap(), "job");
}

fn any_once() -> Once {
    Nodes::new(1).locker().build().unwrap().once("job")
}

#[tokio::test(start_paused = true)]
async fn with_a_period_the_lock_is_kept_for_one() {
    let nodes = Nodes::new(3);
    let [one, two] = replicas(&nodes);
    let daily = |locker: &Locker| locker.once("job").per(ms(86_400_000));
    let key = daily(&one).key().unwrap();
    assert!(is_run(daily(&one)).await);
    assert_eq!(nodes.holding(&key), 3);
    let left = nodes[0].remaining(&key).unwrap();
    assert!(left > ms(86_390_000) && left <= ms(86_400_000), "{left:?}");
    assert!(!is_run(daily(&two)).await);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_is_said() {
    let once = any_once;
    let said = async |once: Once| {
        let error = once.run(|_held| ready(Ok::<_, Error>(()))).await.unwrap_err();
        assert!(error.is_misuse(), "{error}");
        error.to_string()
    };
    assert!(said(once().per(Duration::ZERO)).await.contains("a period of no length"));
    let crossed = said(once().at_least(AT_MOST).at_most(AT_LEAST)).await;
    assert!(crossed.contains("at least 60s and at most 5s"), "{crossed}");
}
