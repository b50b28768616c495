//! Acquiring: try, and while the caller still waits, pause and try again.
//!
//! ```text
//!  Start ──another of this process comes first──▶ InLine ──its turn──▶ Start
//!    │
//!    └─▶ Asking ──won, time left──▶ guard
//!          │ lost, or too slow (the claim is dropped, and with it undone)
//!          ├── not retryable ──▶ error
//!          ├── held by another ──▶ Looking ─┐
//!          └── otherwise ───────────────────┴─▶ Refused ──▶ Pausing ──▶ Start
//!                                                  └── waited long enough ──▶ error
//! ```
//!
//! The try itself allocates nothing; looking and pausing do.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::acquire_spec::{AcquireSpec, Waiting};
use super::claim::Claim;
use super::counters::{Cause, Waiter};
use super::hand_on;
use super::hold_ref::HoldRef;
use super::in_line::{self, Order};
use super::inspect;
use super::pause;
use super::queue::{self, BEAT, Place};
use super::retry::{Known, within};
use super::turns::Gift;
use crate::clock::Moment;
use crate::error::Error;
use crate::quorum::Verdict;
use crate::report::Inspection;

/// An acquisition: the first try, and those that follow it.
pub(crate) struct Acquiring {
    spec: Result<AcquireSpec, Option<Error>>,
    tries: Tries,
}

/// What has been tried so far, and what is done next.
struct Tries {
    step: Step,
    /// The clock at the first poll.
    started: Option<Moment>,
    /// How many tries have begun.
    count: u32,
    /// Whether a try that finds the lock held, or no quorum, is the last one.
    is_once: bool,
    /// What the last try failed of, kept while the next is made.
    failure: Option<Error>,
    waiting: Waiting,
    /// While it waits, and as soon as it has.
    waiter: Option<Waiter>,
    order: Order,
    /// Its place in the queue of other processes, while all nodes are asked past that.
    place: Option<Place>,
    /// How many of the nodes that might keep the queue are of no use.
    beyond: usize,
    /// The last try was made in turn: where that has failed, others hold the key though the queue
    /// does not know it.
    was_in_turn: bool,
    /// How often the others were asked again then.
    insisted: u32,
}

/// How often others are asked again that have refused what the node with the queue has granted, and
/// after how long for the first time: then twice as long, and so on. Timers have this grain.
const INSISTS_MAX: u32 = 3;
const INSISTS_AFTER: Duration = Duration::from_millis(1);

enum Step {
    Start,
    /// Others of this process come first.
    InLine(InLine),
    Asking(Claim),
    /// `drawn` is the pause that the retry policy wants; without one it gives up.
    Looking {
        looking: Looking,
        drawn: Option<Duration>,
    },
    Refused {
        drawn: Option<Duration>,
        known: Known,
    },
    Pausing(Pausing),
    /// The node that keeps the queue has granted, and too few others, which are asked again.
    Insisting(Claim, Pausing),
    /// Another process holds the lock. `drawn` is the pause where no node keeps a queue.
    Queued {
        queued: Queued,
        drawn: Duration,
    },
}

type InLine = Pin<Box<dyn Future<Output = in_line::Ended> + Send>>;
type Queued = Pin<Box<dyn Future<Output = Result<queue::Ended, Error>> + Send>>;
type Looking = Pin<Box<dyn Future<Output = Inspection> + Send>>;
/// Ends after the pause, or when the locker is shut down.
type Pausing = Pin<Box<dyn Future<Output = Cause> + Send>>;

impl Acquiring {
    /// Tries until the lock is acquired, or the wait that was asked for is over.
    pub(crate) fn new(spec: Result<AcquireSpec, Error>) -> Self {
        let kind = spec.as_ref().map_or(in_line::Kind::Apart, AcquireSpec::order);
        Self { spec: spec.map_err(Some), tries: Tries::new(false, Order::new(kind)) }
    }

