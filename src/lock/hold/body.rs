//! The state of one hold, and how answers change it.

use std::time::Duration;

use super::super::claim::Ownership;
use super::super::extension::Extension;
use super::super::lease::Lease;
use super::super::locker::LeaseContext;
use crate::clock::{Moment, Reading, Stamp, nanoseconds};
use crate::error::{Error, Kind};
use crate::observe::Loss;
use crate::options::Extend;
use crate::weak::{self, Weakness::*};

/// The state of one hold.
pub(in crate::lock) struct Body {
    pub(super) generation: u32,
    pub(in crate::lock) ownership: Option<Ownership>,
    pub(in crate::lock) lease: Lease,
    pub(in crate::lock) extend: Extend,
    /// When it was acquired.
    pub(in crate::lock) began: Moment,
    /// Why the lock is lost, once it is. Set once, and never taken back.
    lost: Option<Loss>,
    /// Why the hold before this one had been lost when it ended.
    pub(super) former_loss: Option<Loss>,
    /// The waiters for the loss have been woken, and the tokens cancelled.
    signalled: bool,
    /// The observers have been told of the loss.
    pub(in crate::lock) observed: bool,
    /// The acquisition's late votes have been entered.
    entered: bool,
    /// An extension of the keeper's is on its way.
    pub(in crate::lock) extending: bool,
    /// That it was held for too long has been told.
    pub(in crate::lock) overlong: bool,
    /// How many looks in a row were planned soon, because another adoption was met.
    hurries: u32,
    #[cfg(feature = "tokio-util")]
    token: Option<tokio_util::sync::CancellationToken>,
    /// When the alarm looks at it next, if it has a token that the alarm is to cancel.
    #[cfg(feature = "tokio-util")]
    pub(super) alarm: Option<Moment>,
    /// By whose clock it does.
    #[cfg(feature = "tokio-util")]
    pub(super) runtime: Option<tokio::runtime::Handle>,
}

/// How often the nodes are asked again soon where another adoption was met, before the pauses grow.
const HURRIES: u32 = 8;

/// What follows the answers to an extension.
pub(in crate::lock) enum Step {
    /// The lock is held for as long as was asked for.
    Extended,
    /// Not yet: this was sent behind it.
    More(Extension),
    /// The lock is held, but not for as long as was asked for.
    Failed,
    /// The lock is lost.
    Lost,
}

impl Body {
    pub(super) fn new(lease: Lease) -> Self {
        Self {
            generation: 0,
            ownership: None,
            lease,
            extend: Extend::Off,
            began: Moment::NEVER,
            lost: None,
            former_loss: None,
            signalled: false,
            observed: false,
            entered: false,
            extending: false,
            overlong: false,
            hurries: 0,
            #[cfg(feature = "tokio-util")]
            token: None,
            #[cfg(feature = "tokio-util")]
            alarm: None,
            #[cfg(feature = "tokio-util")]
            runtime: None,
        }
    }

    /// The place holds what an acquisition has won.
    pub(super) fn begin(
        &mut self,
        ownership: Option<Ownership>,
        extend: Extend,
        now: Moment,
        locker: &LeaseContext,
    ) {
        self.ownership = ownership;
        (self.extend, self.began, self.lost) = (extend, now, None);
        (self.signalled, self.observed) = (false, false);
        (self.extending, self.overlong, self.hurries) = (false, false, 0);
        self.lease.clear();
        self.lease.set_margin(locker.margin(self.ttl()), Stamp::PAST);
        self.entered = false;
        self.enter_grants(locker);
    }

    /// A lock that was taken over is ours from `now` on.
    pub(super) fn own(&mut self, extend: Extend, now: Moment, locker: &LeaseContext) {
        (self.extend, self.began) = (extend, now);
        if let Some(ownership) = &mut self.ownership {
            ownership.own(locker);
        }
    }

    /// The place is free: what is left of the hold goes to its ender.
    pub(super) fn end(&mut self) -> Option<(Ownership, Signal, Option<Loss>)> {
        let ownership = self.ownership.take()?;
        let untold = self.lost.filter(|_| !self.observed && ownership.is_owned());
        let left = (ownership, self.signal(), untold);
        self.former_loss = self.lost;
        self.generation = self.generation.wrapping_add(1);
        #[cfg(feature = "tokio-util")]
        {
            (self.token, self.alarm, self.runtime) = (None, None, None);
        }
        Some(left)
    }

