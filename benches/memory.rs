//! What a locker, an operation in flight, a held lock and a waiter cost in memory: heap bytes,
//! counted; and what waiters cost the servers, by their own counts.
//!
//! `cargo bench --bench memory` prints a table in Markdown; `benches/record/` has those of the
//! past.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "it waits in real time, and ends on the spot when it cannot be set up"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use quorlock::{Acquire, LockGuard, Locker};
use support::{Fleet, tools};
use tokio::task::JoinSet;

/// Counts the bytes that are allocated at present.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged; counting touches no memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MANY: usize = 10_000;

/// So many at once may keep a server busy for longer than our default allows it to be silent.
const PATIENCE: Duration = Duration::from_secs(2);

fn live() -> usize {
    LIVE.load(Ordering::Relaxed)
}

fn row(what: &str, bytes: usize) {
    println!("| {what} | {bytes} B |");
}

fn main() {
    if let Err(why) = tools::find_server() {
        println!("skipped: {why}");
        return;
    }
    println!("| what | memory |");
    println!("|---|---:|");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(measure());
    runtime.block_on(waiting_on_one_key());
    runtime.block_on(waiting_on_many_keys());
    row("the guard itself (no heap, key ≤ 128 bytes)", size_of::<LockGuard>());
    row("the acquiring future itself", size_of::<Acquire>());
}

async fn measure() {
    let fleet = Fleet::start(5);
    let before = live();
    let locker = Locker::quorum(fleet.urls()).unwrap().node_timeout(PATIENCE).build().unwrap();
    row("a locker on five nodes, built", live() - before);
    locker.ready(Duration::from_secs(5)).await.unwrap();
    row("… connected", live() - before);
    let guard = locker.lock("k").await.unwrap();
    assert!(guard.release().await.unwrap().is_released());
    row("… after one cycle, idle", live() - before);

    let idle = live();
    let mut cx = Context::from_waker(Waker::noop());
    let mut waiting: Vec<Pin<Box<Acquire>>> = Vec::with_capacity(MANY);
    let room = live() - idle;
    for index in 0..MANY {
        let mut acquire = Box::pin(locker.lock(format!("key-{index}")).into_future());
        assert!(acquire.as_mut().poll(&mut cx).is_pending());
        waiting.push(acquire);
    }
    let boxes = MANY * size_of::<Acquire>();
    row("an operation in flight on five nodes, heap", (live() - idle - room - boxes) / MANY);

    for acquire in waiting {
        drop(acquire.await.unwrap());
    }

    // Taken one after another, so that no buffer has to grow for them.
    let locker = Locker::quorum(fleet.urls()).unwrap().build().unwrap();
    drop(locker.lock("k").await.unwrap());
    let mut guards = Vec::with_capacity(MANY);
    let idle = live();
    for index in 0..MANY {
        guards.push(locker.lock(format!("held-{index}")).await.unwrap());
    }
    row("a held lock, heap", (live() - idle) / MANY);
    drop(guards);
}

/// So many wait on one key that another locker holds: one of them in the queue, the others in line.
async fn waiting_on_one_key() {
    let fleet = Fleet::start(5);
    let (ours, theirs) = (patient(&fleet).await, patient(&fleet).await);
    let guard = theirs.lock("k").await.unwrap();
    report("a waiter of many on one key", &fleet, &ours, |_| "k".into()).await;
    drop(guard);
}

/// So many wait on a key each, that another locker holds.
async fn waiting_on_many_keys() {
    let fleet = Fleet::start(5);
    let (ours, theirs) = (patient(&fleet).await, patient(&fleet).await);
    let mut guards = Vec::with_capacity(MANY);
    for index in 0..MANY {
        guards.push(theirs.lock(format!("key-{index}")).await.unwrap());
    }
    let key = |index| format!("key-{index}");
    report("a waiter on a key of its own", &fleet, &ours, key).await;
}

/// With connections and buffers as they are in use.
async fn patient(fleet: &Fleet) -> Locker {
    let locker = Locker::quorum(fleet.urls()).unwrap().node_timeout(PATIENCE);
    let locker = locker.build().unwrap();
    locker.ready(Duration::from_secs(5)).await.unwrap();
    // Buffers have grown, and the servers know the scripts.
    let cycle = async |index: usize| {
        let guard = locker.lock(format!("warm-{index}")).await.unwrap();
        assert!(guard.release().await.unwrap().is_released());
    };
    for index in 0..MANY {
        cycle(index).await;
    }
    locker
}

async fn report(what: &str, fleet: &Fleet, ours: &Locker, key: impl Fn(usize) -> String) {
    let used = || -> usize {
        let of = |server: &support::Server| server.info("used_memory").unwrap();
        fleet.iter().map(|server| of(server).trim().parse::<usize>().unwrap()).sum()
    };
    let (before, used_before) = (live(), used());
    let mut tasks = JoinSet::new();
    for index in 0..MANY {
        let request = ours.lock(key(index)).wait_forever();
        tasks.spawn(async move { request.await.unwrap().release().await.unwrap() });
        // Not all at once.
        while index as u64 >= ours.stats().waiting + 64 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    while ours.stats().waiting < MANY as u64 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // The first of a queue watches its key by then.
    tokio::time::sleep(Duration::from_secs(1)).await;
    row(&format!("{what}, heap, with its task"), (live() - before) / MANY);
    let grown = used().saturating_sub(used_before);
    row("… on all servers together", grown / MANY);
    let commands =
        || -> usize { fleet.iter().map(|server| server.calls().of("evalsha") as usize).sum() };
    let sent = commands();
    tokio::time::sleep(Duration::from_secs(2)).await;
    println!("| … commands each second, all together | {} |", (commands() - sent) / 2);
    tasks.shutdown().await;
    assert_eq!(ours.stats().waiting, 0);
}
