//! The state of one hold, and how answers change it.
//!
//! ```text
//!  free ──begin──▶ Held ──its time is over, the nodes lost it, taken──▶ Lost ──end──▶ free
//!                   └─────────────────────────end────────────────────────────────────┘
//! ```
//!
//! *Held* carries what keeps the lock alive, *Lost* why it is lost and who has been told. Nothing
//! leads from lost to held.

use std::time::Duration;

use super::claim::Claim;
use super::context::LeaseContext;
use super::extension::Extension;
use super::revoked::Revoked;
use super::validity::Validity;
use crate::clock::{Moment, Reading, Stamp};
use crate::error::{Error, Kind};
use crate::observe::Loss;
use crate::options::Extend;

/// The state of one hold.
pub(super) struct Hold {
    pub(super) generation: u32,
    /// `None` while the place is free.
    pub(super) claim: Option<Claim>,
    pub(super) validity: Validity,
    pub(super) extend: Extend,
    /// When it was acquired.
    pub(super) began: Moment,
    /// When the lock was acquired from the nodes: before that, where it was handed on.
    acquired: Moment,
    /// Someone was told the value, and may do something with it.
    pub(super) is_value_told: bool,
    state: State,
    /// Whether its holder was asked to let go of it, and how surely.
    pub(super) revoked: Revoked,
    /// Why the hold before this one had been lost when it ended.
    former_loss: Option<Loss>,
    #[cfg(feature = "tokio-util")]
    token: Option<tokio_util::sync::CancellationToken>,
    /// When the alarm looks at it next, if it has a token that the alarm is to cancel.
    #[cfg(feature = "tokio-util")]
    pub(super) alarm: Option<Moment>,
    /// By whose clock it does.
    #[cfg(feature = "tokio-util")]
    pub(super) runtime: Option<tokio::runtime::Handle>,
}

/// Whether the lock is held.
enum State {
    Held(Upkeep),
    Lost(Telling),
}

/// What keeps a held lock alive.
#[derive(Default)]
struct Upkeep {
    /// The acquisition's late votes have been entered.
    entered: bool,
    /// An extension of the keeper's is on its way.
    extending: bool,
    /// The observers have been told that it is held for too long.
    overlong: bool,
    /// How many looks in a row were planned soon, because another adoption was met.
    hurries: u32,
}

/// Why a lock is lost, and who has been told.
struct Telling {
    why: Loss,
    /// The waiters have been woken, and the token cancelled.
    signalled: bool,
    /// The observers have been told.
    observed: bool,
}

/// How often the nodes are asked again soon where another adoption was met, before the pauses grow.
const HURRIES: u32 = 8;

/// What follows the answers to an extension.
pub(super) enum Step {
    /// The lock is held for as long as was asked for.
    Extended,
    /// Not yet: this was sent behind it.
    More(Extension),
    /// The lock is held, but not for as long as was asked for.
    Failed,
    /// The lock is lost.
    Lost,
}

/// What a hold that is handed on leaves to the next one, beside its claim.
pub(crate) struct Inherited {
    /// Until when which nodes hold the key.
    pub(super) validity: Validity,
    /// When the lock was acquired from the nodes.
    acquired: Moment,
}

/// What a hold leaves beside its claim.
pub(crate) struct Ended {
    /// When the lock was acquired.
    pub(crate) began: Moment,
    /// Why the lock was lost, if the observers have not been told.
    pub(super) untold: Option<Loss>,
    /// [`Leases::end`](super::leases::Leases::end) has sent it.
    pub(super) signal: Signal,
}

impl Hold {
    /// A free place.
    pub(super) fn new(validity: Validity) -> Self {
        Self {
            generation: 0,
            claim: None,
            validity,
            extend: Extend::Off,
            began: Moment::NEVER,
            acquired: Moment::NEVER,
            is_value_told: false,
            state: State::Held(Upkeep::default()),
            revoked: Revoked::No,
            former_loss: None,
            #[cfg(feature = "tokio-util")]
            token: None,
            #[cfg(feature = "tokio-util")]
            alarm: None,
            #[cfg(feature = "tokio-util")]
            runtime: None,
        }
    }