    /// Tries once. No observer is told of a failure: it is the answer that was asked for.
    pub(crate) fn once(spec: Result<AcquireSpec, Error>) -> Self {
        let kind = spec.as_ref().map_or(in_line::Kind::Apart, AcquireSpec::order_of_one_try);
        Self { spec: spec.map_err(Some), tries: Tries::new(true, Order::new(kind)) }
    }

    /// How many tries have begun.
    pub(crate) fn tries(&self) -> u32 {
        self.tries.count
    }

    /// What was asked for is undone, and the turn passed on: the next one's command goes behind the
    /// undo.
    fn end(&mut self) {
        self.tries.step = Step::Start;
        self.tries.place = None;
        if let Some(mut waiter) = self.tries.waiter.take() {
            waiter.tries = self.tries.count;
        }
        if let Ok(spec) = &self.spec {
            self.tries.order.pass(&spec.leases);
        }
    }
}

impl Future for Acquiring {
    type Output = Result<HoldRef, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let ended = match &mut this.spec {
            Ok(spec) => ready!(this.tries.poll(spec, cx)),
            Err(error) => Err(error.take().unwrap_or_else(spent)),
        };
        this.end();
        Poll::Ready(ended)
    }
}

impl Drop for Acquiring {
    fn drop(&mut self) {
        self.end();
    }
}

/// What a step has come to: a hold, or nothing yet, and another step follows.
type Done = Result<Option<HoldRef>, Error>;

impl Tries {
    fn new(is_once: bool, order: Order) -> Self {
        let (waiting, failure) = (Waiting::NOT_YET, None);
        let (step, place) = (Step::Start, None);
        let (started, count, beyond) = (None, 0, 0);
        let (was_in_turn, insisted) = (false, 0);
        Self {
            step,
            started,
            count,
            is_once,
            failure,
            waiting,
            waiter: None,
            order,
            place,
            beyond,
            was_in_turn,
            insisted,
        }
    }

    fn poll(&mut self, spec: &AcquireSpec, cx: &mut Context<'_>) -> Poll<Result<HoldRef, Error>> {
        let clock = spec.leases.context.nodes.clock();
        let started = *self.started.get_or_insert_with(|| clock.now());
        loop {
            let done = match &mut self.step {
                Step::Start => self.begin(spec, started),
                Step::InLine(standing) => {
                    let ended = ready!(standing.as_mut().poll(cx));
                    self.step_out_of_line(spec, ended, started)
                }
                Step::Asking(claim) => {
                    let verdict = ready!(claim.election.poll_verdict(cx));
                    self.decide(spec, verdict, started)
                }
                Step::Looking { looking, drawn } => {
                    let (seen, drawn) = (ready!(looking.as_mut().poll(cx)), *drawn);
                    self.learn(spec, &seen, drawn, started)
                }
                Step::Refused { drawn, known } => {
                    let (drawn, known) = (*drawn, *known);
                    self.pause(spec, drawn, known, started)
                }
                Step::Queued { queued, drawn } => {
                    let (ended, drawn) = (ready!(queued.as_mut().poll(cx)), *drawn);
                    self.step_out_of_queue(spec, ended, drawn)
                }
                Step::Insisting(_, sleep) => {
                    ready!(sleep.as_mut().poll(cx));
                    self.insist(spec)
                }
                Step::Pausing(sleep) => {
                    let cause = ready!(sleep.as_mut().poll(cx));
                    spec.leases.context.counters.note(cause);
                    let is_cut = matches!(cause, Cause::Changed);
                    self.waiting.cuts = if is_cut { self.waiting.cuts + 1 } else { 0 };
                    self.go_on(Step::Start)
                }
            };
            if let Some(hold) = done? {
                return Poll::Ready(Ok(hold));
            }
        }
    }

    fn go_on(&mut self, step: Step) -> Done {
        self.step = step;
        Ok(None)
    }

