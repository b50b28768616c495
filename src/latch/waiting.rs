//! Waiting until a latch is open.

use std::time::Duration;

use super::{Latch, LatchState};
use crate::clock::Moment;
use crate::error::Error;
use crate::lease::watch::{self, Watch};

/// The interval of looks beside a watch, which does not see what its node has missed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The same where no node tells of changes, or a look has failed.
pub(super) const POLL_EVERY: Duration = Duration::from_millis(100);

/// Who is told of one change after another does not look more often than this.
const LEAST_PAUSE: Duration = Duration::from_millis(4);

impl Latch {
    /// Waits until the latch is open, for as long as that takes. Does not arrive. Without a quorum
    /// it goes on trying for the locker's
    /// [`unavailable_wait`](crate::LockerBuilder::unavailable_wait).
    ///
    /// # Errors
    ///
    /// As [`state`](Self::state).
    ///
    /// # Cancel safety
    ///
    /// As [`state`](Self::state).
    pub async fn wait(&self) -> Result<(), Error> {
        self.wait_until(None, Moment::LAST).await.map(drop)
    }

    /// As [`wait`](Self::wait), but stops at the limit and returns the state that its last look has
    /// found. It looks once at least, and a look that has begun may end after the limit.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait). Without a quorum at the limit, the error of the last look.
    ///
    /// # Cancel safety
    ///
    /// As [`state`](Self::state).
    pub async fn wait_timeout(&self, limit: Duration) -> Result<LatchState, Error> {
        let until = self.context().nodes.clock().now().plus(limit);
        self.wait_until(None, until).await
    }

    /// Counts a party in, by its name, as [`arrive`](Self::arrive) does, and waits until the latch
    /// is open. The arrival is repeated meanwhile, at a third of the TTL, so that it counts for as
    /// long as the party waits and reaches a majority. Without a quorum it goes on trying for the
    /// locker's [`unavailable_wait`](crate::LockerBuilder::unavailable_wait).
    ///
    /// # Errors
    ///
    /// As [`arrive`](Self::arrive).
    ///
    /// # Cancel safety
    ///
    /// As [`arrive`](Self::arrive).
    pub async fn arrive_and_wait(&self, name: impl AsRef<[u8]>) -> Result<(), Error> {
        let party = Self::encode_party(name.as_ref())?;
        self.wait_until(Some((&party, None)), Moment::LAST).await.map(drop)
    }

    /// Asks until the latch is open. A party arrives, again and again; its latch counts as open,
    /// too, when parties have arrived at the one that `follows`.
    pub(super) async fn wait_until(
        &self,
        arrival: Option<(&[u8], Option<&Self>)>,
        until: Moment,
    ) -> Result<LatchState, Error> {
        let context = self.context();
        let mut looks = Looks::new(self, arrival, until);
        loop {
            if let Some(state) = looks.look().await? {
                return Ok(state);
            }
            let mut watch = None;
            if looks.unavailable_until.is_none() {
                watch = Watch::begin(context, &self.key, looks.next_by(POLL_EVERY)).await;
            }
            // Once more after the watch has begun, so that no change comes between the two.
            if watch.is_some() {
                if let Some(state) = looks.look().await? {
                    return Ok(state);
                }
            }
            let is_watched = watch.is_some() && looks.unavailable_until.is_none();
            let pause = if is_watched { LOOK_EVERY } else { POLL_EVERY };
            let rested = looks.next_by(LEAST_PAUSE);
            watch::changed(context, watch, looks.next_by(pause)).await?;
            watch::changed(context, None, rested).await?;
        }
    }
}

/// One that waits, and its looks so far.
struct Looks<'a> {
    latch: &'a Latch,
    arrival: Option<Arrival<'a>>,
    /// The end of the caller's wait.
    until: Moment,
    /// When to give up without a quorum; set while looks fail.
    unavailable_until: Option<Moment>,
}

/// A party that arrives, again and again.
struct Arrival<'a> {
    party: &'a [u8],
    /// When to arrive again.
    due: Moment,
    follows: Option<&'a Latch>,
}

impl<'a> Looks<'a> {
    fn new(
        latch: &'a Latch,
        arrival: Option<(&'a [u8], Option<&'a Latch>)>,
        until: Moment,
    ) -> Self {
        let due = latch.context().nodes.clock().now();
        let arrival = arrival.map(|(party, follows)| Arrival { party, due, follows });
        Self { latch, arrival, until, unavailable_until: None }
    }

    fn now(&self) -> Moment {
        self.latch.context().nodes.clock().now()
    }

    /// Arrives if that is due, and looks. `None`: the wait goes on.
    async fn look(&mut self) -> Result<Option<LatchState>, Error> {
        let began = self.now();
        let due = self.arrival.as_mut().filter(|arrival| began >= arrival.due);
        let asked = match &due {
            Some(Arrival { party, follows, .. }) => self.latch.arrive_before(party, *follows).await,
            None => self.latch.ask(None).await,
        };
        match asked {
            Ok(state) => {
                if let Some(arrival) = due {
                    arrival.due = began.plus(self.latch.ttl / 3);
                }
                self.unavailable_until = None;
                let is_over = state.is_open() || self.now() >= self.until;
                Ok(is_over.then_some(state))
            }
            Err(error) if error.is_retryable() => {
                let patience = self.latch.context().options.unavailable_wait;
                let end = *self.unavailable_until.get_or_insert_with(|| began.plus(patience));
                if self.now() >= self.until.min(end) { Err(error) } else { Ok(None) }
            }
            Err(error) => Err(error),
        }
    }

    /// When to look next: after this pause, or before if something is due.
    fn next_by(&self, pause: Duration) -> Moment {
        let next = self.now().plus(pause.min(self.latch.ttl / 3)).min(self.until);
        let due = self.arrival.as_ref().map(|arrival| arrival.due);
        // One that could not arrive tries again after the pause.
        next.min(due.filter(|_| self.unavailable_until.is_none()).unwrap_or(Moment::LAST))
    }
}

impl Latch {
    /// Adds this party, and returns the state: open, too, if parties have arrived at the latch that
    /// follows this one, which may have ended since it was open. (It is marked as open then: should
    /// it be broken, that is an error.)
    async fn arrive_before(
        &self,
        party: &[u8],
        follows: Option<&Self>,
    ) -> Result<LatchState, Error> {
        let state = self.ask(Some(party)).await?;
        let Some(next) = follows.filter(|_| !state.is_open()) else { return Ok(state) };
        match next.ask(None).await {
            Ok(LatchState::Closed { missing }) if missing == next.parties => Ok(state),
            Err(error) if !error.is_broken() => Err(error),
            _ => self.open().await,
        }
    }
}
