//! Waiting for the next start of an open loop, more exactly than Tokio's timers.
//!
//! Tokio's timers have a resolution of a millisecond, which would show as latency at any rate above
//! a few hundred a second. On Linux a `timerfd` wakes the runtime as a socket does. Elsewhere
//! Tokio's timer is used.

use std::time::Instant;

use crate::clock;

#[cfg(target_os = "linux")]
use linux::Kernel;

/// One timer of an open loop, to be made on the runtime that waits.
pub(crate) struct Timer {
    /// `None` if the kernel refuses to create one.
    #[cfg(target_os = "linux")]
    kernel: Option<Kernel>,
}

impl Timer {
    pub(crate) fn new() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            kernel: Kernel::new().ok(),
        }
    }

    /// Waits until `moment`. May return too early: check the clock again.
    pub(crate) async fn wait_until(&self, moment: Instant) {
        #[cfg(target_os = "linux")]
        if let Some(kernel) = &self.kernel {
            if kernel.wait_until(moment).await.is_ok() {
                return;
            }
        }
        clock::sleep_until(moment).await;
    }
}

/// Sets this thread's timer slack to the least, so that blocking waits do not end up to 50 µs late;
/// `false` restores the default. Otherwise the floor, which blocks, would look slower than it is.
pub(crate) fn be_exact(exact: bool) {
    #[cfg(target_os = "linux")]
    {
        let slack = exact.then_some(std::num::NonZeroU64::MIN);
        // Where it is not allowed, waits are a little longer.
        let _ = rustix::thread::set_current_timer_slack(slack);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = exact; // not supported there
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::time::{Duration, Instant};

    use rustix::io::{Errno, read};
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::unix::AsyncFd;

    use crate::bench::timetable::timespec;
    use crate::clock;

    /// A timer that the runtime polls like a socket.
    pub(super) struct Kernel(AsyncFd<OwnedFd>);

    impl Kernel {
        pub(super) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            #[expect(deprecated, reason = "an OwnedFd stays open; the successor is unsafe to call")]
            AsyncFd::new(timer).map(Self)
        }

        pub(super) async fn wait_until(&self, moment: Instant) -> io::Result<()> {
            let left = moment.saturating_duration_since(clock::now());
            if left.is_zero() {
                return Ok(());
            }
            let once =
                Itimerspec { it_interval: timespec(Duration::ZERO), it_value: timespec(left) };
            timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &once)?;
            let mut ready = self.0.readable().await?;
            let mut count = [0; 8];
            match read(self.0.get_ref(), &mut count) {
                Ok(_) | Err(Errno::AGAIN) => ready.clear_ready(),
                Err(error) => return Err(error.into()),
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn it_waits_and_comes_back() {
        let timer = Timer::new();
        for micros in [0, 50, 500] {
            let moment = clock::now() + Duration::from_micros(micros);
            while clock::now() < moment {
                timer.wait_until(moment).await;
            }
        }
    }
}