    /// The place holds what an acquisition has won, or what was handed on.
    #[inline]
    pub(super) fn begin(
        &mut self,
        claim: Claim,
        inherited: Option<Inherited>,
        extend: Extend,
        now: Moment,
        context: &LeaseContext,
    ) {
        let (granted, end, ttl) = (claim.granted(), claim.end_of(claim.sent), claim.ttl_nanos);
        self.claim = Some(claim);
        (self.extend, self.began) = (extend, now);
        (self.acquired, self.is_value_told, self.revoked) = (now, false, Revoked::No);
        self.state = State::Held(Upkeep::default());
        match inherited {
            None => self.validity.begin(granted, end),
            Some(Inherited { validity, acquired }) => {
                (self.validity, self.acquired) = (validity, acquired);
                self.state = State::Held(Upkeep { entered: true, ..Upkeep::default() });
            }
        }
        self.validity.set_margin(context.margin(ttl), Stamp::PAST);
    }

    /// What another hold goes on with, if this one may be handed on after so long at most: see
    /// `hand_on`.
    pub(super) fn inheritance(&mut self, at: Reading, budget: Duration) -> Option<Inherited> {
        let is_settled = self.claim.as_ref().is_some_and(Claim::is_settled);
        let is_in_time = at.now.since(self.acquired) < budget;
        let is_bound = self.is_value_told || self.is_revoked(); // the next task may not have it
        let may = is_settled && is_in_time && !is_bound && !self.is_extending();
        if !may || !self.is_valid(at.stamp) {
            return None;
        }
        // Here, by the TTL that they were granted with: an extension may have changed it since.
        self.enter_grants_once();
        Some(Inherited { validity: self.validity.clone(), acquired: self.acquired })
    }

    /// A lock that was taken over is ours from `now` on.
    pub(super) fn own(&mut self, extend: Extend, now: Moment) {
        (self.extend, self.began) = (extend, now);
        if let Some(claim) = &mut self.claim {
            claim.own();
        }
    }

    /// The place is free: what is left of the hold goes to its ender.
    ///
    /// The claim is large, and each function that returned it would move it once more: it goes
    /// straight to where it is let go of.
    #[inline]
    pub(super) fn end(&mut self, claim: &mut Option<Claim>) -> Option<Ended> {
        let was_owned = self.claim.as_ref()?.was_owned();
        if self.has_expired_to_delay() {
            self.claim.as_mut().map(Claim::delay);
        }
        let untold = self.take_loss().filter(|_| was_owned);
        *claim = self.claim.take();
        let left = Ended { began: self.began, untold, signal: self.signal() };
        self.former_loss = self.loss();
        self.generation = self.generation.wrapping_add(1);
        #[cfg(feature = "tokio-util")]
        {
            (self.token, self.alarm, self.runtime) = (None, None, None);
        }
        Some(left)
    }

    /// Whether its lease has ended by itself, and others are to stay out for a while still.
    #[inline]
    pub(super) fn has_expired_to_delay(&mut self) -> bool {
        let has_delay = |claim: &Claim| !claim.resource.lock_delay().is_zero();
        self.claim.as_ref().is_some_and(has_delay) && self.has_expired()
    }

    #[inline(never)]
    fn has_expired(&mut self) -> bool {
        let now = self.claim.as_ref().map(|claim| claim.context().nodes.clock().stamp());
        let has_ended = now.is_some_and(|now| !self.is_valid(now));
        has_ended && matches!(self.loss(), Some(Loss::Expired | Loss::Revoked))
    }

    /// Whether the lock is held at `now`; once it is not, it never is again.
    ///
    /// This is the one place that finds a loss by the clock, and it does so a margin before the
    /// lease ends: then a timer that comes late still tells of it in time. A guard, a token and
    /// those who wait for the loss all go by it, so they say the same at each instant.
    pub(super) fn is_valid(&mut self, now: Stamp) -> bool {
        if !now.is_before(self.validity.warning()) {
            self.lose(if self.validity.is_gone() {
                Loss::Gone
            } else if self.is_revoked_for_good() {
                Loss::Revoked
            } else {
                Loss::Expired
            });
        }
        self.loss().is_none()
    }

    /// Why the lock is lost, if that has been found.
    pub(super) fn loss(&self) -> Option<Loss> {
        match &self.state {
            State::Held(_) => None,
            State::Lost(telling) => Some(telling.why),
        }
    }

    /// The lock is lost, unless it was before: then for the earlier reason.
    pub(super) fn lose(&mut self, why: Loss) {
        if let State::Held(_) = self.state {
            self.state = State::Lost(Telling { why, signalled: false, observed: false });
        }
    }

