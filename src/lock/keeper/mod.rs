//! The keeper: one task per locker that extends what is held and finds what is lost.
//!
//! It looks at each hold when that is due, and at the clocks at least every [`TICK`] while anything
//! is held: after a suspension of the machine or a step of its clock it wakes all who wait for a
//! loss, to look again. When nothing has been held for a second it sleeps, without a timer.
//!
//! ```text
//!  due ──lost──▶ told at once
//!   └──to be extended──▶ backlog ──room──▶ in flight ──majority──▶ due at a third of the TTL
//!                           └──its end has come──▶ due  └──failed──▶ due soon, until the end
//! ```
//!
//! Extensions of many locks that are due together are queued on the links together, and one system
//! call per link carries them; an option bounds how many are in flight. Of those that wait for room
//! the one goes first whose end is nearest: if any order keeps all locks, this one does (Liu and
//! Layland, 1973). It stays due by that end: no loss stands behind an extension. A guard that is
//! dropped meanwhile releases behind its extension on the same connection, so the release comes
//! last.
//!
//! The keeper is not what a loss depends on. Every look at a hold finds its loss (see
//! [`hold`](super::hold)), those who wait for it have timers of their own, and tokens have the
//! alarm. What ends with the keeper is extending, and telling the observers.

mod news;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Sleep;

use super::extension::Extension;
use super::hold::{Body, Holds, Name, Step};
use super::locker::LeaseContext;
use crate::clock::{Moment, Reading, Stamp};
use crate::sync::AtomicWaker;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use news::{News, What, report_of, tell};

/// The clocks are compared this often while anything is held.
const TICK: Duration = Duration::from_millis(100);

/// The keeper goes to sleep when nothing was held for so many ticks in a row. Not at the first, and
/// not because nothing is held just when it looks: where locks come and go, each would have to
/// wake it.
const IDLE_MAX: u32 = 10;

/// A clock that ran ahead of the process by more than this has leapt.
const LEAP: Duration = Duration::from_millis(20);

/// A hold that is looked at later than this was kept from it: the runtime was blocked.
const STALL: Duration = Duration::from_millis(250);

/// A look goes through all holds. Of more than so many, something is due all the time; then the
/// looks come no closer to one another than this.
const HOLDS_FEW_MAX: usize = if cfg!(test) { 8 } else { 1_000 };
const LOOK_PAUSE: Duration = Duration::from_millis(1);

/// What is known of the keeper from outside.
pub(super) struct Keeping {
    waker: AtomicWaker,
    running: AtomicBool,
    /// When something is due next, in nanoseconds.
    earliest: AtomicU64,
    /// When the keeper's timer fires; `Moment::NEVER` while it sleeps.
    timer: AtomicU64,
}

impl Keeping {
    pub(super) fn new() -> Self {
        Self {
            waker: AtomicWaker::new(),
            running: AtomicBool::new(false),
            earliest: AtomicU64::new(Moment::NEVER.as_nanos()),
            timer: AtomicU64::new(Moment::NEVER.as_nanos()),
        }
    }

    /// Notes that something is due at `at`, and returns whether the keeper was woken for it.
    pub(super) fn note(&self, at: Moment) -> bool {
        // Ordering: the keeper clears `earliest` before it looks through the holds, and sets its
        // timer before it looks at `earliest` again. A task that writes here after that look finds
        // the timer, and wakes the keeper if the timer is too late.
        self.note_silently(at);
        let is_late = self.timer.load(Ordering::SeqCst) > at.as_nanos();
        if is_late {
            self.wake();
        }
        is_late
    }

    fn note_silently(&self, at: Moment) {
        // Loaded first, because every acquisition runs this, and few holds are due before all
        // others. Ordering: a task that reads the value from before the keeper cleared it has
        // stored its hold's due time before the keeper looks through the holds.
        if self.earliest.load(Ordering::SeqCst) > at.as_nanos() {
            self.earliest.fetch_min(at.as_nanos(), Ordering::SeqCst);
        }
    }

    fn earliest(&self) -> Moment {
        Moment::from_nanos(self.earliest.load(Ordering::SeqCst))
    }

    fn timer_at(&self) -> Moment {
        Moment::from_nanos(self.timer.load(Ordering::SeqCst))
    }

    pub(super) fn wake(&self) {
        self.waker.wake();
    }
}

