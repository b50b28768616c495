//! What an operation costs the heap: nothing, once its buffers have grown.
//!
//! A count, not a time: it is the same on a busy machine.
#![expect(clippy::unwrap_used, reason = "what fails shall fail its test on the spot")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quorlock::{Durability, Locker};
use support::{Fleet, need_process};

/// Counts what the whole process asks of the heap.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes to the system's allocator unchanged; counting touches no memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One acquisition and one release; what each allocated.
async fn cycle(locker: &Locker, key: &str) -> (u64, u64) {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let guard = locker.lock(key).await.unwrap();
    let acquired = ALLOCATIONS.load(Ordering::Relaxed);
    assert!(guard.release().await.unwrap().is_released());
    let released = ALLOCATIONS.load(Ordering::Relaxed);
    (acquired - before, released - acquired)
}

/// Runs cycles until a thousand in a row have allocated nothing. Buffers double until they are as
/// large as the slowest node's backlog wants, which on a busy machine may take a few rounds; an
/// allocation of each operation would show in every round.
async fn steady(locker: &Locker, key: &str, size: usize) {
    let mut rounds = Vec::new();
    while rounds.last() != Some(&(0, 0)) {
        assert!(rounds.len() < 10, "{size} nodes, a key of {} bytes: {rounds:?}", key.len());
        let mut total = (0, 0);
        for _ in 0..1_000 {
            let (acquire, release) = cycle(locker, key).await;
            total = (total.0 + acquire, total.1 + release);
        }
        rounds.push(total);
    }
}

/// Drops guards until a thousand in a row have allocated `each` at most: where there are other
/// workers, the driver is handed on to them, which takes a task.
async fn drops(locker: &Locker, each: u64) {
    let mut rounds = Vec::new();
    while rounds.last().is_none_or(|total| *total > 1_000 * each) {
        assert!(rounds.len() < 10, "{each} for each drop, and not {rounds:?} for a thousand");
        let mut total = 0;
        for _ in 0..1_000 {
            let guard = locker.lock("k").await.unwrap();
            let before = ALLOCATIONS.load(Ordering::Relaxed);
            drop(guard);
            total += ALLOCATIONS.load(Ordering::Relaxed) - before;
        }
        rounds.push(total);
    }
}

/// As [`steady`], on a plain thread.
#[cfg(feature = "blocking")]
fn steady_without_a_runtime(size: usize) {
    let fleet = Fleet::start(size);
    let locker = Locker::quorum(fleet.urls()).unwrap().build_blocking().unwrap();
    locker.ready(Duration::from_secs(5)).unwrap();
    let mut rounds = Vec::new();
    while rounds.last() != Some(&0) {
        assert!(rounds.len() < 10, "{size} nodes, a plain thread: {rounds:?}");
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        for _ in 0..1_000 {
            let guard = locker.lock("k").acquire().unwrap();
            assert!(guard.release().unwrap().is_released());
        }
        rounds.push(ALLOCATIONS.load(Ordering::Relaxed) - before);
    }
}

/// The longest key that needs no place of its own, without the prefix.
const LONGEST: usize = 131;

// One test: the counter is the whole process's.
#[test]
fn an_acquire_and_a_release_allocate_nothing_in_steady_state() {
    need_process!();
    let single_threaded =
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let multi_threaded =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    #[cfg(feature = "blocking")]
    for size in [1, 5] {
        steady_without_a_runtime(size);
    }
    for (runtime, each_drop) in [(single_threaded, 0), (multi_threaded, 1)] {
        for size in [1, 5] {
            let fleet = Fleet::start(size);
            runtime.block_on(async {
                let builder = match fleet.urls().as_slice() {
                    [only] => Locker::single(only).unwrap(),
                    many => Locker::quorum(many).unwrap(),
                };
                let locker = builder.prefix("p:").build().unwrap();
                locker.ready(Duration::from_secs(5)).await.unwrap();
                for key in ["k".to_owned(), "k".repeat(LONGEST)] {
                    steady(&locker, &key, size).await;
                }
                drops(&locker, each_drop).await;
                let longest_ttl = Duration::from_secs(30);
                let forgetful = Locker::quorum(fleet.urls()).unwrap().prefix("q:");
                let forgetful = forgetful.durability(Durability::Volatile { longest_ttl });
                let forgetful = forgetful.build().unwrap();
                forgetful.initialise().await.unwrap();
                steady(&forgetful, "k", size).await;
            });
        }
    }
}
