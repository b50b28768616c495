//! A barrier: a latch for each round.

use std::fmt;
use std::time::Duration;

use super::{BROKEN, Latch, OPEN};
use crate::clock::Moment;
use crate::error::Error;
use crate::lock::Locker;

/// A barrier: a number of parties wait for each other, again and again.
///
/// Each round is a [`Latch`] of its own, at the key with a slash and the round's number after it;
/// the first is round 0. Take a new key for each run: within the TTL a second run from round 0
/// would go straight through the rounds of the first. A party that starts again in the middle of a
/// run says at which [round](Self::at_round).
///
/// A party that gives up waiting has arrived all the same, and others may pass. With
/// [`pass_or_break`](Self::pass_or_break) it breaks the round instead: then no party passes it, and
/// each is told so. That is for one server. Whether a party that gave up was the last one is a
/// question for a consensus, which separate servers do not have.
///
/// ```no_run
/// # async fn example(locker: quorlock::Locker) -> Result<(), quorlock::Error> {
/// let mut barrier = locker.barrier("rebuild", 3)?;
/// for part in 0..10 {
///     // … this process's share of the part …
///     barrier.pass("worker-1").await?; // all three are done with it
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Barrier {
    locker: Locker,
    key: Box<[u8]>,
    parties: usize,
    ttl: Duration,
    round: u64,
}

impl Locker {
    /// A [`Barrier`] for this number of parties, from 1 to 1,000. Does no I/O. The key is as for
    /// [`lock`](Self::lock), and must leave room for the round's number.
    ///
    /// # Errors
    ///
    /// [`is_misuse`](Error::is_misuse) for an invalid key, or another number of parties.
    pub fn barrier(&self, key: impl AsRef<[u8]>, parties: usize) -> Result<Barrier, Error> {
        let key = key.as_ref();
        let latch = self.latch(key, parties)?;
        let barrier =
            Barrier { locker: self.clone(), key: key.into(), parties, ttl: latch.ttl, round: 0 };
        barrier.latch_of(u64::MAX)?; // the longest of its keys
        Ok(barrier)
    }
}

impl Barrier {
    /// As [`Latch::ttl`], of each round.
    ///
    /// # Errors
    ///
    /// As [`Latch::ttl`].
    pub fn ttl(self, ttl: Duration) -> Result<Self, Error> {
        self.latch_of(self.round)?.ttl(ttl)?;
        Ok(Self { ttl, ..self })
    }

    /// Sets the round that [`pass`](Self::pass) passes next.
    ///
    /// Keep [`round`](Self::round) with your own progress, and give it here after a restart. At a
    /// round that is more than one behind the others', `pass` waits without end once that has
    /// ended.
    #[must_use]
    pub fn at_round(self, round: u64) -> Self {
        Self { round, ..self }
    }

    /// Which round is passed next, from 0 on.
    #[must_use]
    pub fn round(&self) -> u64 {
        self.round
    }

    /// Arrives at this round by a name, waits until all parties have, and goes on to the next one.
    /// Returns the round that was passed. It was passed, too, if others are at the next one: a
    /// party that was away for longer than the TTL finds them there.
    ///
    /// # Errors
    ///
    /// As [`Latch::arrive_and_wait`]. The round does not advance; pass it again. But not if it
    /// [`is_broken`](Error::is_broken), by a party that has called
    /// [`pass_or_break`](Self::pass_or_break).
    ///
    /// # Cancel safety
    ///
    /// The round does not advance, but the party may have been counted, so the others may pass.
    /// Pass it again.
    pub async fn pass(&mut self, name: impl AsRef<[u8]>) -> Result<u64, Error> {
        let (round, next) = (self.round, self.round.saturating_add(1));
        let party = Latch::encode_party(name.as_ref())?;
        let (latch, follows) = (self.latch_of(round)?, self.latch_of(next)?);
        latch.wait_until(Some((&party, Some(&follows))), Moment::LAST).await?;
        self.round = next;
        Ok(round)
    }

    /// As [`pass`](Self::pass), but waits for the others no longer than `wait`, and then breaks the
    /// round for all parties, unless all have arrived. For a locker on one server.
    ///
    /// A round is passed or broken, and the server decides which, once: after a call that was told,
    /// every call that ends within the [`ttl`](Self::ttl) is told the same, also that of a party
    /// that comes late, as long as the server forgets nothing (see
    /// [`Durability`](crate::Durability)). So each party knows what all the others are told.
    ///
    /// Where a round is broken, each party gives up, or begins anew at another key, as with the
    /// number of the attempt in it. Not at the next round of this one: parties at a round tell one
    /// that comes late that the round before was passed. When the TTL is over the round has ended,
    /// and is neither: a party that comes then waits for all the others anew.
    ///
    /// With a wait of zero the last party to come passes, and any other one breaks the round.
    ///
    /// # Errors
    ///
    /// [`is_broken`](Error::is_broken) if the round is broken, by this party or by another one.
    /// [`is_unavailable`](Error::is_unavailable), [`is_full`](Error::is_full) or
    /// [`is_authentication`](Error::is_authentication) if no answer came when the wait was over, or
    /// for the locker's [`unavailable_wait`](crate::LockerBuilder::unavailable_wait) before that:
    /// the party may have arrived, and may have broken the round. The next call is told; where the
    /// time is over, give it a wait of zero. [`is_misuse`](Error::is_misuse) for a locker on
    /// several servers, and as [`Latch::arrive`]; [`is_closed`](Error::is_closed) as there. The
    /// round does not advance.
    ///
    /// # Cancel safety
    ///
    /// The round does not advance. The party may have arrived. If the future is dropped before its
    /// wait is over, it breaks nothing; dropped later, it may have broken the round.
    pub async fn pass_or_break(
        &mut self,
        name: impl AsRef<[u8]>,
        wait: Duration,
    ) -> Result<u64, Error> {
        let (round, next) = (self.round, self.round.saturating_add(1));
        let party = Latch::encode_party(name.as_ref())?;
        let (latch, follows) = (self.latch_of(round)?, self.latch_of(next)?);
        latch.check_one_node(
            "`pass_or_break` is for a locker on one server: separate servers cannot decide whether \
             the round is passed or broken; use `pass`, and let each party bound its own wait",
        )?;
        let until = latch.context().nodes.clock().now().plus(wait);
        let arrival = Some((&party[..], Some(&follows)));
        if !latch.wait_until(arrival, until).await?.is_open() {
            // An error, unless it is open by now.
            latch.add(Some(BROKEN), OPEN).await?;
        }
        self.round = next;
        Ok(round)
    }

    fn latch_of(&self, round: u64) -> Result<Latch, Error> {
        let key = [&self.key[..], format!("/{round}").as_bytes()].concat();
        Ok(Latch { ttl: self.ttl, ..self.locker.latch(key, self.parties)? })
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier")
            .field("key", &self.key.escape_ascii().to_string())
            .field("parties", &self.parties)
            .field("round", &self.round)
            .finish_non_exhaustive()
    }
}
