//! When cycles start: as soon as a caller is free, or at preset times.
//!
//! In an *open loop* the rate alone sets the starts. If all callers still wait for the nodes, a
//! cycle starts late, and its latency counts from the intended start. So a slow answer also counts
//! for the cycles that it delays, as it does for the users of a service.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use rustix::event::Timespec;

/// The parameters of a round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    pub(crate) callers: usize,
    pub(crate) time: Duration,
    /// Cycles a second; `None` for a closed loop.
    pub(crate) rate: Option<NonZeroU32>,
}

/// A round's starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timetable {
    pub(crate) began: Instant,
    pub(crate) end: Instant,
    rate: Option<NonZeroU32>,
    /// How many starts an open loop has.
    pub(crate) starts: u64,
}

/// Whether the next cycle starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// Now; it counts from here.
    Start(Instant),
    /// Not before this.
    At(Instant),
    Over,
}

impl Timetable {
    pub(crate) fn new(round: &Round, began: Instant) -> Self {
        let starts = round.rate.map_or(0, |rate| {
            let starts = round.time.as_nanos() * u128::from(rate.get()) / 1_000_000_000;
            u64::try_from(starts).unwrap_or(u64::MAX).max(1)
        });
        Self { began, end: began + round.time, rate: round.rate, starts }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.rate.is_some()
    }

    /// Whether the start with this number is due `now`. Late starts are made up for until twice the
    /// round's time is over, so that a rate that the nodes cannot reach ends too.
    pub(crate) fn next(&self, number: u64, now: Instant) -> Next {
        let Some(rate) = self.rate else {
            return if now < self.end { Next::Start(now) } else { Next::Over };
        };
        let too_late = self.end + (self.end - self.began);
        if number >= self.starts || now >= too_late {
            return Next::Over;
        }
        let after = u128::from(number) * 1_000_000_000 / u128::from(rate.get());
        let at = self.began + Duration::from_nanos(u64::try_from(after).unwrap_or(u64::MAX));
        if at <= now { Next::Start(at) } else { Next::At(at) }
    }
}

/// The nanoseconds from one moment to another.
pub(crate) fn nanos(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.saturating_duration_since(from).as_nanos()).unwrap_or(u64::MAX)
}

/// As the kernel's type.
pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    const MS: Duration = Duration::from_millis(1);

    fn timetable(rate: Option<u32>) -> Timetable {
        let rate = rate.and_then(NonZeroU32::new);
        Timetable::new(&Round { callers: 1, time: 10 * MS, rate }, clock::now())
    }

    #[test]
    fn a_closed_loop_starts_until_the_end() {
        let table = timetable(None);
        let inside = table.began + 9 * MS;
        assert_eq!(table.next(1_000, inside), Next::Start(inside));
        assert_eq!(table.next(0, table.end), Next::Over);
    }

    #[test]
    fn an_open_loop_counts_from_the_intended_start() {
        let table = timetable(Some(1_000));
        let began = table.began;
        assert_eq!(table.starts, 10);
        assert_eq!(table.next(0, began), Next::Start(began));
        assert_eq!(table.next(3, began), Next::At(began + 3 * MS));
        assert_eq!(table.next(3, began + 15 * MS), Next::Start(began + 3 * MS));
        assert_eq!(table.next(3, began + 20 * MS), Next::Over);
        assert_eq!(table.next(10, began), Next::Over);
    }
}
