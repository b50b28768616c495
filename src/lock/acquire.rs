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

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::Sleep;

use super::claim::Claim;
use super::guard::LockGuard;
use super::inspect::{self, Inspection};
use super::key::Key;
use super::locker::Inner;
use super::retry::Retry;
use crate::clock::Moment;
use crate::error::{Effort, Error, Kind};
use crate::quorum::Verdict;
use crate::report::Outcome;

/// What to acquire, and how.
pub(crate) struct Order {
    pub(crate) locker: Arc<Inner>,
    pub(crate) key: Key,
    pub(crate) ttl: Duration,
    /// How long to wait for the lock; `None` is for ever.
    pub(crate) wait: Option<Duration>,
}

/// The future of an acquisition; see [`LockRequest`](crate::LockRequest).
///
/// # Cancel safety
///
/// Dropping it at any point leaves no lock behind: what was sent is released on every node, at once
/// and without waiting. A node that cannot be reached then is told when it is connected again, or
/// its key ends with the TTL.
#[must_use = "futures do nothing unless awaited"]
pub struct Acquire {
    order: Result<Order, Option<Error>>,
    step: Step,
    /// The clock at the first poll.
    started: Option<Moment>,
    tries: u32,
    retry: Retry,
    /// What the last try failed of, kept while the next is made.
    failure: Option<Error>,
}

#[expect(clippy::large_enum_variant, reason = "a box for the claim would cost an allocation")]
enum Step {
    Start,
    Asking(Claim),
    Looking(Looking),
    /// `holder`: how long the key that is in the way still lives, if known.
    Refused {
        holder: Option<Duration>,
    },
    Pausing(Pin<Box<Sleep>>),
}

type Looking = Pin<Box<dyn Future<Output = Inspection> + Send>>;

impl Acquire {
    pub(crate) fn new(order: Result<Order, Error>) -> Self {
        let options = order.as_ref().map(|order| order.locker.options.retry).unwrap_or_default();
        Self {
            order: order.map_err(Some),
            step: Step::Start,
            started: None,
            tries: 0,
            retry: Retry::new(options),
            failure: None,
        }
    }
}

impl Future for Acquire {
    type Output = Result<LockGuard, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let order = match &mut this.order {
            Ok(order) => order,
            Err(error) => return Poll::Ready(Err(error.take().unwrap_or_else(spent))),
        };
        let clock = order.locker.nodes.clock();
        let started = *this.started.get_or_insert_with(|| clock.now());
        loop {
            match &mut this.step {
                Step::Start => {
                    this.tries = this.tries.saturating_add(1);
                    let sent = if this.tries == 1 { started } else { clock.now() };
                    let claim = Claim::ask(&order.locker, order.key.clone(), order.ttl, sent)?;
                    this.step = Step::Asking(claim);
                }
                Step::Asking(claim) => {
                    let verdict = ready!(claim.poll_verdict(cx));
                    let Step::Asking(claim) = std::mem::replace(&mut this.step, Step::Start) else {
                        continue;
                    };
                    let failure = match guard_or_error(claim, verdict) {
                        Ok(guard) => return Poll::Ready(Ok(guard)),
                        Err(failure) => failure,
                    };
                    if !failure.is_retryable() {
                        return Poll::Ready(Err(failure));
                    }
                    this.step = order.after(&failure, this.tries, clock.now().since(started));
                    this.failure = Some(failure);
                }
                Step::Looking(looking) => {
                    let seen = ready!(looking.as_mut().poll(cx));
                    if let Some(what) = seen.foreign() {
                        let kind = Kind::Foreign { what: what.into() };
                        return Poll::Ready(Err(Error::new(kind).with_key(order.key.given())));
                    }
                    let holder = seen.holder().cloned();
                    let remaining = holder.as_ref().map(|holder| holder.remaining);
                    if let (Some(failure), Some(holder)) = (&mut this.failure, holder) {
                        failure.name_holder(holder);
                    }
                    this.step = Step::Refused { holder: remaining };
                }
                Step::Refused { holder } => {
                    let elapsed = clock.now().since(started);
                    if !clock.can_sleep() {
                        return Poll::Ready(Err(Error::no_runtime()));
                    }
                    if order.left(elapsed).is_zero() {
                        let effort = Effort { tries: this.tries, elapsed };
                        let failure = this.failure.take().unwrap_or_else(spent);
                        return Poll::Ready(Err(failure.with_effort(effort)));
                    }
                    this.step = order.pause(&mut this.retry, *holder, elapsed);
                }
                Step::Pausing(sleep) => {
                    ready!(sleep.as_mut().poll(cx));
                    this.step = Step::Start;
                }
            }
        }
    }
}

/// A future that has given its error away is polled again: a mistake of the caller's.
fn spent() -> Error {
    Error::misuse("this future has completed; it must not be polled again")
}

impl Order {
    /// How much longer the caller waits.
    fn left(&self, elapsed: Duration) -> Duration {
        self.wait.map_or(Duration::MAX, |wait| wait.saturating_sub(elapsed))
    }

    /// What follows a refusal. Who is in the way is asked before the first pause and at the end.
    fn after(&self, failure: &Error, tries: u32, elapsed: Duration) -> Step {
        let looks = failure.is_contended() && (tries == 1 || self.left(elapsed).is_zero());
        if looks {
            let looking = inspect::look(self.locker.clone(), self.key.clone());
            Step::Looking(Box::pin(looking))
        } else {
            Step::Refused { holder: None }
        }
    }

    fn pause(&self, retry: &mut Retry, holder: Option<Duration>, elapsed: Duration) -> Step {
        let entropy = self.locker.nodes.entropy();
        let draw = |low, high| entropy.between(low, high);
        let pause = retry.next(holder, self.left(elapsed), draw);
        let clock = self.locker.nodes.clock();
        Step::Pausing(clock.sleep_until(clock.now().plus(pause)))
    }
}

/// A guard, if the lock is held and time is left of it. The clock is read after the deciding reply.
/// Otherwise the claim is dropped, which releases what was granted.
pub(crate) fn guard_or_error(claim: Claim, verdict: Verdict) -> Result<LockGuard, Error> {
    let (lease, now) = (claim.lease(), claim.now());
    if verdict == Verdict::Won {
        if lease.is_valid(now) {
            return Ok(LockGuard::new(claim, lease));
        }
        let kind = Kind::TooSlow { ttl: claim.ttl(), elapsed: now.since(claim.sent()) };
        return Err(Error::new(kind).with_key(claim.key().given()).with_nodes(claim.report()));
    }
    let nodes = claim.report();
    let needed = claim.locker().nodes.majority();
    let count = |is: fn(&Outcome) -> bool| nodes.iter().filter(|node| is(&node.outcome)).count();
    let held = count(|outcome| *outcome == Outcome::Held);
    // So many refusals of either kind leave no majority, whatever the others say.
    let enough = nodes.len() - needed + 1;
    let contended = held >= enough || (held > 0 && count(Outcome::is_answer) >= needed);
    let kind = if contended {
        Kind::Contended { holder: None }
    } else if count(Outcome::is_authentication) >= enough {
        Kind::Authentication { needed }
    } else {
        Kind::Unavailable { needed }
    };
    Err(Error::new(kind).with_key(claim.key().given()).with_nodes(nodes))
}

impl fmt::Debug for Acquire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire").field("tries", &self.tries).finish_non_exhaustive()
    }
}
