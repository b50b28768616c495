//! The alarm: one thread of the process that cancels the tokens of locks whose time is over.
//!
//! A [`CancellationToken`](tokio_util::sync::CancellationToken) is passive: something must look at
//! the clock and cancel it. No task can be relied on for that: every task ends with its runtime,
//! and may be kept waiting by another. So the first token starts a thread that does nothing else.
//! It looks at a hold when its lease ends, as that was known at the look before; a lease that was
//! extended meanwhile is looked at again at its new end. When an end comes nearer, because a node
//! says that it has lost the key, the hold sets the alarm anew (see
//! [`leases`](super::leases)). What is found lost earlier is told by the look that finds it.
//!
//! The hold stores, under its lock, the time of the look that was planned last; an earlier plan
//! finds that it is out of date and does nothing. So two threads that plan looks at once miss none.
//!
//! A hold may end long before its lease would have. So when there are more to look at than twice as
//! many as had not ended at the last look at all of them, all are looked at, and those that have
//! ended are forgotten.
//!
//! The system's monotonic clock, by which threads sleep, may stand still while the machine is
//! suspended. So the thread compares the clocks at least every [`TICK`] while it has holds to look
//! at, and looks at all of them when one has leapt.
//!
//! In the crate's own tests, whose clocks are driven, time passes for nothing but tasks: there the
//! keeper tells of each loss.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use tokio::runtime::Handle;

use super::hold_id::HoldId;
use crate::clock::{Clock, Moment, Reading};

/// The clocks are compared this often while there is a hold to look at.
const TICK: Duration = Duration::from_millis(100);

/// A clock that ran ahead of the process by more than this has leapt.
const LEAP: Duration = Duration::from_millis(20);

/// So many holds that have ended may be remembered, beside as many as have not.
const ENDED_MAX: usize = 32;

static ALARM: Alarm = Alarm { state: Mutex::new(State::new()), changed: Condvar::new() };

struct Alarm {
    state: Mutex<State>,
    /// A look was added that is due before all others, or one too many.
    changed: Condvar,
}

struct State {
    /// The looks, by when they are due, and a number for those that are due together.
    due: BTreeMap<(Moment, u64), Look>,
    count: u64,
    /// How many holds were left when all had been looked at.
    left: usize,
    is_running: bool,
}

/// Locks with tokens: what a look at one of them asks.
pub(super) trait Watched: Send + Sync {
    /// Looks at a hold at that time, which tells of its loss, and returns when to look next. `None`
    /// if the hold has ended or is lost, or if `rang`, the look that asks, is no longer the one
    /// that was planned.
    fn plan_alarm(&self, id: HoldId, at: Reading, rang: Option<Moment>) -> Option<Moment>;
}

/// A look at a hold whose token has been given away.
struct Look {
    leases: Weak<dyn Watched>,
    id: HoldId,
    /// Whose clock is read: a test can pause it.
    runtime: Option<Handle>,
    /// For when it was planned, as the hold knows it.
    planned: Option<Moment>,
}

/// Has the token of a hold cancelled when its lease is over, as `runtime` counts time.
pub(super) fn set(leases: Weak<dyn Watched>, id: HoldId, runtime: Option<Handle>) {
    if let Some((due, look)) = (Look { leases, id, runtime, planned: None }).take() {
        ALARM.add(due, look);
    }
}

impl State {
    const fn new() -> Self {
        Self { due: BTreeMap::new(), count: 0, left: 0, is_running: false }
    }

    /// Whether most of the holds may have ended.
    fn is_crowded(&self) -> bool {
        self.due.len() > 2 * self.left + ENDED_MAX
    }

    fn put(&mut self, due: Moment, look: Look) {
        self.count += 1;
        self.due.insert((due, self.count), look);
    }
}

impl Alarm {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&'static self, due: Moment, look: Look) {
        let mut state = self.state();
        let is_first = state.due.first_key_value().is_none_or(|((first, _), _)| due < *first);
        state.put(due, look);
        if !state.is_running {
            // Where the system gives no thread the keeper still tells, and the next token tries.
            let thread = thread::Builder::new().name("quorlock-alarm".into());
            state.is_running = thread.spawn(|| self.run()).is_ok();
        } else if is_first || state.is_crowded() {
            self.changed.notify_one();
        }
    }

    fn run(&self) {
        let clock = Clock::default();
        let mut compared: Option<Reading> = None;
        let mut state = self.state();
        loop {
            let at = clock.read();
            let leapt = compared
                .replace(at)
                .is_some_and(|then| at.stamp.leapt(then.stamp, at.now.since(then.now)) > LEAP);
            let all = leapt || state.is_crowded();
            let until = if all { Moment::LAST } else { at.now };
            let later = state.due.split_off(&(until, u64::MAX));
            let due = std::mem::replace(&mut state.due, later);
            if !due.is_empty() {
                drop(state);
                let next: Vec<_> = due.into_values().filter_map(Look::take).collect();
                state = self.state();
                if all {
                    // Without the looks that were added meanwhile: their holds may have ended.
                    state.left = next.len();
                }
                for (due, look) in next {
                    // A test's clock may stand still: then there is nothing to hurry for.
                    let due = if due <= at.now { at.now.plus(TICK) } else { due };
                    state.put(due, look);
                }
                continue;
            }
            let wait = state.due.first_key_value().map(|((due, _), _)| due.since(at.now).min(TICK));
            state = match wait {
                Some(wait) => match self.changed.wait_timeout(state, wait) {
                    Ok((state, _)) => state,
                    Err(poisoned) => poisoned.into_inner().0,
                },
                None => {
                    compared = None;
                    self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
    }
}

impl Look {
    /// Looks at the hold, which tells of its loss, and returns the next look and when it is due;
    /// nothing if the hold has ended or is lost, or another look was planned since.
    fn take(self) -> Option<(Moment, Self)> {
        let leases = self.leases.upgrade()?;
        let at = {
            let _entered = self.runtime.as_ref().map(Handle::enter);
            Clock::default().read()
        };
        let plan = || leases.plan_alarm(self.id, at, self.planned);
        // Who is told of a loss is other people's code. Where it panics, which it has reported by
        // that, the hold is looked at again, and all other holds as if nothing had happened.
        let planned = match catch_unwind(AssertUnwindSafe(plan)) {
            Ok(planned) => planned?,
            Err(_) => return Some((at.now, self)),
        };
        Some((planned, Self { planned: Some(planned), ..self }))
    }
}

/// How many looks are planned.
#[cfg(test)]
pub(crate) fn watched() -> usize {
    ALARM.state().due.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Never;

    impl Watched for Never {
        fn plan_alarm(&self, _: HoldId, _: Reading, _: Option<Moment>) -> Option<Moment> {
            None
        }
    }

    /// Otherwise each token would have the alarm's thread look through all of them.
    #[test]
    fn few_looks_are_no_crowd() {
        assert!(!State::new().is_crowded());
    }

    #[test]
    fn looks_that_are_due_together_do_not_replace_one_another() {
        let (mut state, due) = (State::new(), Moment::from_nanos(7));
        for count in 1..=3 {
            let (leases, id) = (Weak::<Never>::new(), HoldId::default());
            state.put(due, Look { leases, id, runtime: None, planned: None });
            assert_eq!(state.due.len(), count);
        }
    }
}