    /// As [`go_on`](Self::go_on): it waits, from now on if it has not.
    fn wait(&mut self, spec: &AcquireSpec, step: Step) -> Done {
        let (counters, count) = (&spec.leases.context.counters, self.count);
        self.waiter.get_or_insert_with(|| counters.wait(count));
        self.go_on(step)
    }

    fn give_up(&self, spec: &AcquireSpec, error: Error, started: Moment) -> Done {
        Err(spec.give_up(error, self.count, started))
    }

    /// Asks the nodes, or gets in line.
    fn begin(&mut self, spec: &AcquireSpec, started: Moment) -> Done {
        let context = &spec.leases.context;
        context.check_open()?;
        let now = || context.nodes.clock().now();
        if let Some(ticket) = self.order.line_up(&spec.leases, &spec.resource, now) {
            context.check_can_sleep()?;
            let until = spec.wait.map_or(Moment::LAST, |wait| started.plus(wait));
            spec.tell_in_line(now().since(started));
            let standing = in_line::stand(spec.leases.clone(), ticket, until);
            return self.wait(spec, Step::InLine(Box::pin(standing)));
        }
        if self.count == 0 && self.beyond == 0 && spec.was_contended(now) {
            self.waiting.until = spec.wait.map_or(Moment::LAST, |wait| started.plus(wait));
            self.failure = Some(spec.contended());
            let drawn = spec.draw(1).unwrap_or_default();
            if let Some(queued) = self.queue(spec, drawn)? {
                return self.wait(spec, Step::Queued { queued, drawn });
            }
        }
        // The first try is made at once, unless others came first.
        let is_first = self.count == 0 && self.waiting.tried == Moment::NEVER;
        let sent = if is_first { started } else { now() };
        self.count = self.count.saturating_add(1);
        self.waiting.tried = sent;
        let asked = spec.ask(sent)?;
        self.go_on(asked)
    }

    /// It is its turn, or it may try without one, or has waited long enough.
    fn step_out_of_line(
        &mut self,
        spec: &AcquireSpec,
        ended: in_line::Ended,
        started: Moment,
    ) -> Done {
        self.waiting.tried = spec.leases.context.nodes.clock().now();
        match ended {
            in_line::Ended::Turn(turn) => {
                self.order.give(turn);
                if let Some(gift) = spec.leases.context.turns().take_gift(turn) {
                    return self.inherit(spec, gift, started);
                }
            }
            in_line::Ended::LetGo => self.order.see_for_itself(),
            in_line::Ended::Over => {
                spec.leases.context.check_open()?;
                self.failure = Some(spec.contended());
                return self.go_on(spec.look(&self.waiting, true, None));
            }
        }
        self.go_on(Step::Start)
    }

    /// The lock was handed on, if it is the one that is wanted.
    fn inherit(&mut self, spec: &AcquireSpec, gift: Gift, started: Moment) -> Done {
        let at = spec.leases.context.nodes.clock().read();
        let accepted = hand_on::accept(gift, &spec.resource, spec.ttl, at.stamp);
        let Some((mut claim, inherited)) = accepted else { return self.go_on(Step::Start) };
        claim.set_turn(self.order.take());
        let hold = HoldRef::inherit(&spec.leases, (claim, inherited), spec.extend, at)?;
        spec.tell_acquired(&hold, self.count, started);
        Ok(Some(hold))
    }

