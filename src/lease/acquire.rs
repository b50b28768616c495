//! Acquiring: try, and while the caller still waits, pause and try again.
//!
//! ```text
//!  Start ──another of this process comes first──▶ InLine ──its turn──▶ Start
//!    │                                                └─ was handed on ─▶ guard
//!    ├─▶ AskingOne, for several keys after a refusal ──granted──▶ Asking
//!    ├─▶ Queued or Searching, for slots ──chosen──▶ Asking
//!    └─▶ Asking ──won, and fenced if asked for, time left──▶ guard
//!          │ lost, or too slow (the claim is dropped, and with it undone)
//!          ├── not retryable ──▶ error
//!          ├── held by another ──▶ Looking ─┐
//!          └── otherwise ───────────────────┴─▶ Refused ──waited long enough──▶ error
//!                                                 ├─ no queue ─▶ Pausing ──▶ Start
//!                                                 └─▶ Queued ──all nodes were asked──▶ as above
//!                                                       └─ its node is of no use ─▶ the next one's
//! ```
//!
//! The try itself allocates nothing; asking one node first, looking and pausing do. What only
//! waiting, slots, and several keys need is not inlined: a first try of a plain lock costs fewer
//! instructions without it.

mod one_first;
mod queued;
mod slotted;

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
use super::queue::{self, HEARTBEAT, Queueing};
use super::retry::{Known, within};
use super::search::Found;
use super::turns::Gift;
use crate::clock::Moment;
use crate::error::Error;
use crate::quorum::Verdict;
use crate::report::Inspection;

/// An acquisition: the first try, and those that follow it.
pub(crate) struct Acquiring {
    spec: Result<AcquireSpec, Error>,
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
    queueing: Queueing,
}

#[expect(clippy::large_enum_variant, reason = "a box would cost each acquisition an allocation")]
enum Step {
    Start,
    /// Others of this process come first.
    InLine(InLine),
    Asking(Claim),
    /// One node is asked before the others. In a box, so that a step is no larger than its claim.
    AskingOne(Box<(Claim, usize)>),
    /// All nodes are looked at for free slots.
    Searching(Searching),
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
    /// Another process holds the lock. `drawn` is the pause where no node keeps a queue.
    Queued {
        queued: Queued,
        drawn: Duration,
    },
}

type InLine = Pin<Box<dyn Future<Output = in_line::Ended> + Send>>;
type Queued = Pin<Box<dyn Future<Output = Result<queue::Ended, Error>> + Send>>;
type Searching = Pin<Box<dyn Future<Output = Result<Found, Error>> + Send>>;
type Looking = Pin<Box<dyn Future<Output = Inspection> + Send>>;
/// Ends after the pause, or when the locker is shut down.
type Pausing = Pin<Box<dyn Future<Output = Cause> + Send>>;

impl Acquiring {
    /// Tries until the lock is acquired, or the wait that was asked for is over.
    #[inline]
    pub(crate) fn new(spec: Result<AcquireSpec, Error>) -> Self {
        let kind = spec.as_ref().map_or(in_line::Kind::Apart, AcquireSpec::order);
        Self { spec, tries: Tries::new(false, Order::new(kind)) }
    }

    /// Tries once. No observer is told of a failure: it is the answer that was asked for.
    pub(crate) fn once(spec: Result<AcquireSpec, Error>) -> Self {
        let kind = spec.as_ref().map_or(in_line::Kind::Apart, AcquireSpec::order_of_one_try);
        Self { spec, tries: Tries::new(true, Order::new(kind)) }
    }

    /// How many tries have begun.
    pub(crate) fn tries(&self) -> u32 {
        self.tries.count
    }

