//! The two clocks of a measurement.

#![expect(
    clippy::disallowed_methods,
    reason = "a benchmark measures real time; no lease is at stake"
)]

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// The time on the wall.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The CPU time that this process has used, in all its threads. The servers are other processes.
pub(crate) fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}
