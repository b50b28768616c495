//! The one place where time is read and slept.
//!
//! A [`Moment`] is monotonic time. It is taken from tokio's clock, which is the system's monotonic
//! clock, or the paused clock of a test: a lease and the timers beside it can never disagree.

use std::pin::Pin;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// A point of monotonic time, in nanoseconds since an origin that this process chose.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Moment(u64);

impl Moment {
    /// Later than every moment that will come.
    pub(crate) const NEVER: Self = Self(u64::MAX);

    /// This moment and `duration` more; sums beyond the range are [`Moment::NEVER`].
    pub(crate) fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanoseconds(duration)))
    }

    /// `duration` before this moment, or the origin.
    pub(crate) fn less(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(nanoseconds(duration)))
    }

    /// The time from `earlier` to this moment; zero when `earlier` is the later one.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    pub(crate) const fn as_nanos(self) -> u64 {
        self.0
    }

    pub(crate) const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Reads and sleeps. Handed to whoever needs time; a simulation hands over another one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock;

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
    pub(crate) fn now(self) -> Moment {
        let origin = *origin();
        Moment(nanoseconds(Instant::now().saturating_duration_since(origin)))
    }

    /// The moment as the standard library's type, for the public face.
    pub(crate) fn instant(self, moment: Moment) -> std::time::Instant {
        let origin = *origin();
        // A moment out of the platform's range (a TTL of a century) is as good as a far one.
        let far = Duration::from_secs(60 * 60 * 24 * 365 * 30);
        let offset = Duration::from_nanos(moment.0);
        origin.checked_add(offset).unwrap_or(origin + far).into_std()
    }

    /// Whether there is a runtime here that wakes sleepers.
    pub(crate) fn can_sleep(self) -> bool {
        tokio::runtime::Handle::try_current().is_ok()
    }

    /// Completes at `moment`; tokio's timers come up to 2 ms late, never early.
    pub(crate) fn sleep_until(self, moment: Moment) -> Pin<Box<Sleep>> {
        Box::pin(tokio::time::sleep_until(tokio_instant(moment)))
    }

    /// Sets a sleep of [`Clock::sleep_until`] to another moment.
    pub(crate) fn reset(self, sleep: Pin<&mut Sleep>, moment: Moment) {
        sleep.reset(tokio_instant(moment));
    }
}

fn tokio_instant(moment: Moment) -> Instant {
    let far = Duration::from_secs(60 * 60 * 24 * 365);
    let origin = *origin();
    let offset = Duration::from_nanos(moment.0);
    origin.checked_add(offset).unwrap_or(origin + far)
}

/// Some time before anything asked. A test's paused clock may stand a little behind the system's,
/// which is why it is not this very moment.
fn origin() -> &'static Instant {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
    ORIGIN.get_or_init(|| {
        let now = std::time::Instant::now();
        now.checked_sub(Duration::from_secs(60 * 60)).unwrap_or(now).into()
    })
}