    /// What was asked for is undone, and the turn passed on: the next one's command goes behind the
    /// undo.
    fn end(&mut self) {
        // Before the readers that the undo wakes.
        self.tries.queueing.open_gate();
        self.tries.step = Step::Start;
        self.tries.queueing.leave();
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
            Err(error) => Err(std::mem::replace(error, spent())),
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
        Self {
            step: Step::Start,
            started: None,
            count: 0,
            is_once,
            failure: None,
            waiting: Waiting::NOT_YET,
            waiter: None,
            order,
            queueing: Queueing::NOT_YET,
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
                    let verdict = ready!(claim.poll_verdict(spec.fenced, cx));
                    self.decide(spec, verdict, started)
                }
                Step::AskingOne(asked) => {
                    let verdict = ready!(asked.0.election.poll_verdict(cx));
                    self.decide_one(spec, verdict, started)
                }
                Step::Searching(searching) => {
                    let found = ready!(searching.as_mut().poll(cx));
                    self.ask_for_found(spec, found, started)
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
                    self.step_out_of_queue(spec, ended, drawn, started)
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
            let holder = spec.own_holder();
            context.tell_waiting(&spec.resource, holder.as_ref(), now().since(started));
            let (leases, resource) = (spec.leases.clone(), spec.resource.clone());
            let standing = in_line::stand(leases, resource, ticket, spec.until(started));
            return self.wait(spec, Step::InLine(Box::pin(standing)));
        }
        if let Some(count) = spec.resource.slots_to_choose() {
            return self.begin_with_slots(spec, count, started);
        }
        if self.may_queue_first(spec, started) && spec.queues_first(now) {
            self.waiting.until = spec.until(started);
            let drawn = spec.draw(1).unwrap_or_default();
            if let Some(queued) = self.queue(spec, drawn, Some(started))? {
                return self.wait(spec, Step::Queued { queued, drawn });
            }
        }
        // The first try is made at once, unless it has waited for others.
        let is_first = self.count == 0 && self.waiter.is_none();
        let sent = if is_first { started } else { now() };
        self.count = self.count.saturating_add(1);
        (self.waiting.tried, self.queueing.was_refused) = (sent, false);
        if let Some(node) = self.one_to_ask_first(spec) {
            return self.ask_one_first(spec, node, sent);
        }
        self.step = Step::Asking(spec.ask(sent)?);
        Ok(None)
    }

    /// Whether this try may ask a queue before all nodes: the first one, and of a fair lock each,
    /// unless no node has a queue to offer, or it has waited long enough: then all nodes are asked,
    /// and it ends if they say no.
    fn may_queue_first(&mut self, spec: &AcquireSpec, started: Moment) -> bool {
        (self.count == 0 && !self.queueing.has_waited) || self.may_queue_again(spec, started)
    }

    #[inline(never)]
    fn may_queue_again(&mut self, spec: &AcquireSpec, started: Moment) -> bool {
        let has_found_none = std::mem::take(&mut self.queueing.has_found_none);
        let now = || spec.leases.context.nodes.clock().now();
        let may_again = spec.fair && !has_found_none && !self.queueing.has_kept();
        may_again && now() < spec.until(started)
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
        if spec.fenced || spec.fair {
            // It has no fence, and only the nodes can give one; and others may wait in the queue.
            drop(gift);
            return self.go_on(Step::Start);
        }
        let accepted = hand_on::accept(gift, &spec.resource, spec.ttl, at.stamp);
        let Some((mut claim, inherited)) = accepted else { return self.go_on(Step::Start) };
        claim.set_turn(self.order.take());
        let hold = HoldRef::inherit(&spec.leases, (claim, inherited), spec.extend, at)?;
        spec.tell_acquired(&hold, self.count, started);
        Ok(Some(hold))
    }

    /// The nodes have answered, or enough of them. Unless the lock is held, the claim is dropped,
    /// which releases what was granted.
    fn decide(
        &mut self,
        spec: &AcquireSpec,
        verdict: Result<Verdict, Error>,
        started: Moment,
    ) -> Done {
        let Step::Asking(claim) = &mut self.step else { return Ok(None) };
        if matches!(verdict, Ok(Verdict::Won)) {
            claim.set_turn(self.order.take());
        }
        let judged = spec.judge(claim, verdict, &mut self.waiting);
        let Step::Asking(claim) = std::mem::replace(&mut self.step, Step::Start) else {
            return Ok(None);
        };
        let failure = match judged {
            Ok(at) => {
                let hold = HoldRef::begin(&spec.leases, claim, spec.extend, at)?;
                spec.tell_acquired(&hold, self.count, started);
                return Ok(Some(hold));
            }
            Err(failure) => {
                // Of slots any other will do, so none of them is watched.
                let is_watched = spec.resource.slots_to_choose().is_none();
                let is_refused = self.queueing.was_refused && claim.resource.queued().is_some();
                let refused_by = || claim.refusing_node().filter(|_| is_watched);
                self.waiting.refused_by = is_refused.then(refused_by).flatten();
                if failure.is_contended() {
                    self.queueing.search.note_held(claim.resource.slot_numbers());
                }
                drop(claim);
                failure
            }
        };
        if self.waiting.take_repeat(&failure) || self.goes_on_searching(spec, &failure) {
            return Ok(None); // at once: the next step is to start again
        }
        self.fail(spec, failure, started)
    }