    /// Whether the lock is held at `now`; once it is not, it never is again.
    ///
    /// This is the one place that finds a loss by the clock, and it does so a margin before the
    /// lease ends: then a timer that comes late still tells of it in time. A guard, a token and
    /// those who wait for the loss all go by it, so they say the same at each instant.
    pub(in crate::lock) fn is_valid(&mut self, now: Stamp) -> bool {
        if self.lost.is_none() && !now.is_before(self.lease.warning()) {
            self.lost = Some(if self.lease.is_gone() { Loss::Gone } else { Loss::Expired });
        }
        self.lost.is_none()
    }

    /// Why the lock is lost, if that has been found.
    pub(in crate::lock) fn loss(&self) -> Option<Loss> {
        self.lost
    }

    /// The lock is taken from its holder.
    pub(in crate::lock) fn lose(&mut self, why: Loss) {
        self.lost.get_or_insert(why);
    }

    /// Sends an extension.
    pub(in crate::lock) fn extend(
        &mut self,
        locker: &LeaseContext,
        ttl: Duration,
    ) -> Result<Extension, Error> {
        if !std::mem::replace(&mut self.entered, true) {
            // By the first extension all have granted that ever will in time, and its answers are
            // the newer ones.
            self.enter_grants(locker);
        }
        let Some(ownership) = &self.ownership else {
            return Err(Error::new(Kind::Lost { reason: self.lost }));
        };
        Extension::send(locker, ownership, ttl)
    }

    /// Enters which nodes have granted the acquisition by now.
    fn enter_grants(&mut self, locker: &LeaseContext) {
        let Some(ownership) = &self.ownership else { return };
        let end = ownership.end_of(ownership.sent, locker);
        self.lease.grant(ownership.election.granted(), ownership.sent, end);
    }

    /// Enters what an extension has brought, unless the lock was lost before, and says what follows
    /// if it was to reach `target`.
    pub(in crate::lock) fn take_answers(
        &mut self,
        extension: &mut Extension,
        target: Stamp,
        locker: &LeaseContext,
    ) -> Step {
        let now = locker.nodes.clock().stamp();
        let is_over = self.lost == Some(Loss::Expired) && now.is_before(self.lease.end());
        if weak::is(LossTakenBack) && is_over {
            extension.apply(&mut self.lease, locker);
            self.lost = None;
        }
        if self.is_valid(now) {
            extension.apply(&mut self.lease, locker);
        }
        if !self.is_valid(now) {
            return Step::Lost;
        }
        if self.lease.end().reaches(target) {
            return Step::Extended;
        }
        let ownership = self.ownership.as_ref();
        ownership
            .and_then(|ownership| extension.rescript(locker, ownership))
            .map_or(Step::Failed, Step::More)
    }

    /// Enters what came in behind an extension's verdict, and says what was sent behind that: the
    /// whole script to nodes that had forgotten it, and the key to nodes that had lost it.
    pub(in crate::lock) fn gather(
        &mut self,
        extension: &mut Extension,
        locker: &LeaseContext,
    ) -> [Option<Extension>; 2] {
        let now = locker.nodes.clock().stamp();
        if self.is_valid(now) {
            extension.apply(&mut self.lease, locker);
        }
        let valid = self.is_valid(now);
        match &mut self.ownership {
            Some(ownership) if valid => {
                [extension.rescript(locker, ownership), extension.heal(locker, ownership)]
            }
            _ => [None, None],
        }
    }

    pub(in crate::lock) fn ttl(&self) -> Duration {
        self.ownership.as_ref().map_or(Duration::ZERO, |ownership| ownership.ttl)
    }

    /// Whether it has been held for as long as it may be.
    pub(in crate::lock) fn is_overlong(&self, now: Moment) -> bool {
        matches!(self.extend, Extend::For(_)) && !self.may_extend(now)
    }

    pub(in crate::lock) fn set_ttl(&mut self, ttl: Duration) {
        if let Some(ownership) = &mut self.ownership {
            ownership.ttl = ttl;
        }
    }

