//! Counting what the clock cannot see: heap allocations and system calls.
//!
//! Allocations are counted by the allocator of this program, system calls by `perf`, which counts
//! without stopping the process (a tracer that stops it lets replies gather, and counts too few).
//! Both only while a round is run for its counts: the timed rounds go without.

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// How long `perf` takes at most to begin.
const PERF_BEGINS: Duration = Duration::from_millis(500);

/// The system's allocator, and a count.
pub(crate) struct Counting;

static ON: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

fn count() {
    // Ordering: a count; its reader has waited for the round to end.
    if ON.load(Ordering::Relaxed) {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator unchanged, so its promises are kept as it keeps
// them; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Runs `work`; returns how many allocations and reallocations the process made meanwhile.
pub(crate) fn allocations<T>(work: impl FnOnce() -> T) -> (T, u64) {
    ALLOCATIONS.store(0, Ordering::Relaxed);
    ON.store(true, Ordering::SeqCst);
    let result = work();
    ON.store(false, Ordering::SeqCst);
    (result, ALLOCATIONS.load(Ordering::Relaxed))
}

/// A `perf` that counts this process's system calls.
pub(crate) struct Perf {
    child: Child,
    told: PathBuf,
}

impl Perf {
    /// Starts it; `None` where there is none, or where it may not count.
    pub(crate) fn start() -> Option<Self> {
        let told = std::env::temp_dir().join(format!("quorlock-peers-{}", std::process::id()));
        let mut command = Command::new("perf");
        command
            .args(["stat", "-x", ",", "-e", "raw_syscalls:sys_enter", "-o"])
            .arg(&told)
            .args(["-p", &std::process::id().to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command.spawn().ok()?;
        std::thread::sleep(PERF_BEGINS);
        Some(Self { child, told })
    }

    /// Stops it; returns the count.
    pub(crate) fn stop(mut self) -> Option<u64> {
        // A failure leaves no process to signal, and no count: nothing is lost by ignoring it.
        let _ = kill_process(Pid::from_child(&self.child), Signal::INT);
        self.child.wait().ok()?;
        let told = std::fs::read_to_string(&self.told).ok()?;
        // It is in the directory for such files; who cannot remove it leaves it.
        let _ = std::fs::remove_file(&self.told);
        told.lines().find_map(|line| line.split(',').next()?.parse().ok())
    }
}
