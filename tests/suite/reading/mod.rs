//! Readers and writers of one key: any number of readers or one writer, and none is forgotten.

mod beside;
mod downgrade;
mod gate;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quorlock::{LockGuard, LockRequest, Locker};
use support::wait::PATIENCE;
use support::{Fleet, Reply, eventually_async, need_process};
use tokio::task::JoinHandle;

use crate::waiting::{hearing, queued, waits};

/// One that waits, as a task.
fn waiting(request: LockRequest) -> JoinHandle<LockGuard> {
    tokio::spawn(async move { request.wait(PATIENCE).await.unwrap() })
}

async fn can_read(locker: &Locker) -> bool {
    locker.read("k").try_acquire().await.unwrap().is_some()
}

async fn can_write(locker: &Locker) -> bool {
    locker.write("k").try_acquire().await.unwrap().is_some()
}

async fn release(guard: LockGuard) {
    assert!(guard.release().await.unwrap().is_released());
}

#[tokio::test]
async fn readers_share_a_lock_and_exclude_writers_and_clients_that_know_of_none() {
    need_process!();
    let fleet = Fleet::start(3);
    let (one, two) = (hearing(&fleet, "one").await, hearing(&fleet, "two").await);
    let reads = [one.read("k").await.unwrap(), two.read("k").await.unwrap()];
    let more = one.read("k").await.unwrap();
    assert!(!can_write(&two).await && can_read(&two).await);
    assert!(two.lock_all(["j", "k"]).try_acquire().await.unwrap().is_none());
    let plain = fleet.command(&["SET", "k", "theirs", "NX", "PX", "1000"]);
    assert!(plain.iter().all(|reply| *reply == Reply::Nil), "{plain:?}");
    for shared in reads.into_iter().chain([more]) {
        assert!(shared.is_valid());
        assert!(!can_write(&two).await);
        release(shared).await;
    }
    eventually_async("nothing is left", async || fleet.keys_left("").is_empty()).await;
    let written = one.write("k").await.unwrap();
    assert!(!can_read(&two).await && !can_read(&one).await);
    release(written).await;
    fleet.command(&["SET", "k", "theirs", "PX", "60000"]);
    assert!(!can_read(&two).await);
}

/// The last of them hands the lock to the writer that waits; and that to the readers that do.
#[tokio::test]
async fn readers_and_a_writer_wake_one_another_in_the_order_of_their_arrival() {
    need_process!();
    let fleet = Fleet::start(5);
    let names = ["first", "second", "writer", "third", "fourth"];
    let mut lockers = Vec::new();
    for name in names {
        lockers.push(hearing(&fleet, name).await);
    }
    let [first, second, writer, third, fourth] = lockers.try_into().ok().unwrap();
    let reads = [first.read("k").await.unwrap(), second.read("k").await.unwrap()];
    let writing = waiting(writer.write("k"));
    waits(&fleet, "k", 1).await;
    let shut = async || {
        let gates = fleet.command(&["EXISTS", "{k}:quorlock:gate"]);
        gates.iter().filter(|gate| **gate == Reply::Int(1)).count() >= 3
    };
    eventually_async("the gate is shut", shut).await;
    let reading = [waiting(third.read("k")), waiting(fourth.read("k"))];
    waits(&fleet, "k", 3).await;
    for shared in reads {
        assert!(!writing.is_finished());
        release(shared).await;
    }
    let written = writing.await.unwrap();
    assert!(reading.iter().all(|reading| !reading.is_finished()));
    release(written).await;
    // Neither is released before the other has come.
    let mut reads = Vec::new();
    for reading in reading {
        reads.push(reading.await.unwrap());
    }
    for shared in reads {
        assert!(shared.is_valid());
        release(shared).await;
    }
    eventually_async("nothing is left", async || fleet.keys_left("").is_empty()).await;
    for (locker, how) in [(&writer, "writer"), (&third, "third"), (&fourth, "fourth")] {
        assert!(locker.stats().handed_over >= 1, "{how}: {:?}", locker.stats());
    }
}

/// Each read lock ends by itself: that of one that is gone keeps no one longer.
#[tokio::test]
async fn a_reader_that_is_gone_ends_alone() {
    need_process!();
    let fleet = Fleet::start(3);
    let (one, two) = (hearing(&fleet, "one").await, hearing(&fleet, "two").await);
    let gone = one.read("k").ttl(Duration::from_millis(700)).await.unwrap();
    let stays = two.read("k").await.unwrap();
    drop(gone.forget());
    release(stays).await;
    let writing = waiting(two.write("k"));
    waits(&fleet, "k", 1).await;
    assert!(!writing.is_finished());
    release(writing.await.unwrap()).await;
    eventually_async("nothing is left", async || fleet.keys_left("").is_empty()).await;
}

/// It waits for itself, and the error says so.
#[tokio::test]
async fn who_asks_for_a_write_lock_with_a_read_lock_in_hand_is_told_so() {
    need_process!();
    let fleet = Fleet::start(3);
    let (one, two) = (hearing(&fleet, "one").await, hearing(&fleet, "two").await);
    let read = one.read("k").await.unwrap();
    for (locker, is_own) in [(&one, true), (&two, false)] {
        let error = locker.write("k").wait(Duration::from_millis(50)).await.unwrap_err();
        let holder = error.holder().unwrap_or_else(|| panic!("{error}"));
        assert_eq!((holder.is_shared, holder.is_own), (true, is_own), "{error}");
        let seen = locker.inspect("k").await.unwrap();
        let holder = seen.holder().unwrap();
        assert_eq!((holder.is_shared, holder.is_own), (true, is_own));
    }
    release(read).await;
}

/// Readers that always overlap, of two processes, and a writer beside them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_never_end_all_at_once_do_not_keep_a_writer_from_the_lock() {
    need_process!();
    let fleet = Fleet::start(3);
    let readers = [hearing(&fleet, "one").await, hearing(&fleet, "two").await];
    let writer = hearing(&fleet, "writer").await;
    let is_done = Arc::new(AtomicBool::new(false));
    let reading: Vec<_> = (0..8)
        .map(|number: usize| {
            let (locker, is_done) = (readers[number % 2].clone(), is_done.clone());
            tokio::spawn(async move {
                // Without the gate, until the watchdog's patience is over.
                while !is_done.load(Ordering::SeqCst) {
                    let shared = locker.read("k").wait(PATIENCE).await.unwrap();
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    release(shared).await;
                }
            })
        })
        .collect();
    for _ in 0..5 {
        release(writer.write("k").wait(PATIENCE).await.unwrap()).await;
    }
    is_done.store(true, Ordering::SeqCst);
    for reading in reading {
        reading.await.unwrap();
    }
    assert_eq!(queued(&fleet, "k"), 0);
    eventually_async("nothing is left", async || fleet.keys_left("").is_empty()).await;
}
