//! A job that one of several replicas runs: [`Locker::once`].
//!
//! ```text
//!  try ──granted──▶ the job ──ended, dropped, panicked──▶ key kept until `at_least`, then free
//!   │ ▲                └─ its process dies ─▶ key free after `at_most`
//!   │ └─ a short pause ── several at once, none of whom has a majority
//!   └─ a majority has another's value ──▶ skipped
//! ```
//!
//! The minimum is after `lockAtLeastFor` of ShedLock (<https://github.com/lukas-krecan/ShedLock>).

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use super::decided::{Decided, decided};
use crate::clock::Clock;
use crate::error::Error;
use crate::lock::{Held, LockGuard, LockKey, LockRequest, Locker};
use crate::options::Extend;
use crate::report::Holder;

/// How long a job may run, and how long its lock outlives its process, unless set otherwise.
const AT_MOST: Duration = Duration::from_secs(3_600);

/// A job that one of several replicas runs: [`Locker::once`].
#[must_use = "a job is run when `run` is awaited"]
#[derive(Clone)]
pub struct Once {
    locker: Locker,
    key: Box<[u8]>,
    period: Option<Duration>,
    at_least: Option<Duration>,
    at_most: Option<Duration>,
    is_fenced: bool,
}

/// What has become of a job: [`Once::run`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ran<T> {
    /// It was run here, and this is what it returned.
    Here(T),
    /// It was not run here: this one runs it, or has run it. What remains is how long its lock
    /// lasts at most.
    Elsewhere(Holder),
}

impl<T> Ran<T> {
    /// What the job returned, if it was run here.
    pub fn here(self) -> Option<T> {
        match self {
            Self::Here(value) => Some(value),
            Self::Elsewhere(_) => None,
        }
    }
}

impl Locker {
    /// Has one of several replicas run a job that all of them start at about the same time.
    ///
    /// ```no_run
    /// # async fn example(locker: quorlock::Locker) -> Result<(), quorlock::Error> {
    /// use std::time::Duration;
    /// use quorlock::recipe::Ran;
    ///
    /// # async fn send_invoices() -> Result<u32, quorlock::Error> { Ok(3) }
    /// let job = locker.once("invoices").per(Duration::from_secs(24 * 60 * 60));
    /// match job.run(|_held| send_invoices()).await? {
    ///     Ran::Here(count) => println!("{count} were sent"),
    ///     Ran::Elsewhere(holder) => println!("another does it: {holder}"),
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// The key is as for [`lock`](Self::lock), and so is the lock.
    pub fn once(&self, key: impl AsRef<[u8]>) -> Once {
        let (period, at_least, at_most) = (None, None, None);
        Once {
            locker: self.clone(),
            key: key.as_ref().into(),
            period,
            at_least,
            at_most,
            is_fenced: false,
        }
    }
}

impl Once {
    /// Once in each period of this length, as this machine's clock counts them since 1970 (UTC):
    /// the number of the present one stands in the key, behind a `/`. Without this, the caller
    /// names the run in the key, or runs it as often as the lock is free.
    pub fn per(self, period: Duration) -> Self {
        Self { period: Some(period), ..self }
    }

    /// How long the lock is kept after it was acquired, also where the job ends sooner. Choose it
    /// above what the replicas' clocks and timers differ by: a replica that is late finds the lock
    /// still held, and does not run the job again. Default: the [period](Self::per); without one,
    /// the lock is free as soon as the job has ended.
    pub fn at_least(self, at_least: Duration) -> Self {
        Self { at_least: Some(at_least), ..self }
    }

    /// How long the job may run, and how long the lock stays when its process dies: the TTL of the
    /// lock, which is not extended. A job that has not ended by then is dropped. Default: one hour,
    /// or [`at_least`](Self::at_least) where that is longer.
    pub fn at_most(self, at_most: Duration) -> Self {
        Self { at_most: Some(at_most), ..self }
    }

    /// Gives each run a fence, as [`LockRequest::fenced`].
    pub fn fenced(self) -> Self {
        Self { is_fenced: true, ..self }
    }

    /// The key of the run that is due now, with the period's number in it where there is a
    /// [period](Self::per).
    ///
    /// # Errors
    ///
    /// [`is_misuse`](Error::is_misuse) for a period of no length.
    pub fn key(&self) -> Result<LockKey, Error> {
        match self.period {
            Some(period) => period_key(&self.key, period, Clock::default().stamp().wall()),
            None => Ok(LockKey::new(self.key.to_vec())),
        }
    }

