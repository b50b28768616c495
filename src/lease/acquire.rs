//! Acquiring: try, and while the caller still waits, pause and try again.
//!
//! ```text
//!          ┌────────────────────────────────────────────────────┐
//!          ▼                                                    │
//!  start ─▶ Asking ──won, time left──▶ guard                    │
//!             │ lost, or too slow (the claim is dropped, and with it undone)
//!             ├── not retryable ──▶ error                       │
//!             ├── held by another ──▶ Looking ─┐                │
//!             └── otherwise ───────────────────┴─▶ Refused ─▶ Pausing
//!                                                     └── waited long enough ──▶ error
//! ```
//!
//! The try itself allocates nothing; looking and pausing do.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::claim::Claim;
use super::hold_ref::HoldRef;
use super::inspect;
use super::key::{Key, Resource};
use super::leases::Leases;
use super::retry::{Known, draw, within};
use crate::clock::Moment;
use crate::error::{Effort, Error, Kind};
use crate::observe::Event;
use crate::options::{Extend, Retry};
use crate::quorum::Verdict;
use crate::report::{Inspection, Outcome};

/// What to acquire, and how.
pub(crate) struct AcquireSpec {
    pub(crate) leases: Arc<Leases>,
    pub(crate) resource: Resource,
    pub(crate) ttl: Duration,
    /// How long to wait for the lock; `None` is forever.
    pub(crate) wait: Option<Duration>,
    /// How much of that may pass without a quorum.
    pub(crate) unavailable_wait: Duration,
    pub(crate) retry: Retry,
    pub(crate) extend: Extend,
}

/// An acquisition: the first try, and those that follow it.
pub(crate) struct Acquiring {
    spec: Result<AcquireSpec, Option<Error>>,
    step: Step,
    /// The clock at the first poll.
    started: Option<Moment>,
    tries: u32,
    /// Whether a try that finds the lock held, or no quorum, is the last one.
    is_once: bool,
    /// What the last try failed of, kept while the next is made.
    failure: Option<Error>,
    waiting: Waiting,
}

/// How often an acquisition is sent again at once because nodes had forgotten its script, or had
/// never seen it. Once is enough unless others are in the same place.
const REPEATS_MAX: u32 = 3;

/// What the tries so far say about the next one: when it is made, whether at once, and until when.
struct Waiting {
    /// When the last try began.
    tried: Moment,
    /// When the tries began that have found no quorum, if the last one has not.
    unavailable: Option<Moment>,
    /// When the caller gives up, by what the last try failed of.
    until: Moment,
    /// How many tries have found the lock held.
    contended: u32,
    /// Of several keys, the one in whose way the last try has found another's value.
    key: Option<Box<Key>>,
    /// The try before that has found another key in the way.
    is_other_key: bool,
    /// A node did not know the script of the last try.
    lacks_script: bool,
    /// How many tries followed another at once because of that.
    repeats: u32,
}

impl Waiting {
    const NOT_YET: Self = Self {
        tried: Moment::NEVER,
        unavailable: None,
        until: Moment::LAST,
        contended: 0,
        key: None,
        is_other_key: false,
        lacks_script: false,
        repeats: 0,
    };

    /// The last try of a caller who began at `started` has failed.
    fn note(&mut self, failure: &Error, spec: &AcquireSpec, started: Moment) {
        self.contended += u32::from(failure.is_contended());
        let since = self.unavailable.unwrap_or(self.tried);
        let had_quorum = failure.is_contended() || failure.is_too_slow();
        self.unavailable = (!had_quorum).then_some(since);
        self.until = spec.wait.map_or(Moment::LAST, |wait| started.plus(wait));
        if let Some(since) = self.unavailable {
            self.until = self.until.min(since.plus(spec.unavailable_wait));
        }
    }

    /// Notes what the nodes say beside their votes: that one lacks the script, and of several keys
    /// which is in the way.
    fn note_votes(&mut self, claim: &Claim, spec: &AcquireSpec) {
        let (context, primitive) = (&spec.leases.context, spec.resource.primitive);
        self.lacks_script = context.note_scripts(primitive, &claim.election);
        if spec.resource.count() > 1 {
            let key = claim.key_in_the_way();
            self.is_other_key = self.key.as_ref().is_none_or(|last| last.full() != key.full());
            self.key = Some(Box::new(key.clone()));
        }
    }

    /// Takes one of the few immediate repeats, if the try failed because a node lacked the script:
    /// the next one brings it, or comes behind one that does.
    fn take_repeat(&mut self, failure: &Error) -> bool {
        let is_worth_it =
            self.lacks_script && self.repeats < REPEATS_MAX && failure.is_unavailable();
        self.repeats += u32::from(is_worth_it);
        is_worth_it
    }

