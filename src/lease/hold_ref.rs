//! A guard's hold, as the guard and its views name it.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::sync::futures::Notified;

use super::claim::Claim;
use super::context::LeaseContext;
use super::extension::Extension;
use super::hold::{Ended, Hold, Inherited, Step};
use super::hold_id::HoldId;
use super::keeper;
use super::leases::Leases;
use super::news::{News, What};
use super::token::OwnerToken;
use super::validity::Validity;
use crate::clock::{Moment, Reading, Stamp};
use crate::error::{Error, Kind};
use crate::observe::Loss;
use crate::options::{Extend, whole_millis};
use crate::report::NodeReport;

/// A guard's hold, or a view of one. It does not end the hold when it is dropped; its guard does.
#[derive(Clone)]
pub(crate) struct HoldRef {
    leases: Arc<Leases>,
    id: HoldId,
}

impl HoldRef {
    /// Begins a hold with what an acquisition has won, unless the locker was shut down.
    pub(super) fn begin(
        leases: &Arc<Leases>,
        claim: Claim,
        extend: Extend,
        at: Reading,
    ) -> Result<Self, Error> {
        Self::publish(leases, claim, None, extend, at).unless_closed()
    }

    /// As [`begin`](Self::begin), with a lock that was handed on.
    pub(super) fn inherit(
        leases: &Arc<Leases>,
        (claim, inherited): (Claim, Inherited),
        extend: Extend,
        at: Reading,
    ) -> Result<Self, Error> {
        Self::publish(leases, claim, Some(inherited), extend, at).unless_closed()
    }

    fn unless_closed(self) -> Result<Self, Error> {
        let (hold, leases) = (&self, &self.leases);
        // Behind the publishing: a shutdown either finds this hold, or is found here.
        let open = leases.context.check_open();
        if open.is_err() {
            hold.end(&mut None);
        }
        open.map(|()| self)
    }

    /// Puts what an acquisition has won where a shutdown and the keeper find it.
    #[inline]
    pub(super) fn publish(
        leases: &Arc<Leases>,
        claim: Claim,
        inherited: Option<Inherited>,
        extend: Extend,
        at: Reading,
    ) -> Self {
        let turn = claim.turn();
        let (id, due) = leases.begin(claim, inherited, extend, at);
        if let Some(turn) = turn {
            leases.context.turns().note_hold(turn, id);
        }
        let woken = leases.keeping.note(due);
        if keeper::ensure(leases) || woken {
            // The holder may compute from here on.
            leases.context.nodes.hand_on();
        }
        Self { leases: leases.clone(), id }
    }

    pub(crate) fn context(&self) -> &Arc<LeaseContext> {
        &self.leases.context
    }

    /// Works on the state; `None` when the hold has ended.
    pub(super) fn with<R>(&self, work: impl FnOnce(&mut Hold) -> R) -> Option<R> {
        self.leases.with(self.id, work)
    }

    /// Looks at the claim; `None` when the hold has ended.
    pub(crate) fn claim<R>(&self, look: impl FnOnce(&Claim) -> R) -> Option<R> {
        self.with(|hold| hold.claim.as_ref().map(look)).flatten()
    }

    /// Reads for how long the lock is held, by the present time; `None` when it is not held. A hold
    /// that is found expired is marked as lost.
    fn validity<R>(&self, look: impl FnOnce(&Validity, Stamp) -> R) -> Option<R> {
        let now = self.leases.context.nodes.clock().stamp();
        self.with(|hold| hold.is_valid(now).then(|| look(&hold.validity, now))).flatten()
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.validity(|_, _| ()).is_some()
    }

    /// As [`HoldRef::remaining`], without its effect: a hold found invalid is not marked as lost.
    #[cfg(all(test, feature = "testing"))]
    pub(crate) fn looks_left(&self) -> Option<Duration> {
        let now = self.leases.context.nodes.clock().stamp();
        self.with(|hold| {
            let is_held = hold.loss().is_none() && hold.validity.is_valid(now);
            is_held.then(|| hold.validity.remaining(now))
        })?
    }

    /// As [`HoldRef::is_valid`], also without its effect.
    #[cfg(all(test, feature = "testing"))]
    pub(crate) fn looks_valid(&self) -> bool {
        let now = self.leases.context.nodes.clock().stamp();
        self.with(|hold| hold.loss().is_none() && now.is_before(hold.validity.warning()))
            .unwrap_or(false)
    }

    /// Why the lock is lost, without the effect that asking has: by its time, where none has
    /// looked.
    #[cfg(all(test, feature = "testing"))]
    pub(crate) fn looks_lost(&self) -> Option<Loss> {
        let by_time = || self.looks_left().is_none().then_some(Loss::Expired);
        self.with(|hold| hold.loss()).flatten().or_else(by_time)
    }

    pub(crate) fn remaining(&self) -> Duration {
        self.validity(Validity::remaining).unwrap_or_default()
    }

    /// How long until it counts as lost, a little before its end.
    pub(crate) fn until_warning(&self) -> Duration {
        self.validity(|validity, now| now.until(validity.warning())).unwrap_or_default()
    }

