//! Counting without names, on one node.

use std::collections::BTreeSet;

use super::waiting::POLL_EVERY;
use super::{Latch, LatchState, OPEN, PARTY};
use crate::error::{Error, Kind};
use crate::lease::watch;

impl Latch {
    /// Counts one party in, without a name: each call counts once, for the [`ttl`](Self::ttl) at
    /// least. Does not wait for others. A latch that is open is prolonged, and counts no further.
    /// For a locker on one server; named parties may arrive at the same latch.
    ///
    /// Where no answer comes, the call asks again for the locker's
    /// [`unavailable_wait`](crate::LockerBuilder::unavailable_wait). It has a random name for that,
    /// so it counts once, however often its command reaches the server. Another call counts again.
    ///
    /// # Errors
    ///
    /// [`is_unknown`](Error::is_unknown) if no answer came: it may have counted.
    /// [`is_unavailable`](Error::is_unavailable), [`is_full`](Error::is_full) or
    /// [`is_authentication`](Error::is_authentication) if it certainly has not.
    /// [`is_misuse`](Error::is_misuse) for a locker on several servers, which must name its
    /// parties: a count that too few of them took could neither be repeated nor taken back; for a
    /// key that holds something else; or for a server of another
    /// [`Durability`](crate::Durability). [`is_closed`](Error::is_closed) after a shutdown, or
    /// without a runtime.
    ///
    /// # Cancel safety
    ///
    /// Once polled, it may have counted; dropping the future does not undo that.
    pub async fn count_down(&self) -> Result<LatchState, Error> {
        self.check_one_node(
            "`count_down` is for a locker on one server: on several, a count that too few of them \
             took could neither be repeated nor taken back; name each party, and `arrive`",
        )?;
        let random = self.context().nodes.entropy().nonce().0;
        let found = self.count(&[&[PARTY], &random[..]].concat()).await?;
        let missing = self.missing(&found);
        if missing > 0 && !found.contains(OPEN) {
            return Ok(LatchState::Closed { missing });
        }
        if !found.contains(OPEN) {
            // It has counted, whatever becomes of the mark. On one node every later call finds the
            // same names, and marks the latch if this has not.
            let _ = self.open().await;
        }
        Ok(LatchState::Open)
    }

    /// Adds this name unless the latch is open, and asks again where no answer comes.
    async fn count(&self, name: &[u8]) -> Result<BTreeSet<Vec<u8>>, Error> {
        let context = self.context();
        let now = || context.nodes.clock().now();
        let give_up = now().plus(context.options.unavailable_wait);
        let mut may_have_counted = false;
        let error = loop {
            let error = match self.add(Some(name), OPEN).await {
                Ok(found) => return Ok(found),
                Err(error) => error,
            };
            may_have_counted |= may_have_applied(&error);
            if !error.is_retryable() || now() >= give_up {
                break error;
            }
            let next = now().plus(POLL_EVERY).min(give_up);
            if let Err(closed) = watch::changed(context, None, next).await {
                break closed;
            }
        };
        Err(match may_have_counted {
            true => Error::new(Kind::MayHaveCounted)
                .with_key(self.key.given())
                .with_nodes(error.nodes().to_vec()),
            false => error,
        })
    }
}

/// Whether a server may have done what it was asked, which it did not answer.
fn may_have_applied(error: &Error) -> bool {
    error.is_retryable() && error.nodes().iter().any(|node| node.outcome.is_unknown())
}