    /// The nodes have answered, or enough of them.
    fn decide(&mut self, spec: &AcquireSpec, verdict: Verdict, started: Moment) -> Done {
        let Step::Asking(mut claim) = std::mem::replace(&mut self.step, Step::Start) else {
            return Ok(None);
        };
        if verdict == Verdict::Won {
            claim.set_turn(self.order.take());
        }
        if verdict != Verdict::Won && self.may_insist(spec, &claim) {
            self.insisted += 1;
            let pause = INSISTS_AFTER.saturating_mul(1 << (self.insisted - 1));
            let sleep = Box::pin(pause::plain(spec.leases.clone(), pause));
            return self.go_on(Step::Insisting(claim, sleep));
        }
        let failure = match spec.hold_or_error(claim, verdict, &mut self.waiting) {
            Ok(hold) => {
                spec.tell_acquired(&hold, self.count, started);
                return Ok(Some(hold));
            }
            Err(failure) => failure,
        };
        if self.waiting.take_repeat(&failure) {
            return Ok(None); // at once: the next step is to start again
        }
        if self.is_once {
            return Err(failure);
        }
        if !failure.is_retryable() {
            return self.give_up(spec, failure, started);
        }
        self.waiting.note(&failure, spec, started);
        self.order.learn(&spec.leases, failure.is_unavailable());
        let after = spec.after(&failure, self.count, &self.waiting);
        self.failure = Some(failure);
        self.go_on(after)
    }

    /// Whether the others are asked again that refused what the node with the queue has granted:
    /// who let go of the lock there has done so, or does so now, everywhere.
    fn may_insist(&self, spec: &AcquireSpec, claim: &Claim) -> bool {
        let is_time_left = || spec.leases.context.nodes.clock().now() < self.waiting.until;
        claim.is_granted_in_turn() && self.insisted < INSISTS_MAX && is_time_left()
    }

    fn insist(&mut self, spec: &AcquireSpec) -> Done {
        let Step::Insisting(mut claim, _) = std::mem::replace(&mut self.step, Step::Start) else {
            return Ok(None);
        };
        spec.leases.context.check_not_closed()?;
        claim.ask_others_again(spec.leases.context.nodes.clock().now())?;
        self.go_on(Step::Asking(claim))
    }

    /// It is known who is in the way.
    fn learn(
        &mut self,
        spec: &AcquireSpec,
        seen: &Inspection,
        drawn: Option<Duration>,
        started: Moment,
    ) -> Done {
        match spec.learn(seen, &self.waiting, &mut self.failure) {
            Ok(known) => self.go_on(Step::Refused { drawn, known }),
            Err(error) => self.give_up(spec, error, started),
        }
    }

    /// Whether the last try has found the lock held.
    fn failed_contended(&self) -> bool {
        self.failure.as_ref().is_some_and(Error::is_contended)
    }

    /// Where another process holds the lock: a place in the queue, if a node keeps one.
    fn queue(&mut self, spec: &AcquireSpec, drawn: Duration) -> Result<Option<Queued>, Error> {
        let may_queue = self.failed_contended() && !std::mem::take(&mut self.was_in_turn);
        let Some(turn) = self.order.turn().filter(|_| may_queue) else { return Ok(None) };
        let place = match self.place.take() {
            None => Place::new(&spec.leases, &spec.resource, spec.ttl, self.beyond)?,
            kept => kept,
        };
        let Some(place) = place else {
            self.beyond = 0; // after a pause all may be of use again
            return Ok(None);
        };
        let queued = queue::wait(spec.leases.clone(), place, turn, self.waiting.until, drawn);
        Ok(Some(Box::pin(queued)))
    }

    /// The nodes have been asked in turn, or are to be asked by themselves, or it has waited long
    /// enough.
    fn step_out_of_queue(
        &mut self,
        spec: &AcquireSpec,
        ended: Result<queue::Ended, Error>,
        drawn: Duration,
    ) -> Done {
        match ended? {
            queue::Ended::Asked(claim) => {
                self.count = self.count.saturating_add(1);
                (self.was_in_turn, self.insisted) = (true, 0);
                self.waiting.tried = spec.leases.context.nodes.clock().now();
                return self.go_on(Step::Asking(claim));
            }
            queue::Ended::Past(place) => self.place = Some(place),
            queue::Ended::Overtaken => {}
            queue::Ended::NoQueue => {
                self.beyond += 1;
                let left = self.waiting.until.since(spec.leases.context.nodes.clock().now());
                let pause = within(drawn.min(BEAT), Known::default(), left);
                return self
                    .go_on(Step::Pausing(Box::pin(pause::plain(spec.leases.clone(), pause))));
            }
            queue::Ended::Over => {
                spec.leases.context.check_open()?;
                return self.go_on(spec.look(&self.waiting, true, None));
            }
        }
        self.go_on(Step::Start)
    }