    pub(crate) fn deadline(&self) -> Instant {
        let clock = self.leases.context.nodes.clock();
        clock.instant(self.validity(|validity, _| validity.end()).unwrap_or_else(|| clock.stamp()))
    }

    /// Completes when the lock is lost, or the hold has ended, and says why.
    pub(crate) async fn lost(&self) -> Loss {
        let nodes = &self.leases.context.nodes;
        keeper::ensure(&self.leases);
        loop {
            let mut changed = pin!(self.changed());
            changed.as_mut().enable();
            let warning = self.validity(|validity, _| validity.warning());
            let Some(warning) = warning else { return self.loss() };
            let mut timer = nodes.sleep_until(nodes.clock().read().moment(warning)).ok();
            poll_fn(|cx| {
                let rang = timer.as_mut().is_some_and(|timer| Pin::new(timer).poll(cx).is_ready());
                if rang || changed.as_mut().poll(cx).is_ready() || !self.is_valid() {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })
            .await;
        }
    }

    /// Polls `work` until it is done, or the lock is lost: then `None`. The time is looked at
    /// first: after a stall the work shall not take one more step with a lock that is gone.
    pub(crate) async fn protect<W: Future>(&self, work: W) -> Option<W::Output> {
        let (mut work, mut lost) = (pin!(work), pin!(self.lost()));
        poll_fn(|cx| {
            if lost.as_mut().poll(cx).is_ready() || !self.is_valid() {
                return Poll::Ready(None);
            }
            work.as_mut().poll(cx).map(Some)
        })
        .await
    }

    /// What each node did with the acquisition, by now.
    pub(crate) fn votes(&self) -> Vec<NodeReport> {
        self.claim(|claim| claim.election.report()).unwrap_or_default()
    }

    /// As [`HoldRef::extend`], by any time that a caller gives.
    pub(crate) async fn extend_to(&self, ttl: Duration) -> Result<(), Error> {
        let ttl = whole_millis(ttl);
        let context = &self.leases.context;
        let admit = |claim: &Claim| context.admit_life(ttl, &claim.resource);
        self.claim(admit).unwrap_or_else(|| context.admit_ttl(ttl))?;
        self.extend(ttl).await
    }

    /// Extends the lock now, and by `ttl` from now on.
    pub(crate) async fn extend(&self, ttl: Duration) -> Result<(), Error> {
        let (context, lost) = (&*self.leases.context, || self.lost_error());
        let now = context.nodes.clock().stamp();
        keeper::ensure(&self.leases);
        let sent = self.with(|hold| hold.is_valid(now).then(|| hold.extend(context, ttl)));
        let mut extension = sent.flatten().ok_or_else(lost)??;
        let target = extension.end();
        loop {
            poll_fn(|cx| extension.poll_verdict(cx)).await;
            let step = self.with(|hold| hold.take_answers(&mut extension, target, context));
            match step.ok_or_else(lost)? {
                Step::Extended => break,
                Step::More(more) => {
                    // Before it is awaited: the end may be nearer, and this be dropped.
                    self.look_again();
                    extension = more;
                }
                Step::Failed => {
                    self.look_again();
                    self.tell_extension(&extension, false);
                    let nodes = extension.report();
                    let kind = Kind::no_quorum(&nodes, context.nodes.majority());
                    return Err(self.error(kind).with_nodes(nodes));
                }
                Step::Lost => {
                    self.look_again();
                    return Err(lost().with_nodes(extension.report()));
                }
            }
        }
        self.with(|hold| hold.set_ttl(ttl));
        self.look_again();
        self.tell_extension(&extension, true);
        Ok(())
    }

    /// How it is extended; `None` once it has ended.
    pub(crate) fn extends(&self) -> Option<Extend> {
        self.with(|hold| hold.extend)
    }

    pub(crate) fn leases(&self) -> &Arc<Leases> {
        &self.leases
    }

    /// Completes when the lease has become shorter, when it is known to be revoked, or when the
    /// hold has ended.
    pub(super) fn changed(&self) -> Notified<'_> {
        self.leases.changed(self.id)
    }

    /// How much of `min_hold`, counted from the acquisition, is left: in milliseconds, rounded up.
    pub(crate) fn left_of(&self, min_hold: Duration) -> Duration {
        let now = self.leases.context.nodes.clock().now();
        let held = self.with(|hold| now.since(hold.began)).unwrap_or_default();
        let left = min_hold.saturating_sub(held);
        whole_millis(left.saturating_add(Duration::from_nanos(999_999)))
    }

    /// Refuses a remaining life that is longer than any TTL of this locker may be.
    pub(crate) fn admit_life(&self, left: Duration) -> Result<(), Error> {
        self.leases.context.options.check_ttl(left.max(self.leases.context.options.ttl))
    }

    /// Has the keeper and the tasks that wait for the lease's end look again: it has changed.
    pub(super) fn look_again(&self) {
        let at = self.leases.context.nodes.clock().read();
        let due = self.with(|hold| match hold.is_valid(at.stamp) {
            true => hold.next_look(&self.leases.context, at),
            false => at.now,
        });
        self.leases.schedule(self.id, due.unwrap_or(Moment::NEVER));
        self.leases.notify(self.id.index);
    }