    /// Why the hold was lost that a generation named, if it is the latest that has ended here.
    pub(super) fn former_loss(&self, generation: u32) -> Option<Loss> {
        let is_latest = self.generation == generation.wrapping_add(1);
        self.former_loss.filter(|_| is_latest)
    }

    /// Whether the observers have been told of the loss.
    pub(super) fn is_observed(&self) -> bool {
        matches!(&self.state, State::Lost(telling) if telling.observed)
    }

    /// Takes the duty to tell the observers of the loss: `None` if there is none, or it is taken.
    pub(super) fn take_loss(&mut self) -> Option<Loss> {
        let State::Lost(telling) = &mut self.state else { return None };
        let is_new = !std::mem::replace(&mut telling.observed, true);
        is_new.then_some(telling.why)
    }

    /// Takes the duty to tell the observers that the lock is held for too long.
    pub(super) fn take_overlong(&mut self, now: Moment) -> bool {
        let is_overlong = self.is_overlong(now);
        let State::Held(upkeep) = &mut self.state else { return false };
        !upkeep.extending && is_overlong && !std::mem::replace(&mut upkeep.overlong, true)
    }

    /// Whether an extension of the keeper's is on its way.
    pub(super) fn is_extending(&self) -> bool {
        matches!(&self.state, State::Held(upkeep) if upkeep.extending)
    }

    pub(super) fn set_extending(&mut self, extending: bool) {
        if let State::Held(upkeep) = &mut self.state {
            upkeep.extending = extending;
        }
    }

    /// Sends an extension.
    pub(super) fn extend(
        &mut self,
        context: &LeaseContext,
        ttl: Duration,
    ) -> Result<Extension, Error> {
        // By the first extension all have granted that ever will in time, and its answers are the
        // newer ones.
        self.enter_grants_once();
        match &self.claim {
            Some(claim) => Extension::send(context, claim, ttl),
            None => Err(Error::new(Kind::Lost { reason: self.loss() })),
        }
    }

    /// Enters which nodes have granted the acquisition by now, unless that was done before: later
    /// their ends may be others, by an extension and by its TTL.
    fn enter_grants_once(&mut self) {
        let State::Held(upkeep) = &mut self.state else { return };
        if std::mem::replace(&mut upkeep.entered, true) {
            return;
        }
        let Some(claim) = &self.claim else { return };
        self.validity.grant(claim.granted().nodes(), claim.sent, claim.end_of(claim.sent));
    }

    /// Enters what an extension has brought, unless the lock was lost before, and says what follows
    /// if it was to reach `target`.
    pub(super) fn take_answers(
        &mut self,
        extension: &mut Extension,
        target: Stamp,
        context: &LeaseContext,
    ) -> Step {
        let now = context.nodes.clock().stamp();
        if self.is_valid(now) {
            extension.apply(&mut self.validity, context);
            self.note_revoked(extension, context);
        }
        if !self.is_valid(now) {
            return Step::Lost;
        }
        if self.validity.end().reaches(target) {
            return Step::Extended;
        }
        let more = self.claim.as_ref().and_then(|claim| extension.rescript(context, claim));
        more.map_or(Step::Failed, Step::More)
    }

    /// Enters what came in behind an extension's verdict, and says what was sent behind that: the
    /// whole script to nodes that had forgotten it, and the key to nodes that had lost it.
    pub(super) fn gather(
        &mut self,
        extension: &mut Extension,
        context: &LeaseContext,
    ) -> [Option<Extension>; 2] {
        let now = context.nodes.clock().stamp();
        if self.is_valid(now) {
            extension.apply(&mut self.validity, context);
            self.note_revoked(extension, context);
        }
        let valid = self.is_valid(now);
        let is_revoked = self.is_revoked();
        match &mut self.claim {
            Some(claim) if valid => {
                let repeated = extension.rescript(context, claim);
                // Of a revoked lock a marked key may have ended, and must not be set anew.
                [repeated, if is_revoked { None } else { extension.heal(context, claim) }]
            }
            _ => [None, None],
        }
    }

    pub(super) fn ttl(&self) -> Duration {
        self.claim.as_ref().map_or(Duration::ZERO, Claim::ttl)
    }

    /// Whether it has been held for as long as it may be.
    pub(super) fn is_overlong(&self, now: Moment) -> bool {
        matches!(self.extend, Extend::For(_)) && !self.is_to_be_extended(now)
    }