    /// The last try has failed: another follows, or none.
    fn fail(&mut self, spec: &AcquireSpec, failure: Error, started: Moment) -> Done {
        self.queueing.search.note_pause();
        if self.is_once {
            return Err(failure);
        }
        if !failure.is_retryable() {
            return self.give_up(spec, failure, started);
        }
        self.waiting.note(&failure, spec, started);
        self.order.learn(&spec.leases, failure.is_unavailable());
        let is_writer = spec.resource.primitive.holders.is_one();
        // The queue's node has granted it, so it cannot tell of those that have it on the others.
        let may_be_readers = self.queueing.was_refused && !self.queueing.has_met_readers;
        let after = spec.after(&failure, self.count, &self.waiting, is_writer && may_be_readers);
        self.failure = Some(failure);
        self.go_on(after)
    }

    /// It is known who is in the way.
    fn learn(
        &mut self,
        spec: &AcquireSpec,
        seen: &Inspection,
        drawn: Option<Duration>,
        started: Moment,
    ) -> Done {
        let is_writer = !spec.resource.primitive.holders.are_readers();
        self.queueing.has_met_readers |= is_writer && seen.are_readers_there();
        match spec.learn(seen, &self.waiting, &mut self.failure) {
            Ok(known) => self.go_on(Step::Refused { drawn, known }),
            Err(error) => self.give_up(spec, error, started),
        }
    }

    /// Whether the last try has found the lock held.
    fn failed_contended(&self) -> bool {
        self.failure.as_ref().is_some_and(Error::is_contended)
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
            context.tell_waiting(&spec.resource, failure.holder(), waited);
        }
        // What the queue has granted, and a majority refused, is asked for again within a
        // heartbeat: the last release may still be on its way.
        let drawn = if self.queueing.was_refused { drawn.min(HEARTBEAT) } else { drawn };
        if self.failed_contended() && spec.resource.slots_to_choose().is_none() {
            if let Some(queued) = self.queue(spec, drawn, None)? {
                return self.wait(spec, Step::Queued { queued, drawn });
            }
        }
        let pause = within(drawn, known, left);
        self.order.renew_for_pause(&spec.leases, now, now.plus(pause));
        if let Some(failure) = &self.failure {
            spec.tell_retrying(failure, self.count, pause);
        }
        let leases = spec.leases.clone();
        let may_be_cut = self.failed_contended() && spec.retry().is_open_ended();
        let watched = self.waiting.watched(&spec.resource).filter(|_| may_be_cut);
        let pausing: Pausing = match watched {
            Some(watched) => Box::pin(pause::watching(leases, watched, pause)),
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
    /// The step after a refusal. The holder is looked up when the lock is found held for the first
    /// time, at the end, and whenever it `looks`.
    fn after(&self, failure: &Error, tries: u32, waiting: &Waiting, looks: bool) -> Step {
        let drawn = self.draw(tries);
        let is_last = drawn.is_none() || waiting.until <= self.leases.context.nodes.clock().now();
        let may_look = self.resource.slots_to_choose().is_none();
        if may_look && (waiting.begins(failure) || failure.is_contended() && (is_last || looks)) {
            // The last look is for the error; an earlier one is only told to observers.
            let is_told = is_last || !self.leases.context.options.observers.is_empty();
            return self.look(waiting, is_told, drawn);
        }
        // No holder is known; the only hint is the quarantine.
        let refusing = failure.retry_after().filter(|_| !failure.is_contended());
        Step::Refused { drawn, known: Known { refusing, ..Known::default() } }
    }

    /// Looks up who is in the way. Slots have no single holder to look up.
    fn look(&self, waiting: &Waiting, names_own: bool, drawn: Option<Duration>) -> Step {
        if self.resource.slots_to_choose().is_some() {
            return Step::Refused { drawn, known: Known::default() };
        }
        let key = waiting.key.as_deref().or_else(|| self.resource.keys().first());
        let Some(key) = key.cloned() else { return Step::Start };
        let looking = inspect::look(self.leases.clone(), key, names_own, inspect::Extent::Holder);
        let looking = Box::pin(looking);
        Step::Looking { looking, drawn }
    }
}
