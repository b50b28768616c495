//! What a locker, an operation in flight and a held lock cost in memory: heap bytes, counted.
//!
//! `cargo bench --bench memory` prints a table in Markdown; `benches/record/` has those of the
//! past.

#![expect(clippy::unwrap_used, reason = "it ends on the spot when it cannot be set up")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use quorlock::{Acquire, LockGuard, Locker};
use support::{Fleet, tools};

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
    row("the guard itself (no heap, key ≤ 128 bytes)", size_of::<LockGuard>());
    row("the acquiring future itself", size_of::<Acquire>());
}

async fn measure() {
    let fleet = Fleet::start(5);
    let before = live();
    let locker = Locker::quorum(fleet.urls()).unwrap().build().unwrap();
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