    /// Whether the observers have still to be told that.
    fn is_to_be_told_overlong(&self, now: Moment) -> bool {
        let is_told = matches!(&self.state, State::Held(upkeep) if upkeep.overlong);
        self.is_overlong(now) && !is_told
    }

    pub(super) fn set_ttl(&mut self, ttl: Duration) {
        if let Some(claim) = &mut self.claim {
            claim.set_ttl(ttl);
        }
    }

    /// When the keeper shall look next, if all goes well: a third of the lease after the nodes were
    /// last told, a little earlier by chance, so that clients that took locks together do not
    /// extend them together, and earlier by up to a 64th of the TTL, so that one client's locks are
    /// extended in batches; or when the end is near. At once, to tell that the lock has been held
    /// for too long. Soon, where another adoption of the same token may have left a node without
    /// our value: until that is mended, it is told that the lock is contended, and not lost.
    pub(super) fn next_look(&mut self, context: &LeaseContext, at: Reading) -> Moment {
        let Some(claim) = &self.claim else { return Moment::NEVER };
        if self.is_revocation_untold() {
            return at.now;
        }
        let warning = at.moment(self.validity.warning());
        if !self.may_extend(at.now) {
            return if self.is_to_be_told_overlong(at.now) { at.now } else { warning };
        }
        // In nanoseconds, for every acquisition computes this.
        let ttl = claim.ttl_nanos;
        let lease = ttl.saturating_sub(context.options.drift.nanoseconds_of(ttl));
        let jitter = lease / 15 / 256 * u64::from(claim.chance());
        let early = lease / 3 * 2 + jitter;
        let batch = ttl / 64;
        let is_hurried = claim.may_former_return() && at.now.since(self.began) < claim.ttl();
        if let State::Held(upkeep) = &mut self.state {
            if is_hurried {
                let doublings = upkeep.hurries.saturating_sub(HURRIES).min(16);
                upkeep.hurries = upkeep.hurries.saturating_add(1);
                return at.now.plus_nanos(batch.saturating_mul(1 << doublings)).min(warning);
            }
            upkeep.hurries = 0;
        }
        let due = at.moment(self.validity.end().less_nanos(early)).rounded_down(batch);
        // However slowly the nodes answered: not one extension behind the other.
        due.max(at.now.plus_nanos(lease / 20)).min(warning)
    }

    /// Whether a look that was planned soon is needed no more: by now all nodes have our value.
    pub(super) fn has_calmed(&self) -> bool {
        let is_hurried = matches!(&self.state, State::Held(upkeep) if upkeep.hurries > 0);
        is_hurried && !self.claim.as_ref().is_none_or(Claim::may_former_return)
    }

    /// Whether the lock may still be extended by itself.
    pub(super) fn may_extend(&self, now: Moment) -> bool {
        self.is_to_be_extended(now) && !self.is_revoked_for_good()
    }

    /// Whether [`Extend`] allows that the lock is extended by itself at that time.
    fn is_to_be_extended(&self, now: Moment) -> bool {
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
        (token, self.loss().is_some(), is_new)
    }

    /// Plans the alarm's next look, which is due when the lease is over; none if the lock is lost,
    /// or if `rang`, the look that asks, is no longer the one that was planned.
    #[cfg(feature = "tokio-util")]
    pub(super) fn plan_alarm(&mut self, at: Reading, rang: Option<Moment>) -> Option<Moment> {
        if rang.is_some() && rang != self.alarm {
            return None;
        }
        let is_valid = self.is_valid(at.stamp);
        self.alarm = is_valid.then(|| at.moment(self.validity.warning()));
        self.alarm
    }

    /// What tells of a loss that has been found and may not have been told yet.
    pub(super) fn new_signal(&self) -> Option<Signal> {
        let State::Lost(telling) = &self.state else { return None };
        let is_new = self.claim.is_some() && !telling.signalled;
        is_new.then(|| self.signal())
    }

    /// The loss has been told.
    pub(super) fn set_signalled(&mut self) {
        if let State::Lost(telling) = &mut self.state {
            telling.signalled = true;
        }
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
pub(super) struct Signal {
    #[cfg(feature = "tokio-util")]
    token: Option<tokio_util::sync::CancellationToken>,
}

impl Signal {
    pub(super) fn send(&self) {
        #[cfg(feature = "tokio-util")]
        if let Some(token) = &self.token {
            token.cancel();
        }
    }
}
