//! The one place where time is read and slept.
//!
//! Two kinds of time, and they do not mix:
//!
//! - A [`Moment`] is for timers, deadlines and round trips. It is tokio's clock, which is the
//!   system's monotonic one, or the paused clock of a test.
//! - A [`Stamp`] is for leases: two clocks read together. The *steady* one goes on while the
//!   machine is suspended (`CLOCK_BOOTTIME` on Linux; elsewhere the monotonic clock, which may
//!   not). The *wall* clock notices what the steady one may miss (a virtual machine that was
//!   frozen). A lease counts as over as soon as either says so: a wall clock that jumps ahead loses
//!   a lock early, which is safe, and one that is set back changes nothing, for the steady clock
//!   still counts.

#[cfg(test)]
mod driven;

use std::pin::Pin;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::time::{Instant, Sleep};

#[cfg(test)]
pub(crate) use driven::Driven;
#[cfg(all(test, feature = "testing"))]
pub(crate) use driven::Turn;

/// A point of monotonic time, in nanoseconds since an origin that this process chose.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Moment(u64);

impl Moment {
    /// Later than every moment that will come.
    pub(crate) const NEVER: Self = Self(u64::MAX);

    /// The last moment that may come.
    pub(crate) const LAST: Self = Self(u64::MAX - 1);

    /// This moment and `duration` more; sums beyond the range are [`Moment::NEVER`].
    pub(crate) fn plus(self, duration: Duration) -> Self {
        self.plus_nanos(nanoseconds(duration))
    }

    /// As [`plus`](Self::plus), by nanoseconds.
    pub(crate) fn plus_nanos(self, more: u64) -> Self {
        Self(self.0.saturating_add(more))
    }

    /// This moment or up to `grain` nanoseconds earlier: one that is common to all moments near it.
    pub(crate) fn rounded_down(self, grain: u64) -> Self {
        let grain = grain.max(1).ilog2();
        Self(self.0 >> grain << grain)
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

/// For arithmetic on the hot path: to divide a `Duration` costs several times as much.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// What a lease is measured by: two clocks, in nanoseconds, read together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Stamp {
    steady: u64,
    wall: u64,
}

impl Stamp {
    /// The wall clock's time since 1970, for people: nothing is decided by it alone.
    pub(crate) fn wall(self) -> Duration {
        Duration::from_nanos(self.wall)
    }

    /// Before every stamp that was ever read.
    pub(crate) const PAST: Self = Self { steady: 0, wall: 0 };

    /// So many nanoseconds later by both clocks, or as late as there are.
    pub(crate) fn plus_nanos(self, more: u64) -> Self {
        Self { steady: self.steady.saturating_add(more), wall: self.wall.saturating_add(more) }
    }

    /// So many nanoseconds earlier by both clocks, or their zero.
    pub(crate) fn less_nanos(self, less: u64) -> Self {
        Self { steady: self.steady.saturating_sub(less), wall: self.wall.saturating_sub(less) }
    }

    /// Whether neither clock has reached `end`.
    pub(crate) fn is_before(self, end: Self) -> bool {
        self.steady < end.steady && self.wall < end.wall
    }

    /// Whether both clocks have reached `other`.
    pub(crate) fn reaches(self, other: Self) -> bool {
        self.steady >= other.steady && self.wall >= other.wall
    }

    /// The time from `earlier` until now, by the clock that counted more.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        let steady = self.steady.saturating_sub(earlier.steady);
        Duration::from_nanos(steady.max(self.wall.saturating_sub(earlier.wall)))
    }

    /// The time until one of the clocks reaches `end`; zero when one has.
    pub(crate) fn until(self, end: Self) -> Duration {
        Duration::from_nanos(self.nanos_until(end))
    }

    fn nanos_until(self, end: Self) -> u64 {
        end.steady.saturating_sub(self.steady).min(end.wall.saturating_sub(self.wall))
    }

    #[cfg(test)]
    pub(crate) const fn from_millis(millis: u64) -> Self {
        Self { steady: millis * 1_000_000, wall: millis * 1_000_000 }
    }

    /// The later of two by the steady clock, which is never set.
    pub(crate) fn later(self, other: Self) -> Self {
        if other.steady > self.steady { other } else { self }
    }