/// Starts the keeper if there is none, and returns whether it did. Without a runtime there is none,
/// and nothing is extended.
pub(super) fn ensure(locker: &Arc<LeaseContext>) -> bool {
    let keeping = &locker.holds.keeping;
    if keeping.running.load(Ordering::Acquire) || keeping.running.swap(true, Ordering::AcqRel) {
        return false;
    }
    let keeper = Keeper {
        locker: Arc::downgrade(locker),
        holds: locker.holds.clone(),
        flights: Vec::new(),
        decided: Vec::new(),
        backlog: BTreeMap::new(),
        news: Vec::new(),
        timer: None,
        idle: 0,
        may_look_at: Moment::from_nanos(0),
        compared: None,
    };
    // A keeper that cannot be started is dropped, and the next hold tries again.
    locker.nodes.spawn(keeper);
    true
}

struct Keeper {
    locker: Weak<LeaseContext>,
    holds: Arc<Holds>,
    /// Extensions whose verdict is awaited.
    flights: Vec<Flight>,
    /// Extensions whose verdict is known and to which some nodes have not replied yet; also what
    /// was sent to single nodes after the verdict. They do not count towards `extensions_max`, and
    /// are looked at whenever holds are.
    decided: Vec<Flight>,
    /// Holds to be extended, while too many extensions are in flight: by the end of the lease, and
    /// by place.
    backlog: BTreeMap<(Moment, u32), Waiting>,
    /// What is to be told, once nothing is half done: an observer may panic.
    news: Vec<(News, Option<Duration>)>,
    timer: Option<Pin<Box<Sleep>>>,
    /// For how many ticks in a row nothing was held.
    idle: u32,
    /// No look is due before this.
    may_look_at: Moment,
    /// The clocks when they were compared last, while anything has been held since.
    compared: Option<(Moment, Stamp)>,
}

/// A hold that is to be extended, and was due at `since`.
struct Waiting {
    name: Name,
    since: Moment,
}

/// An extension in flight.
struct Flight {
    name: Name,
    extension: Extension,
    /// What it is to reach.
    target: Stamp,
    /// What has not come in by then never will.
    until: Moment,
}

impl Future for Keeper {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        this.holds.keeping.waker.register(cx.waker());
        let Some(locker) = this.locker.upgrade() else { return Poll::Ready(()) };
        loop {
            let now = locker.nodes.clock().now();
            this.serve_flights(&locker, now, cx);
            this.serve_backlog(&locker);
            this.tell_news(&locker);
            let keeping = &this.holds.keeping;
            let timer_at = keeping.timer_at();
            let rang = timer_at != Moment::NEVER
                && this.timer.as_mut().is_some_and(|timer| timer.as_mut().poll(cx).is_ready());
            let sleeps = timer_at == Moment::NEVER;
            // Something was held since the last look, though it may have ended already.
            let was_busy = keeping.earliest() != Moment::NEVER;
            let is_due = keeping.earliest() <= now && this.may_look_at <= now;
            if rang || is_due || (sleeps && this.holds.count() > 0) {
                let late = if rang { now.since(timer_at) } else { Duration::ZERO };
                this.look(&locker, late);
            } else if keeping.earliest().max(this.may_look_at) >= timer_at {
                return Poll::Pending;
            }
            this.arm(&locker, was_busy);
            this.tell_news(&locker);
        }
    }
}

impl Keeper {
    /// Sets the timer for whatever is due next, or goes to sleep when nothing is held.
    fn arm(&mut self, locker: &LeaseContext, was_busy: bool) {
        let now = locker.nodes.clock().now();
        let keeping = &self.holds.keeping;
        // Ordering: published before the count is read. A task that begins a hold counts it first,
        // and then reads the timer: one of the two sees the other.
        keeping.timer.store(Moment::NEVER.as_nanos(), Ordering::SeqCst);
        let is_idle = self.holds.count() == 0 && !was_busy;
        self.idle = if is_idle { self.idle.saturating_add(1) } else { 0 };
        if self.idle > IDLE_MAX {
            // A hold that begins meanwhile wakes the keeper, which looks at all of them.
            keeping.earliest.store(Moment::NEVER.as_nanos(), Ordering::SeqCst);
            self.compared = None;
            return;
        }
        let next = keeping.earliest().max(self.may_look_at).min(now.plus(TICK));
        keeping.timer.store(next.as_nanos(), Ordering::SeqCst);
        match &mut self.timer {
            Some(timer) => locker.nodes.clock().reset(timer.as_mut(), next),
            None => self.timer = Some(locker.nodes.clock().sleep_until(next)),
        }
    }

