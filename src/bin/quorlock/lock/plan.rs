//! When the command is told to end, and when it is killed. Pure: moments in, signals out.
//!
//! ```text
//!  started ──────────── the command works ───────────▶ TERM ── grace ──▶ KILL  deadline
//!                                                                          └ margin ┘
//! ```

use std::time::{Duration, Instant};

use rustix::process::Signal;

/// A tenth of the time that is left is given up for an orderly end, within these bounds.
const GRACE_MIN: Duration = Duration::from_millis(50);
const GRACE_MAX: Duration = Duration::from_secs(2);

/// Timers come up to 2 ms late, and the signal needs its time: from the deadline on another client
/// may hold the lock.
const MARGIN: Duration = Duration::from_millis(5);

/// Far enough to never come.
const NEVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The two steps that end a command.
#[derive(Debug)]
pub(crate) struct Plan {
    term_at: Instant,
    kill_at: Instant,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Working,
    Asked,
    Killed,
}

impl Plan {
    /// For a lock that is held from `now` until `deadline`.
    pub(crate) fn new(now: Instant, deadline: Instant) -> Self {
        let left = deadline.saturating_duration_since(now);
        // A short lock is not all grace: the command has at least half of it.
        let grace = (left / 10).clamp(GRACE_MIN, GRACE_MAX).min(left / 2);
        let before = |margin: Duration| now + left.saturating_sub(margin);
        Self {
            term_at: before(grace.saturating_add(MARGIN)),
            kill_at: before(MARGIN),
            stage: Stage::Working,
        }
    }

    /// When the next step is due.
    pub(crate) fn next_at(&self) -> Instant {
        match self.stage {
            Stage::Working => self.term_at,
            Stage::Asked => self.kill_at,
            Stage::Killed => self.kill_at + NEVER,
        }
    }

    /// Takes the step that is due; the signal to send.
    pub(crate) fn step(&mut self) -> Signal {
        let (stage, signal) = match self.stage {
            Stage::Working => (Stage::Asked, Signal::TERM),
            Stage::Asked | Stage::Killed => (Stage::Killed, Signal::KILL),
        };
        self.stage = stage;
        signal
    }

    /// Whether the command has been told to end.
    pub(crate) fn has_begun(&self) -> bool {
        self.stage != Stage::Working
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// The milliseconds from the start to TERM and to KILL.
    fn steps(held: Duration) -> (u128, u128) {
        let now = crate::clock::now();
        let mut plan = Plan::new(now, now + held);
        let after = |plan: &Plan| plan.next_at().duration_since(now).as_millis();
        let term = after(&plan);
        assert!(!plan.has_begun());
        assert_eq!((plan.step(), plan.has_begun()), (Signal::TERM, true));
        let kill = after(&plan);
        assert_eq!(plan.step(), Signal::KILL);
        assert!(after(&plan) >= NEVER.as_millis(), "nothing is due any more");
        (term, kill)
    }

    #[test]
    fn grace_is_a_tenth_within_bounds_and_the_end_comes_before_the_deadline() {
        assert_eq!(steps(ms(10_000)), (8_995, 9_995));
        assert_eq!(steps(ms(100_000)), (97_995, 99_995));
        assert_eq!(steps(ms(200)), (145, 195));
        assert_eq!(steps(ms(40)), (15, 35));
        assert_eq!(steps(ms(3)), (0, 0));
        assert_eq!(steps(Duration::ZERO), (0, 0));
    }
}
