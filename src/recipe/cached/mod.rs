//! A cache whose values are computed once: [`Cached`].
//!
//! ```text
//!  ask ──another of this process looks──▶ what that one finds
//!   └─ look ──fresh──▶ the value
//!        ├─ nearly over, or stale ──▶ is the lock free? ──no──▶ the value as it is
//!        │                                             └─yes─▶ compute, store ─▶ the new value
//!        └─ none ──▶ lock ──ours──▶ look again ──none──▶ compute, store ──▶ the value
//!                     └─ another's ─▶ wait, as a reader of it ──▶ look ──▶ the value
//!                                                                   └─ none ─▶ wait for the lock
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `error` | why there is no value |
//! | `entry` | what is stored, and when it is computed anew: pure |
//! | `flight` | one look for a key in a process, with the computation behind it |
//! | `options` | how values are treated |
//! | `others` | what other processes compute anew |
//! | `store` | where values are kept |

mod entry;
mod error;
mod flight;
mod options;
mod others;
mod store;

use std::fmt;
use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use self::entry::{Entry, Value};
pub use self::error::CachedError;
use self::flight::{Flight, Flights};
use self::options::TIME_MAX;
pub use self::options::{CacheOptions, OnUnavailable};
use self::others::Others;
pub use self::store::{Store, Stored};
use super::decided::{Decided, decided};
use super::store_error::StoreError;
use super::until::Until;
use crate::clock::Clock;
use crate::entropy::Entropy;
use crate::error::Error;
use crate::lock::{LockGuard, LockRequest, Locker};

