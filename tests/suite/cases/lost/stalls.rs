//! Whether the machine let this thread run.
//!
//! `lost()` resolves some milliseconds before the end. A process that is not let run for longer
//! than that cannot be told anything in time; only `is_valid()` knows then. A monitor looks at the
//! clock every millisecond on the runtime of a test; where more time has passed, and the thread was
//! not at work itself, the machine was elsewhere.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Tokio's timers come up to 2 ms after they were asked for: more is not a timer's doing.
const PAUSE_MAX: Duration = Duration::from_micros(2_500);

/// A time in which this thread was not let run.
#[derive(Clone, Copy, Debug)]
struct Stall {
    from: Instant,
    to: Instant,
}

/// What is known of the times in which this thread was not let run.
#[derive(Clone, Default)]
pub(super) struct StallMonitor(Arc<Mutex<Observed>>);

#[derive(Default)]
struct Observed {
    stalls: Vec<Stall>,
    last: Option<Instant>,
}

impl StallMonitor {
    /// Looks at the clock forever, on the current thread.
    pub(super) async fn watch(self) {
        let (mut last, mut worked) = (Instant::now(), thread_time());
        loop {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let (now, works) = (Instant::now(), thread_time());
            let mut observed = self.0.lock().unwrap();
            if (now - last).saturating_sub(works - worked) > PAUSE_MAX {
                observed.stalls.push(Stall { from: last, to: now });
            }
            observed.last = Some(now);
            drop(observed);
            (last, worked) = (now, works);
        }
    }

    /// Whether it has looked since then, so that every stall before that is known: a task told at
    /// the end of one may be asked about it before the monitor has had its turn.
    pub(super) fn has_looked_since(&self, then: Instant) -> bool {
        self.0.lock().unwrap().last.is_some_and(|last| last > then)
    }

    /// For how long the thread was not let run, in the stalls that touch these times.
    pub(super) fn stalled(&self, from: Instant, to: Instant) -> Duration {
        let observed = self.0.lock().unwrap();
        let touching = observed.stalls.iter().filter(|stall| stall.from < to && stall.to > from);
        touching.map(|stall| stall.to - stall.from).sum()
    }
}

/// The time for which this thread has been at work.
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}