    /// The component-wise minimum of the `count` latest by the steady clock: until then, so many of
    /// these last.
    pub(crate) fn lasting(stamps: &[Self], count: usize) -> Self {
        let latest = stamps.iter().max_by_key(|stamp| stamp.steady).copied().unwrap_or(Self::PAST);
        if stamps.iter().filter(|stamp| **stamp == latest).count() >= count {
            return latest; // as after every acquisition and extension that went well
        }
        let mut sorted = [Self::PAST; LASTING_OF];
        let known = stamps.len().min(LASTING_OF);
        sorted.iter_mut().zip(stamps).for_each(|(slot, stamp)| *slot = *stamp);
        sorted[..known].sort_unstable_by_key(|stamp| std::cmp::Reverse(stamp.steady));
        let Some(latest) = sorted[..known].get(..count) else { return Self::PAST };
        let first = |reading: fn(&Self) -> u64| latest.iter().map(reading).min().unwrap_or(0);
        Self { steady: first(|stamp| stamp.steady), wall: first(|stamp| stamp.wall) }
    }

    /// How much further one of the clocks went since `earlier` than the other clock of the process
    /// did, which went on for `elapsed`: the machine was suspended, or the wall clock was set.
    pub(crate) fn leapt(self, earlier: Self, elapsed: Duration) -> Duration {
        let elapsed = nanoseconds(elapsed);
        let leap = |now: u64, then: u64| now.saturating_sub(then).saturating_sub(elapsed);
        Duration::from_nanos(leap(self.steady, earlier.steady).max(leap(self.wall, earlier.wall)))
    }
}

/// All clocks, read together: what was read once need not be read again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    pub(crate) now: Moment,
    pub(crate) stamp: Stamp,
}

impl Reading {
    /// The moment at which one of the clocks reaches `end`, if both go on as they should.
    pub(crate) fn moment(self, end: Stamp) -> Moment {
        self.now.plus_nanos(self.stamp.nanos_until(end))
    }
}

/// Stamps that are compared at most: a quorum's nodes.
const LASTING_OF: usize = 15;

/// Reads and sleeps. Handed to code that needs time; a simulation hands over a driven one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    #[cfg(test)]
    driven: Option<std::sync::Arc<Driven>>,
    #[cfg(all(feature = "testing", not(test)))]
    is_tokios: bool,
}

impl Clock {
    /// A clock that measures leases too by tokio's, which a test can pause.
    #[cfg(all(feature = "testing", not(test)))]
    pub(crate) fn tokios() -> Self {
        Self { is_tokios: true }
    }

    /// A clock that measures leases too by tokio's, which a test can pause.
    #[cfg(test)]
    pub(crate) fn tokios() -> Self {
        Driven::clock().0
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
    pub(crate) fn now(&self) -> Moment {
        Moment(nanoseconds(Instant::now().saturating_duration_since(self.origin())))
    }

    fn origin(&self) -> Instant {
        #[cfg(test)]
        if let Some(origin) = self.driven.as_ref().and_then(|driven| driven.origin) {
            return origin;
        }
        *origin()
    }

    /// A task of the code with this clock: in a simulation it stands still while its machine does.
    #[cfg(not(test))]
    pub(crate) fn attend<T>(&self, task: T) -> T {
        task
    }

    /// What the wall clock showed at the moment zero.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn wall_origin() -> Duration {
        static SHOWN: OnceLock<u64> = OnceLock::new();
        #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
        let shown = SHOWN.get_or_init(|| {
            let since = std::time::Instant::now().saturating_duration_since(origin().into_std());
            wall().saturating_sub(nanoseconds(since))
        });
        Duration::from_nanos(*shown)
    }

    /// Reads the clocks of leases.
    pub(crate) fn stamp(&self) -> Stamp {
        #[cfg(test)]
        if let Some(driven) = &self.driven {
            return driven.stamp(self.now());
        }
        #[cfg(all(feature = "testing", not(test)))]
        if self.is_tokios {
            let now = self.now().0;
            return Stamp { steady: now, wall: nanoseconds(Self::wall_origin()) + now };
        }
        Stamp { steady: steady(), wall: wall() }
    }

    /// When `end` is, as the standard library's type, for the public face.
    pub(crate) fn instant(&self, end: Stamp) -> std::time::Instant {
        let left = self.stamp().until(end);
        // An end out of the platform's range (a TTL of a century) is as good as a far one.
        let far = Duration::from_secs(60 * 60 * 24 * 365 * 30);
        let now = self.tokio_instant(self.now()).into_std();
        now.checked_add(left).unwrap_or(now + far)
    }

