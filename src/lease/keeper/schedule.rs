//! When the keeper looks through the holds, and when it sleeps. Pure: moments come in as arguments.
//!
//! ```text
//!  asleep ──something is held──▶ Look ──arm──▶ waiting ──the timer fires, a look is due──▶ Look
//!    ▲                                           │
//!    └────── nothing held for so many ticks ─────┘
//! ```

use std::time::Duration;

use crate::clock::{Moment, Reading};

/// The clocks are compared this often while anything is held.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// The keeper goes to sleep when nothing was held for so many ticks in a row. Not at the first, and
/// not because nothing is held just when it looks: where locks come and go, each would have to
/// wake it.
const IDLE_MAX: u32 = 10;

/// A clock that ran ahead of the process by more than this has leapt.
const LEAP: Duration = Duration::from_millis(20);

/// A look goes through all holds. Of more than so many, something is due all the time; then the
/// looks come no closer to one another than this.
const HOLDS_FEW_MAX: usize = if cfg!(test) { 8 } else { 1_000 };
const LOOK_PAUSE: Duration = Duration::from_millis(1);

/// What the keeper does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// It looks at what is due. The timer was so late.
    Look { late: Duration },
    /// It sets its timer anew: something is due before that.
    Arm,
    /// It waits: for its timer, or to be woken.
    Wait,
}

/// What the keeper has seen.
#[derive(Default)]
pub(super) struct Schedule {
    /// For how many ticks in a row nothing was held.
    idle: u32,
    /// No look is due before this.
    may_look_at: Moment,
    /// The clocks when they were compared last, while anything has been held since.
    compared: Option<Reading>,
}

impl Schedule {
    /// What to do at `now`, when something is due at `earliest`, the timer is set for `timer`
    /// (`Moment::NEVER` while the keeper sleeps) and may have `fired`, and so many locks are held.
    pub(super) fn poll_next(
        &self,
        now: Moment,
        earliest: Moment,
        (timer, fired): (Moment, bool),
        held: usize,
    ) -> Next {
        let is_asleep = timer == Moment::NEVER;
        if fired && !is_asleep {
            return Next::Look { late: now.since(timer) };
        }
        let is_due = earliest <= now && self.may_look_at <= now;
        if is_due || is_asleep && held > 0 {
            return Next::Look { late: Duration::ZERO };
        }
        if earliest.max(self.may_look_at) >= timer { Next::Wait } else { Next::Arm }
    }

    /// A look at the clocks: how far one has leapt since the last, if it has.
    pub(super) fn handle_look(&mut self, at: Reading, held: usize) -> Option<Duration> {
        self.may_look_at = if held > HOLDS_FEW_MAX { at.now.plus(LOOK_PAUSE) } else { at.now };
        let then = self.compared.replace(at)?;
        let leap = at.stamp.leapt(then.stamp, at.now.since(then.now));
        Some(leap).filter(|leap| *leap > LEAP)
    }

    /// When the timer is to fire, behind a look; `None` to go to sleep. `was_busy`: something was
    /// held since the look before, though it may have ended already.
    pub(super) fn handle_arm(
        &mut self,
        now: Moment,
        earliest: Moment,
        held: usize,
        was_busy: bool,
    ) -> Option<Moment> {
        let is_idle = held == 0 && !was_busy;
        self.idle = if is_idle { self.idle.saturating_add(1) } else { 0 };
        if self.idle > IDLE_MAX {
            self.compared = None;
            return None;
        }
        Some(earliest.max(self.may_look_at).min(now.plus(TICK)))
    }
}

#[cfg(all(test, not(quorlock_models)))]
mod tests {
    use super::*;
    use crate::clock::Stamp;

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    fn reading(moment: u64, stamp: u64) -> Reading {
        Reading { now: at(moment), stamp: Stamp::from_millis(stamp) }
    }

    const ON_TIME: Next = Next::Look { late: Duration::ZERO };

    #[test]
    fn it_looks_when_something_is_due_or_the_timer_fires_and_wakes_for_a_hold() {
        let schedule = Schedule::default();
        let next = |now, earliest: Moment, timer, fired, held| {
            schedule.poll_next(at(now), earliest, (timer, fired), held)
        };
        assert_eq!(next(50, at(50), at(90), false, 1), ON_TIME);
        assert_eq!(next(50, at(60), at(90), false, 1), Next::Arm, "it is due before the timer");
        assert_eq!(next(50, at(90), at(90), false, 1), Next::Wait);
        let late = Next::Look { late: Duration::from_millis(7) };
        assert_eq!(next(97, at(200), at(90), true, 1), late);
        assert_eq!(next(97, Moment::NEVER, Moment::NEVER, false, 0), Next::Wait, "asleep");
        assert_eq!(next(97, Moment::NEVER, Moment::NEVER, false, 1), ON_TIME, "and woken");
    }

    #[test]
    fn it_sleeps_when_nothing_was_held_for_a_second_and_not_before() {
        let mut schedule = Schedule::default();
        for tick in 0..10 {
            let timer = schedule.handle_arm(at(tick * 100), Moment::NEVER, 0, false);
            assert_eq!(timer, Some(at(tick * 100 + 100)));
        }
        assert_eq!(schedule.handle_arm(at(1_000), Moment::NEVER, 0, true), Some(at(1_100)));
        for tick in 0..10 {
            assert!(schedule.handle_arm(at(1_100 + tick * 100), Moment::NEVER, 0, false).is_some());
        }
        assert_eq!(schedule.handle_arm(at(2_100), Moment::NEVER, 0, false), None);
    }

    #[test]
    fn of_very_many_holds_looks_come_no_closer_than_a_pause() {
        let mut schedule = Schedule::default();
        let next = |schedule: &Schedule, nanos| {
            let now = Moment::from_nanos(nanos);
            schedule.poll_next(now, Moment::from_nanos(1), (at(90), false), 1)
        };
        schedule.handle_look(reading(5, 5), HOLDS_FEW_MAX + 1);
        assert_eq!(next(&schedule, 5_500_000), Next::Arm);
        assert_eq!(next(&schedule, 6_000_000), ON_TIME);
        schedule.handle_look(reading(6, 6), HOLDS_FEW_MAX);
        assert_eq!(next(&schedule, 6_000_000), ON_TIME);
    }

    #[test]
    fn a_clock_that_ran_ahead_has_leapt() {
        let mut schedule = Schedule::default();
        assert_eq!(schedule.handle_look(reading(0, 0), 1), None);
        assert_eq!(schedule.handle_look(reading(100, 100), 1), None);
        assert_eq!(schedule.handle_look(reading(200, 220), 1), None, "by no more than a little");
        let leap = schedule.handle_look(reading(300, 5_320), 1);
        assert_eq!(leap, Some(Duration::from_secs(5)));
    }
}