    /// Looks at every hold that is due, and at all of them if a clock has leapt. `late` is how late
    /// the timer was.
    fn look(&mut self, locker: &LeaseContext, late: Duration) {
        let Reading { now, stamp } = locker.nodes.clock().read();
        let leap = match self.compared.replace((now, stamp)) {
            Some((then, earlier)) => stamp.leapt(earlier, now.since(then)),
            None => Duration::ZERO,
        };
        let leapt = leap > LEAP;
        self.may_look_at =
            if self.holds.count() > HOLDS_FEW_MAX { now.plus(LOOK_PAUSE) } else { now };
        let keeping = &self.holds.keeping;
        keeping.earliest.store(Moment::NEVER.as_nanos(), Ordering::SeqCst);
        let until = if leapt { Moment::LAST } else { now };
        let due = self.holds.due(until, |later| keeping.note_silently(later));
        for (index, since) in due {
            self.sort(locker, index, since, leap.max(late));
        }
        self.serve_decided(locker, now);
        self.serve_backlog(locker);
        if leapt {
            self.holds.notify_all();
        }
    }

    /// Looks at a hold that is due: a loss is told, an extension put into the backlog.
    fn sort(&mut self, locker: &LeaseContext, index: u32, since: Moment, late: Duration) {
        let at = locker.nodes.clock().read();
        let (holds, backlog) = (&self.holds, &mut self.backlog);
        let seen = holds.at(index, |name, body| {
            if !holds.is_due_at(index, since) {
                return None;
            }
            let due = match body.next_step(locker, at) {
                NextStep::LookAt(due) => due,
                NextStep::ExtendBy(end) => {
                    backlog.insert((end, index), Waiting { name, since });
                    end
                }
            };
            holds.set_due(index, due);
            Some((due, body.take_news(locker, at)))
        });
        let Some((due, news)) = seen.flatten() else { return };
        self.holds.keeping.note(due);
        if let Some(news) = news {
            let stall = late.max(at.now.since(since));
            self.news.push((news, Some(stall).filter(|stall| *stall > STALL)));
        }
    }

    /// Extends what is in the backlog, while not too many extensions are in flight.
    fn serve_backlog(&mut self, locker: &LeaseContext) {
        while self.flights.len() < locker.options.extensions_max {
            let Some(((end, _), Waiting { name, since })) = self.backlog.pop_first() else {
                return;
            };
            let at = locker.nodes.clock().read();
            let holds = &self.holds;
            let seen = holds.with(name, |body| {
                if !holds.is_due_at(name.index, end) {
                    return None; // it has been seen to, or stands elsewhere
                }
                let (due, flight) = send(locker, name, body, at, since);
                holds.set_due(name.index, due);
                Some((due, flight))
            });
            let Some((due, flight)) = seen.flatten() else { continue };
            self.flights.extend(flight);
            self.holds.keeping.note(due);
        }
    }

    fn tell_news(&mut self, locker: &LeaseContext) {
        for (news, stall) in std::mem::take(&mut self.news) {
            tell(locker, news, stall);
        }
    }

    /// Enters the answers of the extensions in flight whose verdict is known.
    fn serve_flights(&mut self, locker: &LeaseContext, now: Moment, cx: &mut Context<'_>) {
        let mut flights = std::mem::take(&mut self.flights);
        let mut next = 0;
        while let Some(flight) = flights.get(next) {
            if flight.extension.poll_verdict(cx).is_pending() {
                next += 1;
                continue;
            }
            let flight = flights.swap_remove(next);
            self.land(locker, now, flight);
        }
        flights.append(&mut self.flights); // what those have led to
        self.flights = flights;
    }