    /// Whether a simulation drives it, for which no thread can wait.
    #[cfg(feature = "tokio-util")]
    pub(crate) fn is_driven(&self) -> bool {
        #[cfg(test)]
        return self.driven.is_some();
        #[cfg(not(test))]
        false
    }

    /// Reads all clocks.
    pub(crate) fn read(&self) -> Reading {
        Reading { now: self.now(), stamp: self.stamp() }
    }

    /// Whether there is a runtime here that wakes sleepers.
    pub(crate) fn can_sleep(&self) -> bool {
        tokio::runtime::Handle::try_current().is_ok()
    }

    /// Completes at `moment`; tokio's timers come up to 2 ms late, never early.
    pub(crate) fn sleep_until(&self, moment: Moment) -> Pin<Box<Sleep>> {
        Box::pin(tokio::time::sleep_until(self.tokio_instant(moment)))
    }

    /// Sets a sleep of [`Clock::sleep_until`] to another moment.
    pub(crate) fn reset(&self, sleep: Pin<&mut Sleep>, moment: Moment) {
        sleep.reset(self.tokio_instant(moment));
    }

    fn tokio_instant(&self, moment: Moment) -> Instant {
        let far = Duration::from_secs(60 * 60 * 24 * 365);
        let origin = self.origin();
        origin.checked_add(Duration::from_nanos(moment.0)).unwrap_or(origin + far)
    }
}

/// Goes on while the machine is suspended, where the system has such a clock.
#[cfg(target_os = "linux")]
fn steady() -> u64 {
    read(rustix::time::ClockId::Boottime)
}

#[cfg(not(target_os = "linux"))]
fn steady() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
    nanoseconds(Instant::now().saturating_duration_since(*origin()))
}

/// A clock of the system's, in nanoseconds since its zero.
#[cfg(target_os = "linux")]
fn read(clock: rustix::time::ClockId) -> u64 {
    let now = rustix::time::clock_gettime(clock);
    let (seconds, nanos) = (u64::try_from(now.tv_sec), u64::try_from(now.tv_nsec));
    seconds.unwrap_or(0).saturating_mul(1_000_000_000).saturating_add(nanos.unwrap_or(0))
}

/// A guard beside the steady clock; see [`Stamp`].
#[cfg(target_os = "linux")]
fn wall() -> u64 {
    read(rustix::time::ClockId::Realtime)
}

#[cfg(not(target_os = "linux"))]
fn wall() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "a guard beside the steady clock; see `Stamp`")]
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, nanoseconds)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(steady: u64, wall: u64) -> Stamp {
        Stamp { steady, wall }
    }

    #[test]
    fn a_lease_is_over_when_either_clock_says_so() {
        let end = stamp(100, 1_100);
        assert!(stamp(99, 1_099).is_before(end));
        assert!(!stamp(100, 1_050).is_before(end), "the steady clock is there");
        assert!(!stamp(50, 1_100).is_before(end), "the wall clock was set ahead");
        assert!(stamp(99, 3).is_before(end), "the wall clock was set back");
        assert_eq!(stamp(90, 1_095).until(end), Duration::from_nanos(5));
        assert_eq!(stamp(90, 1_200).until(end), Duration::ZERO);
    }

    #[test]
    fn what_lasts_is_what_all_of_the_latest_reach() {
        let ends = [stamp(5, 50), stamp(9, 20), stamp(7, 30)];
        assert_eq!(Stamp::lasting(&ends, 1), stamp(9, 20));
        assert_eq!(Stamp::lasting(&ends, 2), stamp(7, 20));
        assert_eq!(Stamp::lasting(&ends, 3), stamp(5, 20));
        assert_eq!(Stamp::lasting(&ends, 4), Stamp::PAST);
    }

    #[test]
    fn a_leap_is_what_the_process_did_not_live_through() {
        let (then, second) = (stamp(0, 0), Duration::from_secs(1));
        assert_eq!(stamp(1_000_000_000, 1_000_000_000).leapt(then, second), Duration::ZERO);
        assert_eq!(stamp(3_000_000_000, 1_000_000_000).leapt(then, second), 2 * second);
        assert_eq!(stamp(1_000_000_000, 4_000_000_000).leapt(then, second), 3 * second);
    }

    #[test]
    fn the_systems_clocks_go_on() {
        let clock = Clock::default();
        let (first, then) = (clock.stamp(), clock.now());
        while clock.now() == then {}
        let second = clock.stamp();
        assert!(first.is_before(second));
        assert!(first.steady > 0 && first.wall > 0);
    }
}
