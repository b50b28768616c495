//! Waiting until all of several are there: [`Latch`], once; [`Barrier`], again and again.
//!
//! ```text
//!  arrive ─▶ its name on a majority ─▶ enough names, or the mark, among all that were found?
//!                                         ├─no──▶ closed
//!                                         └─yes─▶ the mark on a majority ─▶ open
//! ```
//!
//! Each node keeps a set: the names of the parties that have arrived, and a mark as soon as one
//! call has found enough of them. Both only grow. A name that a majority has is found by every
//! majority, so no party that has arrived is missed. *Open* is only said when a majority has the
//! mark, so every later call finds that; without it, a call could find enough names by a node that
//! has what a minority was told, and the next one could miss them.
//!
//! On a quorum each party has a name, so that to arrive twice is to arrive: an arrival that too few
//! nodes took can be repeated. One node alone gives two things more. It counts without names, each
//! call by a random one. And it decides: there the mark `open` is added unless `broken` is there,
//! and `broken` unless `open` is, so one of them stands and all find that one.
//!
//! | file | holds |
//! |---|---|
//! | `barrier` | a latch for each round, which breaks for all where there is one node |
//! | `count_down` | counting without names, on one node |
//! | `waiting` | when a waiting party looks again, and until when |

mod barrier;
mod count_down;
#[cfg(test)]
#[cfg(feature = "testing")]
mod tests;
mod waiting;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use self::barrier::Barrier;
use crate::error::{Error, Kind};
use crate::lease::name_set::{self, Addition};
use crate::lease::{Key, LeaseContext};
use crate::lock::Locker;

/// The first byte of each party's name in the set: it keeps them apart from the marks.
const PARTY: u8 = b'p';

/// What is added to the set when enough parties have been found in it.
const OPEN: &[u8] = b"open";

/// What is added to the set of a barrier's round, in the place of [`OPEN`], when a party has waited
/// for long enough.
const BROKEN: &[u8] = b"broken";

/// Bounds the replies: each of them carries all names.
const PARTIES_MAX: usize = 1_000;
/// The longest name of a party.
const NAME_BYTES_MAX: usize = 256;

/// A latch: closed until a number of named parties have arrived, then open.
///
/// To arrive twice by one name counts once; on one server there is also
/// [`count_down`](Self::count_down), which takes no name. Any number of tasks may
/// [`wait`](Self::wait). A latch is never open before all have arrived. When a call has found it
/// open, every call that begins later and within the [`ttl`](Self::ttl) from that one on does so
/// too, and prolongs it, as long as no node forgets (see [`Durability`](crate::Durability)). All
/// who use a latch give the same number of parties and the same TTL.
///
/// Take a new key for each use, as by a number in its name, or a [`Barrier`]: a latch ends by its
/// TTL alone, and a command that comes late may bring it back for another one. It is no lock: there
/// is nothing to extend and nothing to lose. Its key must not be the key of a lock, nor that of a
/// barrier's round.
///
/// On the wire: one round trip for each party that arrives, and one more for each call that finds
/// the latch open. Who waits has a node tell of changes, and looks again when it does.
///
/// ```no_run
/// # async fn example(locker: quorlock::Locker) -> Result<(), quorlock::Error> {
/// let ready = locker.latch("deploy:42", 3)?;
/// ready.arrive("worker-1").await?; // this process is ready
/// ready.wait().await?; // all three are
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Latch {
    locker: Locker,
    key: Key,
    parties: usize,
    ttl: Duration,
}

/// Whether a latch is open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LatchState {
    /// All have arrived.
    Open,
    /// Not all have.
    #[non_exhaustive]
    Closed {
        /// How many have not, as far as the nodes that answered know. It may rise again: a party
        /// whose arrival reached a minority is known to some nodes and not to others.
        missing: usize,
    },
}

impl LatchState {
    /// Whether it is open.
    #[must_use]
    pub fn is_open(self) -> bool {
        self == Self::Open
    }
}

impl Locker {
    /// A [`Latch`] for this number of parties, from 1 to 1,000. Does no I/O. The key is as for
    /// [`lock`](Self::lock), and must not be the key of a lock.
    ///
    /// # Errors
    ///
    /// [`is_misuse`](Error::is_misuse) for an invalid key, or another number of parties.
    pub fn latch(&self, key: impl AsRef<[u8]>, parties: usize) -> Result<Latch, Error> {
        if !(1..=PARTIES_MAX).contains(&parties) {
            return Err(Error::misuse(format!(
                "a latch for {parties} parties; give from 1 to {PARTIES_MAX}"
            )));
        }
        let context = &self.leases().context;
        let (key, ttl) = (context.key(key.as_ref())?, context.options.ttl);
        Ok(Latch { locker: self.clone(), key, parties, ttl })
    }
}