    /// Enters the answers by which an extension was decided.
    fn land(&mut self, locker: &LeaseContext, now: Moment, mut flight: Flight) {
        let Flight { name, extension, target, .. } = &mut flight;
        let landed = self.holds.with(*name, |body| {
            if body.observed {
                return None;
            }
            let step = body.take_answers(extension, *target, locker);
            body.extending = matches!(step, Step::More(_));
            let at = locker.nodes.clock().read();
            let remaining = body.lease.remaining(at.stamp);
            let votes = || report_of(extension, locker);
            let (due, more, what) = match step {
                Step::More(more) => (None, Some(more), None),
                Step::Lost => (Some(now), None, None),
                Step::Extended => {
                    let what = What::Extended { remaining, votes: votes() };
                    (Some(body.next_look(locker, at)), None, Some(what))
                }
                Step::Failed => {
                    let what = What::Failed { remaining, votes: votes() };
                    (Some(body.retry_at(locker, at)), None, Some(what))
                }
            };
            let news = what.and_then(|what| body.news(locker, now, what));
            Some((due, more, news))
        });
        let Some((due, more, news)) = landed.flatten() else { return };
        if let Some(due) = due {
            self.holds.schedule(*name, due);
        }
        self.news.extend(news.map(|news| (news, None)));
        if let Some(extension) = more {
            let until = now.plus(extension.allowed());
            self.flights.push(Flight { name: *name, extension, target: *target, until });
        }
        self.decided.push(flight);
    }

    /// Enters what has come in behind the verdicts, once all has, or as long as the nodes had.
    fn serve_decided(&mut self, locker: &LeaseContext, now: Moment) {
        for mut flight in std::mem::take(&mut self.decided) {
            if !flight.extension.is_complete() && flight.until > now {
                self.decided.push(flight);
                continue;
            }
            let Flight { name, extension, target, .. } = &mut flight;
            let gathered = self.holds.with(*name, |body| {
                if body.observed {
                    return None;
                }
                let before = body.lease.end();
                let more = body.gather(extension, locker);
                let at = locker.nodes.clock().read();
                let is_shorter = !body.lease.end().reaches(before);
                let due = is_shorter.then(|| body.next_look(locker, at));
                Some((body.loss().map(|_| now).or(due), more))
            });
            let Some((due, more)) = gathered.flatten() else { continue };
            if let Some(due) = due {
                self.holds.schedule(*name, due);
            }
            for extension in more.into_iter().flatten() {
                let until = now.plus(extension.allowed());
                self.decided.push(Flight { name: *name, extension, target: *target, until });
            }
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // No task extends any more, until the next hold finds another runtime: what was in flight
        // here is forgotten.
        let now = self.locker.upgrade().map(|locker| locker.nodes.clock().now());
        for Flight { name, .. } in self.flights.drain(..) {
            self.holds.with(name, |body| body.extending = false);
            // It was to be looked at when the extension had failed.
            if let Some(now) = now {
                self.holds.schedule(name, now);
            }
        }
        let keeping = &self.holds.keeping;
        keeping.timer.store(Moment::NEVER.as_nanos(), Ordering::SeqCst);
        keeping.running.store(false, Ordering::Release);
    }
}

/// What is due for a hold.
enum NextStep {
    /// Nothing now.
    LookAt(Moment),
    /// An extension, before this.
    ExtendBy(Moment),
}

/// Extends a hold, unless it is too late for that: when to look at it next, and what was sent.
fn send(
    locker: &LeaseContext,
    name: Name,
    body: &mut Body,
    at: Reading,
    since: Moment,
) -> (Moment, Option<Flight>) {
    if !body.is_valid(at.stamp) || !body.may_extend(at.now) {
        return (since, None); // at once, to tell of it
    }
    let warning = at.moment(body.lease.warning());
    let ttl = body.ttl();
    let Ok(extension) = body.extend(locker, ttl) else { return (at.now.plus(TICK), None) };
    body.extending = true;
    let (target, until) = (extension.end(locker), at.now.plus(extension.allowed()));
    (warning, Some(Flight { name, extension, target, until }))
}

impl Body {
    fn next_step(&mut self, locker: &LeaseContext, at: Reading) -> NextStep {
        let Reading { now, stamp } = at;
        if !self.is_valid(stamp) {
            return NextStep::LookAt(Moment::NEVER);
        }
        if self.has_calmed() {
            return NextStep::LookAt(self.next_look(locker, at));
        }
        let warning = at.moment(self.lease.warning());
        match self.extending || !self.may_extend(now) {
            true => NextStep::LookAt(warning),
            false => NextStep::ExtendBy(warning),
        }
    }

    /// When to extend again after it has failed: a tenth of the TTL later, by chance up to half of
    /// that earlier.
    fn retry_at(&self, locker: &LeaseContext, at: Reading) -> Moment {
        let pause = self.ttl() / 10;
        let pause = locker.nodes.entropy().between(pause / 2, pause);
        at.now.plus(pause).min(at.moment(self.lease.warning()))
    }
}
