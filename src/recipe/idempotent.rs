//! A request that is done once, however often it comes: [`Locker::idempotent`].
//!
//! ```text
//!  look ──outcome──▶ Again       lock ──▶ mark ──set now──▶ the work, its outcome stored ──▶ First
//!    └─ none, or begun ─▶ wait ───┘        └─ was there, and no outcome ─▶ Unknown
//! ```
//!
//! The mark is what excludes: it is set if there is none, before the work, and no one takes it
//! over. The lock is for those who wait: it is held while the work is done, so a mark that is found
//! under it belongs to one that has died, or has lost the lock.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use super::store_error::StoreError;
use super::until::Until;
use crate::client::Client;
use crate::error::Error;
use crate::lock::{LockKey, Locker};

/// What stands under the mark's key while the work is done, or was begun.
const BEGUN: &[u8] = b"begun";

/// What stands in front of an outcome.
const DONE: &[u8] = b"done:";

/// A request that is done once: [`Locker::idempotent`].
#[must_use = "a request is done when `run` is awaited"]
#[derive(Clone)]
pub struct Idempotent {
    locker: Locker,
    client: Client,
    id: Box<[u8]>,
    keep: Duration,
    wait: Option<Duration>,
}

/// What has become of a request: [`Idempotent::run`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Done {
    /// It was done now, with this outcome.
    First(Vec<u8>),
    /// It was done before, with this outcome.
    Again(Vec<u8>),
    /// It was begun before, and whether it was done is not known: its process has died, or its work
    /// has failed, or its outcome could not be stored; or it is still being done, by one that has
    /// lost the lock. It is not begun again.
    Unknown,
}

impl Done {
    /// The outcome, if it is known.
    pub fn outcome(self) -> Option<Vec<u8>> {
        match self {
            Self::First(outcome) | Self::Again(outcome) => Some(outcome),
            Self::Unknown => None,
        }
    }
}

impl Locker {
    /// Has the request of this id done once, also where it comes several times, at once or later,
    /// to any process: as a payment that a client sends again because it saw no answer.
    ///
    /// `client` keeps, for so long, that the request was begun and what it came to: under the id
    /// with `/outcome` behind it. Choose a server that evicts nothing and forgets nothing, and a
    /// time that is longer than any work takes and any client repeats its request.
    ///
    /// ```no_run
    /// # async fn example(
    /// #     locker: quorlock::Locker,
    /// #     client: quorlock::Client,
    /// # ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// # async fn charge() -> Result<String, quorlock::Error> { Ok("receipt".into()) }
    /// use std::time::Duration;
    /// use quorlock::recipe::Done;
    ///
    /// let day = Duration::from_secs(24 * 60 * 60);
    /// let request = locker.idempotent(&client, "payment:7f3a", day);
    /// let done = request.run::<_, _, Box<dyn std::error::Error + Send + Sync>>(|| async {
    ///     Ok(charge().await?.into_bytes())
    /// });
    /// match done.await? {
    ///     Done::First(receipt) | Done::Again(receipt) => println!("{receipt:?}"),
    ///     _ => println!("ask the bank: whether it was charged is not known"),
    /// }
    /// # Ok(()) }
    /// ```
    pub fn idempotent(&self, client: &Client, id: impl AsRef<[u8]>, keep: Duration) -> Idempotent {
        let (locker, client) = (self.clone(), client.clone());
        Idempotent { locker, client, id: id.as_ref().into(), keep, wait: None }
    }
}

impl Idempotent {
    /// How long to wait for one that does the work, instead of the locker's default.
    pub fn wait(self, wait: Duration) -> Self {
        Self { wait: Some(wait), ..self }
    }

    /// Does the work, unless it was done or begun before; waits for one that is doing it.
    ///
    /// The work is begun at most once, for as long as the server keeps the mark. It is not dropped
    /// when the lock is lost: no other begins it anyway. Return as an outcome what is certain, a
    /// refusal too: after an error it is [`Done::Unknown`] for all who repeat the request.
    ///
    /// # Errors
    ///
    /// Those of the work; [`StoreError`] when the server of the outcomes refuses or does not
    /// answer: whether the work was begun is not known then, if it was not before; and those of
    /// acquiring the lock of the id (as of [`LockRequest`](crate::LockRequest)), such as
    /// [`is_contended`](Error::is_contended) when the one that does the work takes longer than the
    /// wait. [`is_misuse`](Error::is_misuse) for a time to keep of less than a millisecond.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before the work has begun leaves nothing, or the mark alone: then it is
    /// [`Done::Unknown`] from then on. Later it drops the work, and it is so, too.
    pub async fn run<F, Fut, E>(self, work: F) -> Result<Done, E>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<Vec<u8>, E>>,
        E: From<Error> + From<StoreError>,
    {
        if self.keep < Duration::from_millis(1) {
            let what = format!("an outcome is kept for {:?}; give at least 1 ms", self.keep);
            return Err(Error::misuse(what).into());
        }
        let request = self.locker.lock(&self.id);
        let request = match self.wait {
            Some(wait) => request.wait(wait),
            None => request,
        };
        let look = || async { self.look().await.map_err(E::from) };
        let guard = match request.until(look).await? {
            Until::Found(outcome) => return Ok(Done::Again(outcome)),
            Until::Held(guard) => guard,
        };
        if !self.mark(BEGUN, b"NX").await? {
            return Ok(match self.look().await? {
                Some(outcome) => Done::Again(outcome),
                None => Done::Unknown,
            });
        }
        let outcome = work().await?;
        // It was done. Where its outcome cannot be stored, it is unknown to those who repeat it.
        let _ = self.mark(&[DONE, &outcome].concat(), b"XX").await;
        drop(guard);
        Ok(Done::First(outcome))
    }

    /// The outcome, if it is known: `None` where there is no mark, and where there is no more.
    async fn look(&self) -> Result<Option<Vec<u8>>, StoreError> {
        let reply = self.client.command([b"GET".as_slice(), &self.name()]).await?;
        let reply = StoreError::check(reply)?;
        let bytes = reply.as_bytes().unwrap_or_default();
        match bytes.strip_prefix(DONE) {
            Some(outcome) => Ok(Some(outcome.to_vec())),
            None if reply.is_null() || bytes == BEGUN => Ok(None),
            None => Err(StoreError::unexpected(&reply)),
        }
    }

    /// Sets it if it is not there, or if it is; whether that was so.
    async fn mark(&self, value: &[u8], condition: &[u8]) -> Result<bool, StoreError> {
        let keep = self.keep.as_millis().to_string();
        let name = self.name();
        let words = [b"SET".as_slice(), &name, value, condition, b"PX", keep.as_bytes()];
        let reply = StoreError::check(self.client.command(words).await?)?;
        Ok(!reply.is_null())
    }

    fn name(&self) -> Vec<u8> {
        [&self.id, b"/outcome".as_slice()].concat()
    }
}

impl fmt::Debug for Idempotent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = LockKey::new(self.id.to_vec());
        f.debug_struct("Idempotent").field("id", &id).field("keep", &self.keep).finish()
    }
}