    /// Whether the wait for a holder begins: the try before has not found the lock held, or has
    /// found another of its keys in the way.
    fn begins(&self, failure: &Error) -> bool {
        failure.is_contended() && (self.contended == 1 || self.is_other_key)
    }
}

#[expect(clippy::large_enum_variant, reason = "a box for the claim would cost an allocation")]
enum Step {
    Start,
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
}

type Looking = Pin<Box<dyn Future<Output = Inspection> + Send>>;
/// Ends after the pause, or when the locker is shut down.
type Pausing = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Acquiring {
    /// Tries until the lock is acquired, or the wait that was asked for is over.
    pub(crate) fn new(spec: Result<AcquireSpec, Error>) -> Self {
        Self {
            spec: spec.map_err(Some),
            step: Step::Start,
            started: None,
            tries: 0,
            is_once: false,
            failure: None,
            waiting: Waiting::NOT_YET,
        }
    }

    /// Tries once. No observer is told of a failure: it is the answer that was asked for.
    pub(crate) fn once(spec: Result<AcquireSpec, Error>) -> Self {
        Self { is_once: true, ..Self::new(spec) }
    }

    /// How many tries have begun.
    pub(crate) fn tries(&self) -> u32 {
        self.tries
    }
}

impl Future for Acquiring {
    type Output = Result<HoldRef, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let spec = match &mut this.spec {
            Ok(spec) => &*spec,
            Err(error) => return Poll::Ready(Err(error.take().unwrap_or_else(spent))),
        };
        let clock = spec.leases.context.nodes.clock();
        let started = *this.started.get_or_insert_with(|| clock.now());
        let give_up = |error, tries| Poll::Ready(Err(spec.give_up(error, tries, started)));
        loop {
            match &mut this.step {
                Step::Start => {
                    spec.leases.context.check_open()?;
                    this.tries = this.tries.saturating_add(1);
                    let sent = if this.tries == 1 { started } else { clock.now() };
                    (this.waiting.tried, this.step) = (sent, spec.ask(sent)?);
                }
                Step::Asking(claim) => {
                    let verdict = ready!(claim.election.poll_verdict(cx));
                    let Step::Asking(claim) = std::mem::replace(&mut this.step, Step::Start) else {
                        continue;
                    };
                    let failure = match spec.hold_or_error(claim, verdict, &mut this.waiting) {
                        Ok(hold) => {
                            spec.tell_acquired(&hold, this.tries, started);
                            return Poll::Ready(Ok(hold));
                        }
                        Err(failure) => failure,
                    };
                    if this.waiting.take_repeat(&failure) {
                        continue; // at once: the next step is to start again
                    }
                    if this.is_once {
                        return Poll::Ready(Err(failure));
                    }
                    if !failure.is_retryable() {
                        return give_up(failure, this.tries);
                    }
                    this.waiting.note(&failure, spec, started);
                    this.step = spec.after(&failure, this.tries, &this.waiting);
                    this.failure = Some(failure);
                }
                Step::Looking { looking, drawn } => {
                    let (seen, drawn) = (ready!(looking.as_mut().poll(cx)), *drawn);
                    match spec.learn(&seen, &this.waiting, &mut this.failure) {
                        Ok(known) => this.step = Step::Refused { drawn, known },
                        Err(error) => return give_up(error, this.tries),
                    }
                }
                Step::Refused { drawn, known } => {
                    spec.leases.context.check_can_sleep()?;
                    let now = clock.now();
                    let left = this.waiting.until.since(now);
                    let Some(drawn) = drawn.filter(|_| !left.is_zero()) else {
                        return give_up(this.failure.take().unwrap_or_else(spent), this.tries);
                    };
                    let pause = within(drawn, *known, left);
                    if let Some(failure) = &this.failure {
                        let waited = this.waiting.begins(failure).then(|| now.since(started));
                        spec.tell_retrying(failure, this.tries, waited, pause);
                    }
                    this.step = Step::Pausing(Box::pin(pausing(spec.leases.clone(), pause)));
                }
                Step::Pausing(sleep) => {
                    ready!(sleep.as_mut().poll(cx));
                    this.step = Step::Start;
                }
            }
        }
    }
}

/// A hold that no guard has yet: it ends when this is dropped, as when an observer panics.
struct Unguarded<'a>(&'a HoldRef);

