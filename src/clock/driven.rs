//! The clocks of a test: tokio's paused one, and what the test lets them run ahead of it.
//!
//! A simulated machine has one of these. While it stands still, so do its tasks: time passes, and
//! none of them is polled.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use super::{Clock, Moment, Stamp, nanoseconds};
use crate::sync::{Mutex, lock};

#[derive(Default)]
pub(crate) struct Driven {
    /// From when moments count: a run that counts from its own start is the same each time.
    pub(super) origin: Option<Instant>,
    steady_ahead: AtomicU64,
    wall_ahead: AtomicI64,
    /// How much faster than tokio's clock the clocks of leases run, in millionths.
    rate: AtomicI64,
    still: AtomicBool,
    /// Tasks that were to be polled while the machine stood still.
    waiting: Mutex<Vec<Waker>>,
    /// The library's own tasks, which end with their runtime.
    tasks: Mutex<Vec<Weak<Task>>>,
    /// Says when a task that is ready is polled.
    turns: Mutex<Option<Turns>>,
}

/// When a task that is ready is polled.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Turn {
    Now,
    /// Behind the others that are ready.
    Behind,
    /// So much later: its thread is busy. Only the library's own tasks are.
    Late(Duration),
}

/// A task, until it has ended.
type Task = Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>;

type Turns = Box<dyn FnMut() -> Turn + Send>;

impl fmt::Debug for Driven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driven").field("origin", &self.origin).finish_non_exhaustive()
    }
}

impl Driven {
    /// What wall clocks show at the moment zero: so much that they can be set back.
    pub(crate) const WALL_AT_START: Duration = Duration::from_nanos(1 << 60);

    /// A clock, and the handle that drives it.
    pub(crate) fn clock() -> (Clock, Arc<Self>) {
        Self::of(Self::default())
    }

    fn of(driven: Self) -> (Clock, Arc<Self>) {
        let driven = Arc::new(driven);
        (Clock { driven: Some(driven.clone()) }, driven)
    }

    pub(super) fn stamp(&self, now: Moment) -> Stamp {
        let gained = i128::from(now.0) * i128::from(self.rate.load(SeqCst)) / 1_000_000;
        let now = now.0.saturating_add_signed(i64::try_from(gained).unwrap_or_default());
        let wall = (nanoseconds(Self::WALL_AT_START) + now)
            .saturating_add_signed(self.wall_ahead.load(SeqCst));
        Stamp { steady: now + self.steady_ahead.load(SeqCst), wall }
    }

    /// The machine is suspended: all clocks of the world go on, tokio's does not.
    pub(crate) fn suspend(&self, duration: Duration) {
        self.steady_ahead.fetch_add(nanoseconds(duration), SeqCst);
        self.step_wall(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX));
    }

    /// What the wall clock shows.
    pub(crate) fn wall(&self) -> Duration {
        self.stamp(Clock::default().now()).wall()
    }

    /// Sets the wall clock ahead, or back.
    pub(crate) fn step_wall(&self, nanos: i64) {
        self.wall_ahead.fetch_add(nanos, SeqCst);
    }
}

/// For a simulation.
#[cfg(feature = "testing")]
impl Driven {
    /// As [`Driven::clock`], counting from `origin`.
    pub(crate) fn since(origin: Instant) -> (Clock, Arc<Self>) {
        Self::of(Self { origin: Some(origin), ..Self::default() })
    }

    /// An origin: now.
    #[expect(clippy::disallowed_methods, reason = "the clock's own part, for tests")]
    pub(crate) fn origin() -> Instant {
        Instant::now()
    }

    /// From the beginning the clocks run faster than true time by so many millionths.
    pub(crate) fn run_at(&self, rate: i64) {
        self.rate.store(rate, SeqCst);
    }

    /// Stops the machine, or lets it go on.
    pub(crate) fn stand_still(&self, still: bool) {
        self.still.store(still, SeqCst);
        if !still {
            let waiting = std::mem::take(&mut *lock(&self.waiting));
            waiting.into_iter().for_each(Waker::wake);
        }
    }
}

/// For a simulation.
#[cfg(feature = "testing")]
impl Driven {
    /// Ends the runtime of the library's own tasks: they are dropped here and now. Those of the
    /// locker's user go on.
    pub(crate) fn end_runtime(&self) {
        let tasks = std::mem::take(&mut *lock(&self.tasks));
        // Each is dropped when no lock is held: its end wakes others.
        let ended = tasks.iter().filter_map(|task| lock(&*task.upgrade()?).take());
        ended.for_each(drop);
    }

    /// From now on `turns` says when a task that is ready is polled.
    pub(crate) fn reorder(&self, turns: impl FnMut() -> Turn + Send + 'static) {
        *lock(&self.turns) = Some(Box::new(turns));
    }
}

impl Driven {
    fn turn(&self) -> Turn {
        lock(&self.turns).as_mut().map_or(Turn::Now, |turns| turns())
    }
}

impl Clock {
    /// A task of the library: it stands still while its machine does, and ends with its runtime.
    pub(crate) fn attend(&self, task: impl Future<Output = ()> + Send + 'static) -> Attended {
        let mut attended = Attended::new(self.driven.clone(), task);
        attended.is_ours = true;
        if let Some(driven) = &self.driven {
            let mut tasks = lock(&driven.tasks);
            tasks.retain(|task| task.strong_count() > 0);
            tasks.push(Arc::downgrade(&attended.task));
        }
        attended
    }

    /// A task of the locker's user, on a runtime that outlives the library's.
    #[cfg(feature = "testing")]
    pub(crate) fn accompany(&self, task: impl Future<Output = ()> + Send + 'static) -> Attended {
        Attended::new(self.driven.clone(), task)
    }
}

/// A task that stands still with its machine.
pub(crate) struct Attended {
    machine: Option<Arc<Driven>>,
    task: Arc<Task>,
    /// It is one of the library's own.
    is_ours: bool,
    /// Its thread is busy until then.
    busy: Option<Pin<Box<Sleep>>>,
}

impl Attended {
    fn new(machine: Option<Arc<Driven>>, task: impl Future<Output = ()> + Send + 'static) -> Self {
        let task: Arc<Task> = Arc::new(Mutex::new(Some(Box::pin(task))));
        Self { machine, task, is_ours: false, busy: None }
    }
}

impl Future for Attended {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(machine) = self.machine.clone() {
            if machine.still.load(SeqCst) {
                lock(&machine.waiting).push(cx.waker().clone());
                return Poll::Pending;
            }
            if let Some(busy) = &mut self.busy {
                std::task::ready!(busy.as_mut().poll(cx));
                self.busy = None;
            } else {
                match machine.turn() {
                    Turn::Late(late) if self.is_ours => {
                        let clock = Clock { driven: Some(machine) };
                        let busy = clock.sleep_until(clock.now().plus(late));
                        let busy = self.busy.insert(busy);
                        std::task::ready!(busy.as_mut().poll(cx));
                    }
                    Turn::Behind => {
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    Turn::Now | Turn::Late(_) => {}
                }
            }
        }
        let mut task = lock(&self.task);
        let Some(running) = task.as_mut() else { return Poll::Ready(()) };
        let polled = running.as_mut().poll(cx);
        let ended = polled.is_ready().then(|| task.take());
        drop(task);
        drop(ended);
        polled
    }
}