/// Lets other tasks go on.
async fn yield_now() {
    let mut has_yielded = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut has_yielded, true) {
            return std::task::Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

/// What a key's lock has behind the key.
const LOCK: &[u8] = b"/computed";

/// A cache whose values are computed once, also where many processes miss the same one: the guard
/// against cache stampedes. Cheap to clone; clones share what is under way.
///
/// Who finds no value takes the lock of its key and computes it, while the others wait, each
/// process with one of its callers, for a read lock of it; then all find it at once. A value that
/// is nearly over is computed anew by one of those who read it, and the others have the old one
/// meanwhile.
///
/// A cache is no truth: a value may be computed twice where the lock is lost meanwhile, and one
/// that was stored late may replace a newer one. Nothing depends on either but work.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// use std::time::Duration;
/// use quorlock::recipe::Cached;
/// use quorlock::{Client, Error, Locker};
///
/// let locker = Locker::single("redis://a:6379")?.build()?;
/// let cache: Cached<Client, Error> = Cached::new(Client::new("redis://a:6379")?, locker);
/// # async fn render() -> Result<Option<Vec<u8>>, Error> { Ok(None) }
/// let page = cache.get("page:7", Duration::from_secs(60), || render()).await?;
/// # Ok(()) }
/// ```
pub struct Cached<S, E> {
    inner: Arc<Inner<S, E>>,
}

struct Inner<S, E> {
    store: S,
    locker: Locker,
    options: CacheOptions,
    clock: Clock,
    entropy: OnceLock<Entropy>,
    /// Who looks for a value, and computes it where there is none, and who waits for that.
    flights: Arc<Flights<Result<Value, CachedError<E>>>>,
    /// Who computes a value anew that is there; none waits for that.
    refreshes: Arc<Flights<()>>,
    /// What other processes compute anew.
    others: Others,
}

impl<S, E> Clone for Cached<S, E> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<S: Store, E> Cached<S, E> {
    /// A cache of what is in this store, whose computations exclude each other by this locker's
    /// locks: that of the key `k` is `k/computed`, with round brackets for braces. Does no I/O.
    /// Give the store's keys, or the locker, a prefix where other things have such names.
    pub fn new(store: S, locker: Locker) -> Self {
        Self::of(store, locker, CacheOptions::default())
    }

    /// As [`new`](Self::new), with these options.
    ///
    /// # Errors
    ///
    /// [`is_misuse`](Error::is_misuse) for an option that cannot be.
    pub fn with_options(store: S, locker: Locker, options: CacheOptions) -> Result<Self, Error> {
        options.check()?;
        Ok(Self::of(store, locker, options))
    }

    fn of(store: S, locker: Locker, options: CacheOptions) -> Self {
        let (clock, entropy) = (Clock::default(), OnceLock::new());
        let (flights, refreshes) = (Arc::new(Flights::new()), Arc::new(Flights::new()));
        let others = Others::default();
        let inner = Inner { store, locker, options, clock, entropy, flights, refreshes, others };
        Self { inner: Arc::new(inner) }
    }

    /// The value of this key: from the store, or computed now and stored for this time. `None`: the
    /// computation has said that there is none.
    ///
    /// Callers of one process that ask for a key at the same time share one look into the store. A
    /// caller that computes anew what is nearly over waits for that itself, and the others do not.
    /// Callers of one process that find nothing share one computation, which is that of one of
    /// them. It is not dropped when its lock is lost; then what it comes to is not stored. A
    /// computation must not ask for its own key, nor two for each other's: they would wait without
    /// end.
    ///
    /// # Errors
    ///
    /// [`CachedError::Compute`]: there is no value, and the computation has failed. Each that
    /// waited for it in this process gets its error, once: nothing is stored, and who asks next
    /// computes anew. Where there is a value that was to be computed anew, that is given instead,
    /// and the next attempt is made after as long as the value took. [`CachedError::Store`] where
    /// the store cannot be read. (Where it cannot be written, the value is returned all the same.)
    /// [`CachedError::Lock`] as of [`LockRequest`](crate::LockRequest), as when another process
    /// computes for longer than the locker's wait; and where no lock can be had, if
    /// [`OnUnavailable`] says so.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops its computation. Another of those who wait for it begins anew.
    pub async fn get<F, Fut>(
        &self,
        key: impl AsRef<[u8]>,
        ttl: Duration,
        compute: F,
    ) -> Result<Option<Arc<[u8]>>, CachedError<E>>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<Option<Vec<u8>>, E>>,
    {
        let (key, inner) = (key.as_ref(), &*self.inner);
        if ttl < Duration::from_millis(1) || ttl > TIME_MAX {
            let what = format!("a value is kept for {ttl:?}; give from 1 ms to ten years");
            return Err(Error::misuse(what).into());
        }
        loop {
            let flight = match inner.flights.join(key) {
                Flight::First(flight) => flight,
                Flight::Other(flight) => match flight.outcome().await {
                    Some(outcome) => return outcome,
                    None => continue,
                },
            };
            // In boxes: of many callers few come so far, and each has room for all that it may do.
            let entry = match Box::pin(inner.look(key)).await {
                Ok(Some(entry)) => entry,
                found => {
                    let mut shared = None;
                    let outcome = match found {
                        Err(error) => Err(error),
                        _ => Box::pin(inner.bring(key, ttl, None, compute, &mut shared)).await,
                    };
                    flight.land(outcome.clone());
                    if shared.is_some() {
                        // Those who wait go on before the nodes are told.
                        yield_now().await;
                    }
                    return outcome;
                }
            };
            // The others have what is there. Of all who are to compute it anew, one does.
            flight.land(Ok(entry.value.clone()));
            if !inner.is_due(&entry) || inner.others.are_computing(key, inner.clock.now()) {
                return Ok(entry.value);
            }
            return match inner.refreshes.join(key) {
                Flight::First(_refresh) => {
                    let present = entry.clone();
                    let brought =
                        Box::pin(inner.bring(key, ttl, Some(entry), compute, &mut None)).await;
                    brought.or_else(|error| inner.keep(key, present, error))
                }
                Flight::Other(_) => Ok(entry.value),
            };
        }
    }
}

impl<S: Store, E> Inner<S, E> {
    async fn look(&self, key: &[u8]) -> Result<Option<Entry>, CachedError<E>> {
        let Some(stored) = self.store.get(key).await? else { return Ok(None) };
        // What another has stored there is not replaced.
        let no_entry = || StoreError::Unexpected("a value that is no entry of a cache".into());
        Ok(Some(entry::decode(&stored).ok_or_else(no_entry)?))
    }

    /// Whether this reader is to compute the value anew.
    fn is_due(&self, entry: &Entry) -> bool {
        entry.fresh.is_zero() || entry.is_due(self.options.early, self.drawn())
    }

    /// A number above 0 and up to 1. Without random numbers no value is computed early.
    fn drawn(&self) -> f64 {
        if self.entropy.get().is_none() {
            let Ok(entropy) = Entropy::from_system() else { return 1.0 };
            // Another caller may have been first.
            let _ = self.entropy.set(entropy);
        }
        let one = Duration::from_secs(1);
        let drawn = self.entropy.get().map(|entropy| entropy.between(Duration::from_nanos(1), one));
        drawn.unwrap_or(one).as_secs_f64()
    }

    /// Has the value computed, unless another does that or has done it.
    async fn bring<F, Fut>(
        &self,
        key: &[u8],
        ttl: Duration,
        present: Option<Entry>,
        compute: F,
        shared: &mut Option<LockGuard>,
    ) -> Result<Value, CachedError<E>>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<Option<Vec<u8>>, E>>,
    {
        let turn = match present {
            Some(entry) => self.turn_to_refresh(key, entry).await?,
            None => self.turn_to_compute(key, shared).await?,
        };
        let guard = match turn {
            Turn::Ours(guard) => guard,
            Turn::Others(value) => return Ok(value),
        };
        let began = self.clock.now();
        let value = compute().await.map_err(|error| CachedError::Compute(Arc::new(error)))?;
        let took = self.clock.now().since(began);
        let value: Value = value.map(Into::into);
        if guard.as_ref().is_none_or(LockGuard::is_valid) {
            let life = self.life(&value, ttl).max(Duration::from_millis(1));
            let stale = self.options.stale;
            let bytes = entry::encode(&value, took, stale);
            // Where it cannot be stored, who asks next computes it anew.
            let _ = self.store.put(key, &bytes, life.saturating_add(stale)).await;
        }
        Ok(value)
    }

    /// A value that is there could not be computed anew: it is given as it is, and after a while
    /// the next reader tries.
    fn keep(
        &self,
        key: &[u8],
        present: Entry,
        error: CachedError<E>,
    ) -> Result<Value, CachedError<E>> {
        let fails = self.options.on_unavailable == OnUnavailable::Fail && present.fresh.is_zero();
        if fails && matches!(error, CachedError::Lock(_)) {
            return Err(error);
        }
        self.others.note(key, self.clock.now(), present.took);
        Ok(present.value)
    }

    /// None waits for a value that is there: if another computes it anew, it is taken as it is.
    async fn turn_to_refresh(&self, key: &[u8], present: Entry) -> Result<Turn, CachedError<E>> {
        let failed = match self.lock(key).try_acquire().await {
            Ok(None) => {
                self.others.note(key, self.clock.now(), present.took);
                return Ok(Turn::Others(present.value));
            }
            Ok(Some(guard)) => {
                return Ok(match self.look(key).await? {
                    // It was computed anew between the look and the lock.
                    Some(newer) if newer.fresh > present.fresh => Turn::Others(newer.value),
                    _ => Turn::Ours(Some(guard)),
                });
            }
            Err(error) => error,
        };
        match self.options.on_unavailable {
            OnUnavailable::Compute if is_unavailable(&failed) => Ok(Turn::Ours(None)),
            OnUnavailable::Stale if is_unavailable(&failed) => Ok(Turn::Others(present.value)),
            _ => Err(failed.into()),
        }
    }

    /// One of all processes has the lock. The others wait with a read lock, which all of them are
    /// given at once when that one has ended. Where it has stored nothing, they wait in turn.
    async fn turn_to_compute(
        &self,
        key: &[u8],
        as_reader: &mut Option<LockGuard>,
    ) -> Result<Turn, CachedError<E>> {
        match decided(|| self.lock(key)).await {
            Ok(Decided::Ours(guard)) => {
                return Ok(match self.look(key).await? {
                    Some(entry) => Turn::Others(entry.value),
                    None => Turn::Ours(Some(guard)),
                });
            }
            Ok(Decided::Others(_)) => {}
            Err(error) => return Ok(self.without_lock(error)?),
        }
        let shared = match self.locker.read(lock_name(key)).await {
            Ok(shared) => shared,
            Err(error) => return Ok(self.without_lock(error)?),
        };
        if let Some(entry) = self.look(key).await? {
            *as_reader = Some(shared);
            return Ok(Turn::Others(entry.value));
        }
        drop(shared);
        match self.lock(key).until(|| self.look(key)).await {
            Ok(Until::Found(entry)) => Ok(Turn::Others(entry.value)),
            Ok(Until::Held(guard)) => Ok(Turn::Ours(Some(guard))),
            Err(CachedError::Lock(error)) if is_unavailable(&error) && self.computes_alone() => {
                Ok(Turn::Ours(None))
            }
            Err(error) => Err(error),
        }
    }

    /// What is done about a value that is not there, where no lock can be had.
    fn without_lock(&self, error: Error) -> Result<Turn, Error> {
        match self.options.on_unavailable {
            OnUnavailable::Compute if is_unavailable(&error) => Ok(Turn::Ours(None)),
            _ => Err(error),
        }
    }

    fn computes_alone(&self) -> bool {
        self.options.on_unavailable == OnUnavailable::Compute
    }

    fn lock(&self, key: &[u8]) -> LockRequest {
        self.locker.lock(lock_name(key))
    }

    /// For how long a value is fresh that is stored now.
    fn life(&self, value: &Value, ttl: Duration) -> Duration {
        let ttl = self.options.negative_ttl.filter(|_| value.is_none()).unwrap_or(ttl);
        ttl.mul_f64(1.0 - self.options.jitter * (1.0 - self.drawn()))
    }
}

/// What the lock of a key is called. A brace could end no tag, and readers of such a lock have no
/// queue: keys that differ in their braces share a lock.
fn lock_name(key: &[u8]) -> Vec<u8> {
    let name = key.iter().chain(LOCK).map(|byte| match byte {
        b'{' => b'(',
        b'}' => b')',
        other => *other,
    });
    name.collect()
}

/// Whose turn it is to compute.
enum Turn {
    /// Ours, under this lock, or without one.
    Ours(Option<LockGuard>),
    /// Another's, or it was: this is the value to take.
    Others(Value),
}

/// Whether no lock can be had, though none need be held.
fn is_unavailable(error: &Error) -> bool {
    error.is_retryable() && !error.is_contended()
}

impl<S, E> fmt::Debug for Cached<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cached").field("options", &self.inner.options).finish_non_exhaustive()
    }
}
