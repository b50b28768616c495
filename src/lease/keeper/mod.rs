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
//! [`leases`](super::leases)), those who wait for it have timers of their own, and tokens have the
//! alarm. What ends with the keeper is extending, and telling the observers.

mod schedule;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Sleep;

use super::context::LeaseContext;
use super::extension::Extension;
use super::hold::{Hold, Step};
use super::hold_id::HoldId;
use super::leases::Leases;
use super::news::News;
use crate::clock::{Moment, Reading, Stamp};
use schedule::{Next, Schedule, TICK};

/// A hold that is looked at later than this was kept from it: the runtime was blocked.
const STALL: Duration = Duration::from_millis(250);

/// Starts the keeper if there is none, and returns whether it did. Without a runtime there is none,
/// and nothing is extended.
pub(super) fn ensure(leases: &Arc<Leases>) -> bool {
    if !leases.keeping.handle_start() {
        return false;
    }
    let keeper = Keeper {
        leases: Arc::downgrade(leases),
        flights: Vec::new(),
        decided: Vec::new(),
        backlog: BTreeMap::new(),
        news: Vec::new(),
        timer: None,
        schedule: Schedule::default(),
    };
    // A keeper that cannot be started is dropped, and the next hold tries again.
    leases.context.nodes.spawn(keeper);
    true
}

struct Keeper {
    leases: Weak<Leases>,
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
    news: Vec<News>,
    timer: Option<Pin<Box<Sleep>>>,
    schedule: Schedule,
}

/// A hold that is to be extended, and was due at `since`.
struct Waiting {
    id: HoldId,
    since: Moment,
}

/// An extension in flight.
struct Flight {
    id: HoldId,
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
        let Some(leases) = this.leases.upgrade() else { return Poll::Ready(()) };
        leases.keeping.register(cx.waker());
        loop {
            let now = leases.context.nodes.clock().now();
            this.serve_flights(&leases, now, cx);
            this.serve_backlog(&leases);
            this.tell_news(&leases);
            let keeping = &leases.keeping;
            let timer = keeping.timer();
            let fired = timer != Moment::NEVER
                && this.timer.as_mut().is_some_and(|timer| timer.as_mut().poll(cx).is_ready());
            let earliest = keeping.earliest();
            match this.schedule.poll_next(now, earliest, (timer, fired), leases.count()) {
                Next::Look { late } => this.look(&leases, late),
                Next::Arm => {}
                Next::Wait => return Poll::Pending,
            }
            this.arm(&leases, earliest != Moment::NEVER);
            this.tell_news(&leases);
        }
    }
}

impl Keeper {
    /// Sets the timer for whatever is due next, or goes to sleep when nothing is held.
    fn arm(&mut self, leases: &Leases, was_busy: bool) {
        let clock = leases.context.nodes.clock();
        let now = clock.now();
        leases.keeping.handle_awake();
        let held = leases.count();
        let earliest = leases.keeping.earliest();
        let Some(next) = self.schedule.handle_arm(now, earliest, held, was_busy) else {
            return leases.keeping.handle_asleep();
        };
        leases.keeping.handle_armed(next);
        match &mut self.timer {
            Some(timer) => clock.reset(timer.as_mut(), next),
            None => self.timer = Some(clock.sleep_until(next)),
        }
    }

    /// Looks at every hold that is due, and at all of them if a clock has leapt. `late` is how late
    /// the timer was.
    fn look(&mut self, leases: &Leases, late: Duration) {
        let at = leases.context.nodes.clock().read();
        let leap = self.schedule.handle_look(at, leases.count());
        let keeping = &leases.keeping;
        keeping.handle_look();
        let until = if leap.is_some() { Moment::LAST } else { at.now };
        let due = leases.due(until, |later| keeping.note_silently(later));
        for (index, since) in due {
            self.sort(leases, index, since, leap.unwrap_or_default().max(late));
        }
        self.serve_decided(leases, at.now);
        self.serve_backlog(leases);
        if leap.is_some() {
            leases.notify_all();
        }
    }

    /// Looks at a hold that is due: a loss is told, an extension put into the backlog.
    fn sort(&mut self, leases: &Leases, index: u32, since: Moment, late: Duration) {
        let at = leases.context.nodes.clock().read();
        let backlog = &mut self.backlog;
        let seen = leases.at(index, |id, hold| {
            if !leases.is_due_at(index, since) {
                return None;
            }
            let due = match hold.next_step(&leases.context, at) {
                NextStep::LookAt(due) => due,
                NextStep::ExtendBy(end) => {
                    backlog.insert((end, index), Waiting { id, since });
                    end
                }
            };
            leases.set_due(index, due);
            let stalled = Some(late.max(at.now.since(since))).filter(|stall| *stall > STALL);
            Some((due, hold.take_news(&leases.context, at, stalled)))
        });
        let Some((due, news)) = seen.flatten() else { return };
        leases.keeping.note(due);
        self.news.extend(news);
    }

    /// Extends what is in the backlog, while not too many extensions are in flight.
    fn serve_backlog(&mut self, leases: &Leases) {
        while self.flights.len() < leases.context.options.extensions_max {
            let Some(((end, _), Waiting { id, since })) = self.backlog.pop_first() else {
                return;
            };
            let at = leases.context.nodes.clock().read();
            let seen = leases.with(id, |hold| {
                if !leases.is_due_at(id.index, end) {
                    return None; // it has been seen to, or stands elsewhere
                }
                let (due, flight) = send(&leases.context, id, hold, at, since);
                leases.set_due(id.index, due);
                Some((due, flight))
            });
            let Some((due, flight)) = seen.flatten() else { continue };
            self.flights.extend(flight);
            leases.keeping.note(due);
        }
    }