    /// Pauses, or gives up.
    fn pause(
        &mut self,
        spec: &AcquireSpec,
        drawn: Option<Duration>,
        known: Known,
        started: Moment,
    ) -> Done {
        let context = &spec.leases.context;
        context.check_can_sleep()?;
        let now = context.nodes.clock().now();
        let left = self.waiting.until.since(now);
        let Some(drawn) = drawn.filter(|_| !left.is_zero()) else {
            let failure = self.failure.take().unwrap_or_else(spent);
            return self.give_up(spec, failure, started);
        };
        let waited = |failure| self.waiting.begins(failure).then(|| now.since(started));
        if let Some((failure, waited)) =
            self.failure.as_ref().and_then(|it| Some((it, waited(it)?)))
        {
            spec.tell_waiting(failure, waited);
        }
        // Who was called may find that the others let go later: that is no matter of the policy.
        let drawn = if self.was_in_turn { drawn.min(BEAT) } else { drawn };
        if let Some(queued) = self.queue(spec, drawn)? {
            return self.wait(spec, Step::Queued { queued, drawn });
        }
        let pause = within(drawn, known, left);
        self.order.rest(&spec.leases, now, now.plus(pause));
        if let Some(failure) = &self.failure {
            spec.tell_retrying(failure, self.count, pause);
        }
        let leases = spec.leases.clone();
        let may_be_cut = self.failed_contended() && spec.retry.is_open_ended();
        let watched = self.waiting.watched().filter(|_| may_be_cut);
        let pausing: Pausing = match watched {
            Some(key) => Box::pin(pause::watching(leases, key, pause)),
            None => Box::pin(pause::plain(leases, pause)),
        };
        self.wait(spec, Step::Pausing(pausing))
    }
}

/// A future that has given its error away is polled again: a mistake of the caller's.
fn spent() -> Error {
    Error::misuse("this future has completed; it must not be polled again")
}

impl AcquireSpec {
    fn ask(&self, sent: Moment) -> Result<Step, Error> {
        let (context, resource) = (&self.leases.context, self.resource.clone());
        Claim::ask(context, resource, None, self.ttl, sent).map(Step::Asking)
    }

    /// The step after a refusal. The holder is looked up when the lock is found held for the first
    /// time, and at the end.
    fn after(&self, failure: &Error, tries: u32, waiting: &Waiting) -> Step {
        let drawn = self.draw(tries);
        let is_last = drawn.is_none() || waiting.until <= self.leases.context.nodes.clock().now();
        if waiting.begins(failure) || failure.is_contended() && is_last {
            // The last look is for the error; an earlier one is only told to observers.
            let is_told = is_last || !self.leases.context.options.observers.is_empty();
            return self.look(waiting, is_told, drawn);
        }
        // No holder is known; the only hint is the quarantine.
        let refusing = failure.retry_after().filter(|_| !failure.is_contended());
        Step::Refused { drawn, known: Known { refusing, ..Known::default() } }
    }

    /// Looks up who is in the way.
    fn look(&self, waiting: &Waiting, names_own: bool, drawn: Option<Duration>) -> Step {
        let key = waiting.key.as_deref().or_else(|| self.resource.keys().first());
        let Some(key) = key.cloned() else { return Step::Start };
        let looking = Box::pin(inspect::look(self.leases.clone(), key, names_own));
        Step::Looking { looking, drawn }
    }
}