    /// Tells of an extension by hand; the keeper tells of its own.
    fn tell_extension(&self, extension: &Extension, succeeded: bool) {
        let context = &self.leases.context;
        let at = context.nodes.clock().read();
        let news = self.with(|hold| hold.extension_news(context, extension, at, succeeded));
        if let Some(news) = news.flatten() {
            news.tell(context);
        }
    }

    fn error(&self, kind: Kind) -> Error {
        Error::new(kind).with_key(&self.key())
    }

    /// Why the lock is lost, or was when the hold ended.
    fn loss(&self) -> Loss {
        let former = || self.leases.former_loss(self.id).unwrap_or(Loss::Released);
        self.with(|hold| hold.loss()).map_or_else(former, |loss| loss.unwrap_or(Loss::Expired))
    }

    /// The error of a lock that is lost.
    pub(crate) fn lost_error(&self) -> Error {
        let now = self.leases.context.nodes.clock().stamp();
        let reason = self.with(|hold| {
            hold.is_valid(now);
            hold.loss().unwrap_or(Loss::Expired)
        });
        self.error(Kind::Lost { reason })
    }

    /// The key as it was asked for.
    pub(crate) fn key(&self) -> Vec<u8> {
        self.claim(|claim| claim.resource.given().to_vec()).unwrap_or_default()
    }

    /// Each key as it was asked for.
    pub(crate) fn keys(&self) -> Vec<Vec<u8>> {
        self.claim(|claim| claim.resource.given_each()).unwrap_or_default()
    }

    #[cfg(feature = "tokio-util")]
    pub(crate) fn cancellation(&self) -> tokio_util::sync::CancellationToken {
        let ended = tokio_util::sync::CancellationToken::new;
        let now = self.leases.context.nodes.clock().stamp();
        let cancellation = |hold: &mut Hold| {
            hold.is_valid(now);
            hold.cancellation()
        };
        let found = self.with(cancellation);
        let (token, is_over, is_new) = found.unwrap_or_else(|| (ended(), true, false));
        if is_over {
            token.cancel();
        } else if is_new && !self.leases.context.nodes.clock().is_driven() {
            self.leases.set_alarm(self.id);
        }
        token
    }

    /// Makes a lock that was taken over ours, if it is held still. It is extended as asked from now
    /// on.
    pub(crate) fn own(&self, extend: Extend) -> Result<(), Error> {
        let at = self.leases.context.nodes.clock().read();
        let owned = self.with(|hold| {
            let is_valid = hold.is_valid(at.stamp);
            is_valid.then(|| hold.own(extend, at.now))
        });
        owned.flatten().ok_or_else(|| self.lost_error())?;
        self.look_again();
        Ok(())
    }

    /// Whether the lock is or was ours; `false` once the hold has ended.
    pub(crate) fn was_owned(&self) -> bool {
        self.claim(Claim::was_owned).unwrap_or(false)
    }

    /// What the lock's token is. From here on the lock is not handed on: its value is told.
    pub(crate) fn token(&self) -> OwnerToken {
        let token = |hold: &mut Hold| {
            hold.is_value_told = true;
            hold.claim.as_ref().map(Claim::token)
        };
        self.with(token).flatten().unwrap_or_default()
    }

    /// As [`HoldRef::token`], without its effect: the lock may still be handed on.
    #[cfg(all(test, feature = "testing"))]
    pub(crate) fn looks_token(&self) -> OwnerToken {
        self.with(|hold| hold.claim.as_ref().map(Claim::token)).flatten().unwrap_or_default()
    }

    /// Ends the hold: its claim is the caller's, and dropping it tells the nodes. `None`: it has
    /// ended before.
    #[inline]
    pub(crate) fn end(&self, claim: &mut Option<Claim>) -> Option<Ended> {
        let ended = self.leases.end(self.id, claim)?;
        self.tell_untold(&ended, claim);
        Some(ended)
    }

    /// Whether this locker hands its locks on at all.
    pub(crate) fn may_be_handed_on(&self) -> bool {
        !self.leases.context.options.local_handover.is_zero()
    }

    /// As [`end`](Self::end), for one who hands the lock on where that may be: with what the next
    /// hold goes on with.
    pub(crate) fn part(&self, claim: &mut Option<Claim>) -> Option<(Ended, Option<Inherited>)> {
        let budget = self.leases.context.options.local_handover;
        let at = self.leases.context.nodes.clock().read();
        let mut inherited = None;
        let look = |hold: &mut Hold| inherited = hold.inheritance(at, budget);
        let ended = self.leases.end_with(self.id, claim, look)?;
        self.tell_untold(&ended, claim);
        Some((ended, inherited))
    }

    fn tell_untold(&self, ended: &Ended, claim: &Option<Claim>) {
        if let Some((reason, claim)) = ended.untold.zip(claim.as_ref()) {
            let held = self.leases.context.nodes.clock().now().since(ended.began);
            let what = What::Lost { reason, stalled: None };
            News { resource: claim.resource.clone(), held, what }.tell(&self.leases.context);
        }
    }
}