    fn tell_news(&mut self, leases: &Leases) {
        for news in std::mem::take(&mut self.news) {
            news.tell(&leases.context);
        }
    }

    /// Enters the answers of the extensions in flight whose verdict is known.
    fn serve_flights(&mut self, leases: &Leases, now: Moment, cx: &mut Context<'_>) {
        let mut flights = std::mem::take(&mut self.flights);
        let mut next = 0;
        while let Some(flight) = flights.get(next) {
            if flight.extension.poll_verdict(cx).is_pending() {
                next += 1;
                continue;
            }
            let flight = flights.swap_remove(next);
            self.land(leases, now, flight);
        }
        flights.append(&mut self.flights); // what those have led to
        self.flights = flights;
    }

    /// Enters the answers by which an extension was decided.
    fn land(&mut self, leases: &Leases, now: Moment, mut flight: Flight) {
        let Flight { id, extension, target, .. } = &mut flight;
        let landed = leases.with(*id, |hold| {
            if hold.is_observed() {
                return None;
            }
            let step = hold.take_answers(extension, *target, &leases.context);
            hold.set_extending(matches!(step, Step::More(_)));
            let at = leases.context.nodes.clock().read();
            let news =
                |hold: &mut Hold, is| hold.extension_news(&leases.context, extension, at, is);
            Some(match step {
                Step::More(more) => (None, Some(more), None),
                Step::Lost => (Some(now), None, None),
                Step::Extended => {
                    (Some(hold.next_look(&leases.context, at)), None, news(hold, true))
                }
                // No retry can succeed, and that is no failure to tell of.
                Step::Failed if hold.is_revoked_for_good() => {
                    (Some(hold.next_look(&leases.context, at)), None, None)
                }
                Step::Failed => (Some(hold.retry_at(&leases.context, at)), None, news(hold, false)),
            })
        });
        let Some((due, more, news)) = landed.flatten() else { return };
        if let Some(due) = due {
            leases.schedule(*id, due);
        }
        self.news.extend(news);
        if let Some(extension) = more {
            let until = now.plus(extension.allowed());
            self.flights.push(Flight { id: *id, extension, target: *target, until });
        }
        self.decided.push(flight);
    }

    /// Enters what has come in behind the verdicts, once all has, or as long as the nodes had.
    fn serve_decided(&mut self, leases: &Leases, now: Moment) {
        for mut flight in std::mem::take(&mut self.decided) {
            if !flight.extension.is_complete() && flight.until > now {
                self.decided.push(flight);
                continue;
            }
            let Flight { id, extension, target, .. } = &mut flight;
            let gathered = leases.with(*id, |hold| {
                if hold.is_observed() {
                    return None;
                }
                let before = hold.validity.end();
                let more = hold.gather(extension, &leases.context);
                let at = leases.context.nodes.clock().read();
                let is_shorter = !hold.validity.end().reaches(before);
                let due = is_shorter.then(|| hold.next_look(&leases.context, at));
                Some((hold.loss().map(|_| now).or(due), more))
            });
            let Some((due, more)) = gathered.flatten() else { continue };
            if let Some(due) = due {
                leases.schedule(*id, due);
            }
            for extension in more.into_iter().flatten() {
                let until = now.plus(extension.allowed());
                self.decided.push(Flight { id: *id, extension, target: *target, until });
            }
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // No task extends any more, until the next hold finds another runtime: what was in flight
        // here is forgotten.
        let Some(leases) = self.leases.upgrade() else { return };
        let now = leases.context.nodes.clock().now();
        for Flight { id, .. } in self.flights.drain(..) {
            leases.with(id, |hold| hold.set_extending(false));
            // It was to be looked at when the extension had failed.
            leases.schedule(id, now);
        }
        leases.keeping.handle_stopped();
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
    context: &LeaseContext,
    id: HoldId,
    hold: &mut Hold,
    at: Reading,
    since: Moment,
) -> (Moment, Option<Flight>) {
    if !hold.is_valid(at.stamp) || !hold.may_extend(at.now) {
        return (since, None); // at once, to tell of it
    }
    let warning = at.moment(hold.validity.warning());
    let ttl = hold.ttl();
    let Ok(extension) = hold.extend(context, ttl) else { return (at.now.plus(TICK), None) };
    hold.set_extending(true);
    let (target, until) = (extension.end(), at.now.plus(extension.allowed()));
    (warning, Some(Flight { id, extension, target, until }))
}

impl Hold {
    fn next_step(&mut self, context: &LeaseContext, at: Reading) -> NextStep {
        let Reading { now, stamp } = at;
        if !self.is_valid(stamp) {
            return NextStep::LookAt(Moment::NEVER);
        }
        if self.has_calmed() {
            return NextStep::LookAt(self.next_look(context, at));
        }
        let warning = at.moment(self.validity.warning());
        match self.is_extending() || !self.may_extend(now) {
            true => NextStep::LookAt(warning),
            false => NextStep::ExtendBy(warning),
        }
    }

    /// When to extend again after it has failed: a tenth of the TTL later, by chance up to half of
    /// that earlier.
    fn retry_at(&self, context: &LeaseContext, at: Reading) -> Moment {
        let pause = self.ttl() / 10;
        let pause = context.nodes.entropy().between(pause / 2, pause);
        at.now.plus(pause).min(at.moment(self.validity.warning()))
    }
}
