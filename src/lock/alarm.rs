//! The alarm: one thread of the process that cancels the tokens of locks whose time is over.
//!
//! A [`CancellationToken`](tokio_util::sync::CancellationToken) is passive: something must look at
//! the clock and cancel it. No task can be relied on for that: every task ends with its runtime,
//! and may be kept waiting by another. So the first token starts a thread that does nothing else.
//! It looks at a hold when its lease ends, as that was known at the look before; a lease that was
//! extended meanwhile is looked at again at its new end. When a node says that it has lost a key,
//! which may bring an end nearer, all are looked at. What is found lost earlier is told by the
//! look that finds it (see [`hold`](super::hold)).
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
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use tokio::runtime::Handle;

use super::hold::Name;
use super::locker::Inner;
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
    /// A hold was added that is due before all others, or one too many; or an end came nearer.
    changed: Condvar,
}

struct State {
    /// The holds to look at, by when they are due, and a number for those that are due together.
    due: BTreeMap<(Moment, u64), Watched>,
    count: u64,
    /// How many holds were left when all had been looked at.
    left: usize,
    /// The end of some hold has come nearer.
    is_nearer: bool,
    is_running: bool,
}

/// A hold whose token has been given away.
struct Watched {
    locker: Weak<Inner>,
    name: Name,
    /// Whose clock is read: a test can pause it.
    runtime: Option<Handle>,
}

/// The end of a hold has come nearer: what was known of it is too late.
pub(super) fn look_again() {
    let mut state = ALARM.state();
    if !state.due.is_empty() {
        state.is_nearer = true;
        ALARM.changed.notify_one();
    }
}

/// Has the token of a hold cancelled when its lease is over.
pub(super) fn set(locker: &Arc<Inner>, name: Name) {
    let clock = locker.nodes.clock();
    if clock.is_driven() {
        return;
    }
    let runtime = Handle::try_current().ok();
    let watched = Watched { locker: Arc::downgrade(locker), name, runtime };
    let Some(due) = watched.look() else { return };
    ALARM.add(due, watched);
}

impl State {
    const fn new() -> Self {
        Self { due: BTreeMap::new(), count: 0, left: 0, is_nearer: false, is_running: false }
    }

    /// Whether most of the holds may have ended.
    fn is_crowded(&self) -> bool {
        self.due.len() > 2 * self.left + ENDED_MAX
    }

    fn put(&mut self, due: Moment, watched: Watched) {
        self.count += 1;
        self.due.insert((due, self.count), watched);
    }
}

impl Alarm {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&'static self, due: Moment, watched: Watched) {
        let mut state = self.state();
        let is_first = state.due.first_key_value().is_none_or(|((first, _), _)| due < *first);
        state.put(due, watched);
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
            let is_nearer = std::mem::take(&mut state.is_nearer);
            let all = leapt || is_nearer || state.is_crowded();
            let until = if all { Moment::LAST } else { at.now };
            let later = state.due.split_off(&(until, u64::MAX));
            let due = std::mem::replace(&mut state.due, later);
            if !due.is_empty() {
                drop(state);
                let seen: Vec<_> = due.into_values().map(|hold| (hold.look(), hold)).collect();
                state = self.state();
                for (due, hold) in seen {
                    // A test's clock may stand still: then there is nothing to hurry for.
                    let is_behind = due.is_some_and(|due| due <= at.now);
                    let due = if is_behind { Some(at.now.plus(TICK)) } else { due };
                    if let Some(due) = due {
                        state.put(due, hold);
                    }
                }
                if all {
                    state.left = state.due.len();
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

impl Watched {
    /// Looks at the hold, which tells of its loss, and returns when to look again.
    fn look(&self) -> Option<Moment> {
        let _entered = self.runtime.as_ref().map(Handle::enter);
        let locker = self.locker.upgrade()?;
        let at = locker.nodes.clock().read();
        let look = |body: &mut super::hold::Body| {
            body.is_valid(at.stamp).then(|| at.moment(body.lease.warning()))
        };
        locker.holds.with(self.name, look).flatten()
    }
}

/// How many holds are to be looked at.
#[cfg(test)]
pub(super) fn watched() -> usize {
    ALARM.state().due.len()
}