impl Drop for Unguarded<'_> {
    fn drop(&mut self) {
        drop(self.0.end());
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

    /// A hold, if the lock is held and time is left of it. The clock is read after the deciding
    /// reply. Otherwise the claim is dropped, which releases what was granted.
    fn hold_or_error(
        &self,
        claim: Claim,
        verdict: Verdict,
        waiting: &mut Waiting,
    ) -> Result<HoldRef, Error> {
        waiting.note_votes(&claim, self);
        let context = &self.leases.context;
        let at = context.nodes.clock().read();
        if let Some(volatile) = &context.volatile {
            volatile.check(&claim.election)?;
        }
        if verdict == Verdict::Won {
            if at.stamp.is_before(claim.warning()) {
                return HoldRef::begin(&self.leases, claim, self.extend, at);
            }
            let elapsed = at.stamp.since(claim.sent);
            return Err(claim.error(Kind::TooSlow { ttl: self.ttl, elapsed }));
        }
        let nodes = claim.election.report();
        let needed = context.nodes.majority();
        let count =
            |is: fn(&Outcome) -> bool| nodes.iter().filter(|node| is(&node.outcome)).count();
        let is_held = count(|outcome| *outcome == Outcome::Held) > 0;
        // The verdict may be known before all have answered. Those that never do are told next
        // time.
        let may_answer = count(|outcome| outcome.is_answer() || *outcome == Outcome::Pending);
        let contended = is_held && may_answer >= needed;
        let (kind, key) = if contended {
            (Kind::Contended { holder: None }, claim.key_in_the_way().given())
        } else {
            (Kind::no_quorum(&nodes, needed), self.resource.given())
        };
        Err(Error::new(kind).with_key(key).with_nodes(nodes))
    }

    /// What was found in the way: how long it lives still, if it is a lock.
    fn learn(
        &self,
        seen: &Inspection,
        waiting: &Waiting,
        failure: &mut Option<Error>,
    ) -> Result<Known, Error> {
        if let Some(what) = seen.foreign() {
            let key = waiting.key.as_deref().map_or_else(|| self.resource.given(), Key::given);
            return Err(Error::new(Kind::Foreign { what: what.into() }).with_key(key));
        }
        let holder = seen.holder();
        if let (Some(failure), Some(holder)) = (failure, holder) {
            failure.name_holder(holder.clone());
        }
        Ok(Known { holder: holder.map(|holder| holder.remaining), ..Known::default() })
    }

    /// The step after a refusal. The holder is looked up when the lock is found held for the first
    /// time, and at the end.
    fn after(&self, failure: &Error, tries: u32, waiting: &Waiting) -> Step {
        let entropy = self.leases.context.nodes.entropy();
        let drawn = draw(&self.retry, tries, |low, high| entropy.between(low, high));
        let is_last = drawn.is_none() || waiting.until <= self.leases.context.nodes.clock().now();
        if waiting.begins(failure) || failure.is_contended() && is_last {
            // The last look is for the error; an earlier one is only told to observers.
            let is_told = is_last || !self.leases.context.options.observers.is_empty();
            let key = waiting.key.as_deref().or_else(|| self.resource.keys().first());
            let Some(key) = key.cloned() else { return Step::Start };
            let looking = inspect::look(self.leases.clone(), key, is_told);
            let looking = Box::pin(looking);
            return Step::Looking { looking, drawn };
        }
        // No holder is known; the only hint is the quarantine.
        let refusing = failure.retry_after().filter(|_| !failure.is_contended());
        Step::Refused { drawn, known: Known { refusing, ..Known::default() } }
    }

    /// Adds attempts and elapsed time; emits `GaveUp`.
    fn give_up(&self, error: Error, tries: u32, started: Moment) -> Error {
        let waited = self.leases.context.nodes.clock().now().since(started);
        let error = error.with_effort(Effort { tries, elapsed: waited });
        let lock = self.leases.context.subject(&self.resource);
        let event = || Event::GaveUp { lock, tries, waited, error: &error };
        self.leases.context.options.observers.tell(event);
        error
    }

    fn tell_acquired(&self, hold: &HoldRef, tries: u32, started: Moment) {
        let unguarded = Unguarded(hold);
        self.leases.context.options.observers.tell(|| Event::Acquired {
            lock: self.leases.context.subject(&self.resource),
            tries,
            waited: self.leases.context.nodes.clock().now().since(started),
            votes: hold.votes(),
        });
        std::mem::forget(unguarded);
    }

    /// `waited` is for the first try that has found the lock held.
    fn tell_retrying(&self, error: &Error, tries: u32, waited: Option<Duration>, pause: Duration) {
        let (lock, observers) =
            (self.leases.context.subject(&self.resource), &self.leases.context.options.observers);
        if let Some(waited) = waited {
            observers.tell(|| Event::Waiting { lock, holder: error.holder(), waited });
        }
        observers.tell(|| Event::Retrying { lock, tries, pause, error });
    }
}

async fn pausing(leases: Arc<Leases>, pause: Duration) {
    let context = &leases.context;
    let until = context.nodes.clock().now().plus(pause);
    // Without a driver no node can be asked either, as the next try will find.
    let Ok(mut timer) = context.nodes.sleep_until(until) else { return };
    let mut closed = pin!(context.closed());
    poll_fn(|cx| {
        if closed.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        Pin::new(&mut timer).poll(cx)
    })
    .await;
}
