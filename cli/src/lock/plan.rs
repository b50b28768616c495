//! When the command gets TERM, and when KILL. Pure: moments in, signals out.
//!
//! ```text
//!  started ───── the command works ─────▶ TERM ── grace ──▶ KILL  deadline
//!        ◀─ the lock was extended ─┘                          └ margin ┘
//! ```
//!
//! A lock that is gone from the nodes is lost at once. Then TERM comes at once, and KILL a grace
//! later, but never later than the deadline would have had it.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::args::OnLost;

/// A tenth of the remaining time, within these bounds, is reserved for an orderly end.
const GRACE_MIN: Duration = Duration::from_millis(50);
const GRACE_MAX: Duration = Duration::from_secs(2);

/// Timers are up to 2 ms late, and delivering the signal takes time too. From the deadline on,
/// another client may hold the lock.
const MARGIN: Duration = Duration::from_millis(5);

/// Far enough never to be reached.
const NEVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The steps that end a command.
#[derive(Debug)]
pub(crate) struct Plan {
    on_lost: OnLost,
    /// From TERM to KILL.
    grace: Duration,
    /// When the timer fires next.
    next_at: Instant,
    /// The deadline that was known last, less the margin.
    kill_at: Instant,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Working,
    Asked,
    /// No step is left: the command was killed, or runs on without the lock.
    Over,
}

impl Plan {
    /// For a lock that is held from `now` until `deadline`, unless it is extended.
    pub(crate) fn new(on_lost: OnLost, now: Instant, deadline: Instant) -> Self {
        let left = deadline.saturating_duration_since(now);
        // A short lock is not all grace: the command has at least half of it.
        let grace = (left / 10).clamp(GRACE_MIN, GRACE_MAX).min(left / 2);
        let mut plan = Self { on_lost, grace, next_at: now, kill_at: now, stage: Stage::Working };
        plan.aim(now, deadline);
        plan
    }

    /// When the timer fires next.
    pub(crate) fn next_at(&self) -> Instant {
        self.next_at
    }

    /// The timer has fired, and the lock is now held until `deadline`. Returns the signal to send.
    pub(crate) fn fire(&mut self, now: Instant, deadline: Instant) -> Option<Signal> {
        match self.stage {
            Stage::Working => {
                self.aim(now, deadline);
                if self.next_at > now {
                    return None;
                }
                Some(self.begin())
            }
            Stage::Asked => Some(self.kill()),
            Stage::Over => {
                self.next_at = now + NEVER;
                None
            }
        }
    }

    /// The lock is lost. Returns the signal to send.
    pub(crate) fn lost(&mut self, now: Instant) -> Option<Signal> {
        match (self.stage, self.on_lost) {
            (Stage::Working, OnLost::Ignore) => {
                self.stage = Stage::Over;
                None
            }
            (Stage::Working, _) => {
                self.kill_at = self.kill_at.min(now + self.grace);
                Some(self.begin())
            }
            _ => None,
        }
    }

    /// Whether the command has been sent a signal, or runs on without the lock.
    pub(crate) fn has_begun(&self) -> bool {
        self.stage != Stage::Working
    }

    /// Sets the timer for a lock that is held until `deadline`.
    fn aim(&mut self, now: Instant, deadline: Instant) {
        let left = deadline.saturating_duration_since(now);
        let before = |margin: Duration| now + left.saturating_sub(margin);
        self.kill_at = before(MARGIN);
        self.next_at = match self.on_lost {
            OnLost::Term => before(self.grace.saturating_add(MARGIN)),
            OnLost::Kill => self.kill_at,
            OnLost::Ignore => now + NEVER,
        };
    }

    fn begin(&mut self) -> Signal {
        if self.on_lost == OnLost::Kill {
            return self.kill();
        }
        self.stage = Stage::Asked;
        self.next_at = self.kill_at;
        Signal::TERM
    }

    fn kill(&mut self) -> Signal {
        self.stage = Stage::Over;
        self.next_at = self.kill_at + NEVER;
        Signal::KILL
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
        let mut plan = Plan::new(OnLost::Term, now, now + held);
        let after = |plan: &Plan| plan.next_at().duration_since(now).as_millis();
        let term = after(&plan);
        assert!(!plan.has_begun());
        assert_eq!(plan.fire(plan.next_at(), now + held), Some(Signal::TERM));
        assert!(plan.has_begun());
        let kill = after(&plan);
        assert_eq!(plan.fire(plan.next_at(), now + held), Some(Signal::KILL));
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

    #[test]
    fn a_lock_that_was_extended_lets_the_command_work_on() {
        let now = crate::clock::now();
        for (on_lost, first) in [(OnLost::Term, 8_995), (OnLost::Kill, 9_995)] {
            let mut plan = Plan::new(on_lost, now, now + ms(10_000));
            assert_eq!(plan.next_at(), now + ms(first));
            assert_eq!(plan.fire(now + ms(first), now + ms(16_000)), None);
            assert!(!plan.has_begun());
            assert_eq!(plan.next_at(), now + ms(first + 6_000), "the grace stays what it was");
        }
    }

    #[test]
    fn a_loss_is_told_at_once_and_the_grace_ends_no_later_than_the_lease() {
        let now = crate::clock::now();
        let plan = |on_lost| Plan::new(on_lost, now, now + ms(10_000));
        let mut early = plan(OnLost::Term);
        assert_eq!(early.lost(now + ms(100)), Some(Signal::TERM));
        assert_eq!((early.next_at(), early.lost(now)), (now + ms(1_100), None));
        assert_eq!(early.fire(now + ms(1_100), now), Some(Signal::KILL));

        let mut late = plan(OnLost::Term);
        assert_eq!(late.lost(now + ms(9_900)), Some(Signal::TERM));
        assert_eq!(late.next_at(), now + ms(9_995));

        let mut killed = plan(OnLost::Kill);
        assert_eq!((killed.lost(now), killed.lost(now)), (Some(Signal::KILL), None));
        assert!(killed.has_begun());

        let mut ignored = plan(OnLost::Ignore);
        assert!(ignored.next_at() >= now + NEVER);
        assert_eq!((ignored.has_begun(), ignored.lost(now)), (false, None));
        assert!(ignored.has_begun());
    }
}