impl Latch {
    /// Sets how long an arrival counts, and how long a latch stays open after a call that found it
    /// open. Default: the locker's TTL. It must be longer than a party may be away: a party that
    /// comes back later finds a latch that has ended, and waits for all the others anew.
    ///
    /// # Errors
    ///
    /// [`is_misuse`](Error::is_misuse) for a time that no TTL may have.
    pub fn ttl(self, ttl: Duration) -> Result<Self, Error> {
        self.context().options.check_ttl(ttl)?;
        Ok(Self { ttl, ..self })
    }

    /// Counts a party in, by its name: from 1 to 256 bytes. Does not wait for others.
    ///
    /// # Errors
    ///
    /// [`is_unavailable`](Error::is_unavailable), [`is_full`](Error::is_full) or
    /// [`is_authentication`](Error::is_authentication) if no majority answered: the party may or
    /// may not count; arrive again. [`is_misuse`](Error::is_misuse) for a name of another length, a
    /// key that holds something else, or nodes of another [`Durability`](crate::Durability).
    /// [`is_closed`](Error::is_closed) after a shutdown, or without a runtime.
    ///
    /// # Cancel safety
    ///
    /// Once polled, the party may have been counted; dropping the future does not undo that. Arrive
    /// again by the same name to be sure.
    pub async fn arrive(&self, name: impl AsRef<[u8]>) -> Result<LatchState, Error> {
        let party = Self::encode_party(name.as_ref())?;
        self.ask(Some(&party)).await
    }

    /// Asks whether the latch is open, without arriving. If it is, this prolongs it.
    ///
    /// # Errors
    ///
    /// As [`arrive`](Self::arrive), but for names.
    ///
    /// # Cancel safety
    ///
    /// No party is counted. A latch that is open may have been prolonged.
    pub async fn state(&self) -> Result<LatchState, Error> {
        self.ask(None).await
    }

    fn encode_party(name: &[u8]) -> Result<Vec<u8>, Error> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(Error::misuse(format!(
                "a party's name of {} bytes; give from 1 to {NAME_BYTES_MAX}",
                name.len()
            )));
        }
        Ok([&[PARTY], name].concat())
    }

    /// Adds this party, if one is given, and returns the state; marks an open latch on a majority.
    async fn ask(&self, party: Option<&[u8]>) -> Result<LatchState, Error> {
        let found = self.add(party, BROKEN).await?;
        let missing = self.missing(&found);
        if missing > 0 && !found.contains(OPEN) {
            return Ok(LatchState::Closed { missing });
        }
        // Also where it is there already: it may be so on a minority, or soon over.
        self.open().await
    }

    /// Marks the latch as open on a majority, unless it is broken.
    async fn open(&self) -> Result<LatchState, Error> {
        self.add(Some(OPEN), BROKEN).await.map(|_| LatchState::Open)
    }

    /// Adds a name, if one is given, unless the other one is there, and returns all names. An error
    /// if the mark of a broken round is among them.
    async fn add(&self, name: Option<&[u8]>, unless: &[u8]) -> Result<BTreeSet<Vec<u8>>, Error> {
        let addition = Addition { name, unless, ttl: self.ttl };
        let found = name_set::add_and_read(self.context(), &self.key, addition).await?;
        match found.contains(BROKEN) {
            true => Err(Error::new(Kind::Broken).with_key(self.key.given())),
            false => Ok(found),
        }
    }

    /// How many parties are not among these names.
    fn missing(&self, found: &BTreeSet<Vec<u8>>) -> usize {
        let arrived = found.iter().filter(|name| name.first() == Some(&PARTY)).count();
        self.parties.saturating_sub(arrived)
    }

    /// Refuses what several nodes cannot give, for this reason.
    fn check_one_node(&self, why: &'static str) -> Result<(), Error> {
        if self.context().nodes.len() == 1 { Ok(()) } else { Err(Error::misuse(why)) }
    }

    fn context(&self) -> &Arc<LeaseContext> {
        &self.locker.leases().context
    }
}

impl fmt::Debug for Latch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Latch")
            .field("key", &self.key.given().escape_ascii().to_string())
            .field("parties", &self.parties)
            .finish_non_exhaustive()
    }
}