    /// When the keeper shall look next, if all goes well: a third of the lease after the nodes were
    /// last told, a little earlier by chance, so that clients that took locks together do not
    /// extend them together, and earlier by up to a 64th of the TTL, so that one client's locks are
    /// extended in batches; or when the end is near. At once, to tell that the lock has been held
    /// for too long. Soon, where another adoption of the same token may have left a node without
    /// our value: until that is mended, it is told that the lock is contended, and not lost.
    pub(in crate::lock) fn next_look(&mut self, locker: &LeaseContext, at: Reading) -> Moment {
        let Some(ownership) = &self.ownership else { return Moment::NEVER };
        let warning = at.moment(self.lease.warning());
        if !self.may_extend(at.now) {
            return if self.is_overlong(at.now) && !self.overlong { at.now } else { warning };
        }
        let lease =
            nanoseconds(ownership.ttl.saturating_sub(locker.options.drift.of(ownership.ttl)));
        let jitter = lease / 15 / 256 * u64::from(ownership.chance());
        let early = Duration::from_nanos(lease / 3 * 2 + jitter);
        let batch = Duration::from_nanos(nanoseconds(ownership.ttl) / 64);
        if ownership.may_former_return() && at.now.since(self.began) < ownership.ttl {
            let pause = batch.saturating_mul(1 << self.hurries.saturating_sub(HURRIES).min(16));
            self.hurries = self.hurries.saturating_add(1);
            return at.now.plus(pause).min(warning);
        }
        self.hurries = 0;
        let due = at.moment(self.lease.end().less(early)).rounded_down(batch);
        // However slowly the nodes answered: not one extension behind the other.
        due.max(at.now.plus(Duration::from_nanos(lease / 20))).min(warning)
    }

    /// Whether a look that was planned soon is needed no more: by now all nodes have our value.
    pub(in crate::lock) fn has_calmed(&self) -> bool {
        self.hurries > 0
            && self.ownership.as_ref().is_some_and(|ownership| !ownership.may_former_return())
    }

    /// Whether the lock may still be extended by itself.
    pub(in crate::lock) fn may_extend(&self, now: Moment) -> bool {
        match self.extend {
            Extend::Off => false,
            Extend::For(longest) => now.since(self.began) < longest,
            Extend::Forever => true,
        }
    }

    /// The token that is cancelled when the lock is lost, whether that has happened, and whether
    /// the token is a new one.
    #[cfg(feature = "tokio-util")]
    pub(super) fn cancellation(&mut self) -> (tokio_util::sync::CancellationToken, bool, bool) {
        let is_new = self.token.is_none();
        let token = self.token.get_or_insert_default().clone();
        if is_new {
            self.runtime = tokio::runtime::Handle::try_current().ok();
        }
        (token, self.lost.is_some(), is_new)
    }

    /// Plans the alarm's next look, which is due when the lease is over; none if the lock is lost,
    /// or if `rang`, the look that asks, is no longer the one that was planned.
    #[cfg(feature = "tokio-util")]
    pub(in crate::lock) fn plan_alarm(
        &mut self,
        at: Reading,
        rang: Option<Moment>,
    ) -> Option<Moment> {
        if rang.is_some() && rang != self.alarm {
            return None;
        }
        let is_valid = self.is_valid(at.stamp);
        self.alarm = is_valid.then(|| at.moment(self.lease.warning()));
        self.alarm
    }

    /// What tells of a loss that has been found and may not have been told yet.
    pub(super) fn new_signal(&self) -> Option<Signal> {
        let is_new = self.ownership.is_some() && self.lost.is_some() && !self.signalled;
        (is_new && !weak::is(LossNotSignalled)).then(|| self.signal())
    }

    /// The loss has been told.
    pub(super) fn set_signalled(&mut self) {
        self.signalled = true;
    }

    fn signal(&self) -> Signal {
        Signal {
            #[cfg(feature = "tokio-util")]
            token: self.token.clone(),
        }
    }
}

/// Cancels the token of a lock that is lost. It runs other people's code, so it is sent when no
/// lock of ours is held.
#[must_use = "a loss is not told before it is sent"]
pub(in crate::lock) struct Signal {
    #[cfg(feature = "tokio-util")]
    token: Option<tokio_util::sync::CancellationToken>,
}

impl Signal {
    pub(in crate::lock) fn send(self) {
        #[cfg(feature = "tokio-util")]
        if let Some(token) = self.token {
            token.cancel();
        }
    }
}