    /// Runs the job here, unless another runs it, or has run it and keeps its lock.
    ///
    /// It is run **at most once** for as long as its lock is kept: for [`at_least`](Self::at_least)
    /// after it has begun, whatever came of it, an error, a panic and a dropped future too; where
    /// its process died, for [`at_most`](Self::at_most). It is *not* run at all where the one that
    /// has begun it fails or dies: no other tries in its place before the lock is free, and then
    /// only one whose time has come. Like every lease, the lock is no fence: a process that was
    /// stopped in the middle of a step for longer than `at_most` finishes that step when it goes on
    /// ([`fenced`](Self::fenced)).
    ///
    /// The job is dropped when the lock is lost, and the error is one that
    /// [`is_lost`](Error::is_lost).
    ///
    /// # Errors
    ///
    /// Those of acquiring (as of [`LockRequest`]), but not that another holds the lock; those of
    /// the job; a lock that was lost. [`is_misuse`](Error::is_misuse) for a period of no length,
    /// and for an `at_least` above the `at_most`. [`is_contended`](Error::is_contended) when
    /// several replicas went on dividing the nodes between them for 10 s, so that none of them had
    /// a majority. [`is_closed`](Error::is_closed) without a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before the job has begun leaves no key behind. Later it drops the job,
    /// which counts as run: the lock is kept until `at_least` is over.
    pub async fn run<F, Fut, T, E>(self, job: F) -> Result<Ran<T>, E>
    where
        F: FnOnce(Held) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: From<Error>,
    {
        let at_least = self.minimum();
        let guard = match self.acquire().await? {
            Ran::Here(guard) => guard,
            Ran::Elsewhere(holder) => return Ok(Ran::Elsewhere(holder)),
        };
        let mut kept = Kept { guard: Some(guard), at_least };
        let done = kept.protect(job).await?;
        kept.let_go().await;
        done.map(Ran::Here)
    }

    /// Acquires the lock of the run that is due, or finds who has it: for a job that is no future.
    /// **The guard knows of no minimum**: end it by
    /// [`release_after`](LockGuard::release_after), with the `at_least`. Dropped, it frees the lock
    /// at once.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run), without those of the job.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves no key behind.
    pub async fn acquire(&self) -> Result<Ran<LockGuard>, Error> {
        let at_least = self.minimum();
        let at_most = self.at_most.unwrap_or_else(|| AT_MOST.max(at_least));
        if at_least > at_most {
            return Err(Error::misuse(format!(
                "a lock cannot be kept for at least {at_least:?} and at most {at_most:?}; the \
                 first must not be longer"
            )));
        }
        let key = self.key()?;
        match decided(|| self.request(&key, at_most)).await? {
            Decided::Ours(guard) => Ok(Ran::Here(guard)),
            Decided::Others(holder) => Ok(Ran::Elsewhere(holder)),
        }
    }

    fn minimum(&self) -> Duration {
        self.at_least.or(self.period).unwrap_or_default()
    }

    fn request(&self, key: &[u8], at_most: Duration) -> LockRequest {
        let request = self.locker.lock(key).ttl(at_most).auto_extend(Extend::Off);
        if self.is_fenced { request.fenced() } else { request }
    }
}

/// The key of the run that is due at this time since 1970, as [`Once::per`] has it.
///
/// # Errors
///
/// [`is_misuse`](Error::is_misuse) for a period of no length.
pub fn period_key(
    key: impl AsRef<[u8]>,
    period: Duration,
    since_1970: Duration,
) -> Result<LockKey, Error> {
    let number = since_1970.as_nanos().checked_div(period.as_nanos());
    let number = number.ok_or_else(|| Error::misuse("a period of no length; give a longer one"))?;
    let number = format!("/{number}");
    Ok(LockKey::new([key.as_ref(), number.as_bytes()].concat()))
}

/// A lock that is kept for its time, however its job ends.
struct Kept {
    /// `None` when it was let go.
    guard: Option<LockGuard>,
    at_least: Duration,
}

impl Kept {
    /// Does the job while the lock is held.
    async fn protect<F, Fut, T, E>(&self, job: F) -> Result<Result<T, E>, Error>
    where
        F: FnOnce(Held) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        match &self.guard {
            Some(guard) => guard.protect(job(Held::new(guard))).await,
            None => Err(Error::closed("the job has ended")),
        }
    }

    /// Ends the lock when its time is over.
    async fn let_go(&mut self) {
        let Some(guard) = self.guard.take() else { return };
        if guard.is_valid() {
            // What the nodes say changes nothing for a job that is done; observers are told.
            let _ = guard.release_after(self.at_least).await;
        } else {
            // By our clock alone it may be over, and the nodes keep it for what is left of it.
            drop(guard.forget());
        }
    }
}

impl Drop for Kept {
    /// The job was dropped, or has panicked, or the lock was lost.
    fn drop(&mut self) {
        let letting_go = pin!(self.let_go());
        // The nodes are told at the first poll, and what they say is not waited for.
        let _ = letting_go.poll(&mut Context::from_waker(Waker::noop()));
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = LockKey::new(self.key.to_vec());
        f.debug_struct("Once").field("key", &key).finish_non_exhaustive()
    }
}
