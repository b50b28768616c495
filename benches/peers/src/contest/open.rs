//! The open loop: cycles begin when their time has come, whatever became of those before.
//!
//! A timer of the kernel's wakes a task of the same runtime, which spawns a task for each cycle
//! that is due: tokio's own timers are a millisecond wide. Latency counts from the intended start,
//! so what the loop itself is late counts against the contestant: it is the same for all of them,
//! and a server's own requests would not arrive more gently.

#![expect(clippy::disallowed_methods, reason = "a benchmark's callers are tasks of its own")]

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;

use super::Failure;
use super::on_tokio::Lock;
use crate::clock;

/// What an open loop brought in, in nanoseconds from the intended start.
#[derive(Debug, Default)]
pub(crate) struct Open {
    /// Until the cycle's task began: what the loop, the runtime and the machine are late.
    pub(crate) starts_ns: Vec<u32>,
    /// Until the lock was held.
    pub(crate) acquires_ns: Vec<u32>,
    /// Until it was released again.
    pub(crate) cycles_ns: Vec<u32>,
}

/// Where the cycles write what they took.
struct Sheet {
    began: Instant,
    every: Duration,
    starts_ns: Box<[AtomicU32]>,
    acquires_ns: Box<[AtomicU32]>,
    cycles_ns: Box<[AtomicU32]>,
    /// Cycles that have not ended.
    left: AtomicUsize,
    failure: Mutex<Option<Failure>>,
    ended: Notify,
}

/// Runs the loop; returns when all its cycles have ended. Keys begin with `keys`.
pub(crate) async fn run<L: Lock>(
    lock: L,
    keys: String,
    rate: u32,
    time: Duration,
) -> Result<Open, Failure> {
    let every = Duration::from_secs(1) / rate;
    let total = (time.as_nanos() / every.as_nanos()).max(1) as usize;
    let blank = || std::iter::repeat_with(|| AtomicU32::new(0)).take(total).collect();
    let sheet = Arc::new(Sheet {
        began: clock::now(),
        every,
        starts_ns: blank(),
        acquires_ns: blank(),
        cycles_ns: blank(),
        left: AtomicUsize::new(total),
        failure: Mutex::new(None),
        ended: Notify::new(),
    });
    // A task of the runtime's own, as a server's would be: the body of `block_on` is elsewhere.
    tokio::spawn(pace(lock, keys, sheet.clone(), total)).await??;
    // Ordering: pairs with the cycles' decrements; their samples are read after the last one.
    while sheet.left.load(Ordering::Acquire) > 0 {
        sheet.ended.notified().await;
    }
    if let Some(failure) = sheet.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(failure);
    }
    // Ordering: the decrements above have brought them over.
    let read =
        |samples: &[AtomicU32]| samples.iter().map(|it| it.load(Ordering::Relaxed)).collect();
    Ok(Open {
        starts_ns: read(&sheet.starts_ns),
        acquires_ns: read(&sheet.acquires_ns),
        cycles_ns: read(&sheet.cycles_ns),
    })
}

/// Starts each cycle when its time has come.
async fn pace<L: Lock>(
    lock: L,
    keys: String,
    sheet: Arc<Sheet>,
    total: usize,
) -> Result<(), Failure> {
    let timer = timer(sheet.every)?;
    // SAFETY: an owned descriptor stays open, and the same, until `AsyncFd` drops it.
    let timer = unsafe { AsyncFd::register_with_interest(timer, Interest::READABLE) }?;
    let mut started = 0;
    while started < total {
        let mut ready = timer.readable().await?;
        // How often it has expired is of no interest: the clock says what is due.
        let _ = ready.try_io(|timer| Ok(rustix::io::read(timer, &mut [0; 8])?));
        let due = sheet.began.elapsed().as_nanos() / sheet.every.as_nanos() + 1;
        while started < total.min(due as usize) {
            tokio::spawn(cycle(lock.clone(), format!("{keys}{started}"), sheet.clone(), started));
            started += 1;
        }
    }
    Ok(())
}

/// Nanoseconds since then.
pub(super) fn since(then: Instant) -> u32 {
    u32::try_from(then.elapsed().as_nanos()).unwrap_or(u32::MAX)
}

/// A timer that expires so often.
pub(super) fn timer(every: Duration) -> Result<OwnedFd, Failure> {
    let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
    let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
    let every = Timespec {
        tv_sec: every.as_secs().cast_signed(),
        tv_nsec: i64::from(every.subsec_nanos()),
    };
    let times = Itimerspec { it_interval: every, it_value: every };
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &times)?;
    Ok(timer)
}

/// One cycle.
async fn cycle<L: Lock>(mut lock: L, key: String, sheet: Arc<Sheet>, number: usize) {
    let due = sheet.began + sheet.every * u32::try_from(number).unwrap_or(u32::MAX);
    // Ordering: the decrement below hands all three over.
    sheet.starts_ns[number].store(since(due), Ordering::Relaxed);
    let work = async {
        let held = lock.acquire(&key).await?;
        sheet.acquires_ns[number].store(since(due), Ordering::Relaxed);
        lock.release(held).await?;
        sheet.cycles_ns[number].store(since(due), Ordering::Relaxed);
        Ok(())
    };
    if let Err(failure) = work.await {
        sheet.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
    }
    // Ordering: releases the samples to the task that sees the last decrement.
    if sheet.left.fetch_sub(1, Ordering::Release) == 1 {
        sheet.ended.notify_one();
    }
}
