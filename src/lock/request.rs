//! A lock request: await it, or call `try_acquire` or `run`.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::time::Duration;

use super::acquire::Acquire;
use super::guard::LockGuard;
use super::held::Held;
use super::key::LockKey;
use super::ticketed::BY_TICKET;
use crate::error::Error;
use crate::lease::{AcquireSpec, Acquiring};
use crate::options::{Extend, Retry, whole_millis};

/// A lock request: await it, or call [`try_acquire`](Self::try_acquire) or [`run`](Self::run).
///
/// ```no_run
/// # async fn example(locker: quorlock::Locker) -> Result<(), quorlock::Error> {
/// use std::time::Duration;
///
/// let guard = locker.lock("order:42").ttl(Duration::from_secs(30)).await?;
/// # Ok(()) }
/// ```
///
/// No lock is reentrant by itself (for read locks see [`readers`](crate::manual::readers)): who
/// holds the guard and asks again, and not [`within`](Self::within) it, waits until
/// [`wait`](Self::wait) is over, and the error says that a guard of this very locker holds the
/// lock. An observer is told so at once, by
/// [`Event::Waiting`](crate::Event::Waiting). It is no error at once, for two futures of one task
/// (`join!`) may rightly wait for one another, and look the same.
#[must_use = "a lock that is asked for is acquired when this is awaited"]
pub struct LockRequest {
    /// The error of a bad key is told when the lock is asked for.
    spec: Result<AcquireSpec, Error>,
    on_loss: OnLoss,
}

/// What [`LockRequest::run`] does with its work when the lock is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum OnLoss {
    /// Drops it, and returns an error that [`is_lost`](Error::is_lost).
    #[default]
    Cancel,
    /// Lets it go on; [`Held::lost`] and [`Held::is_valid`] tell the work.
    Signal,
}

impl LockRequest {
    pub(crate) fn new(spec: Result<AcquireSpec, Error>) -> Self {
        Self { spec, on_loss: OnLoss::default() }
    }

    pub(super) fn into_spec(self) -> Result<AcquireSpec, Error> {
        self.spec
    }

    fn with(mut self, set: impl FnOnce(&mut AcquireSpec)) -> Self {
        if let Ok(spec) = &mut self.spec {
            set(spec);
        }
        self
    }

    /// An error of the check is told when the lock is asked for, unless there is an earlier one.
    fn check(mut self, check: impl FnOnce(&AcquireSpec) -> Result<(), Error>) -> Self {
        let checked = self.spec.as_ref().map_or(Ok(()), check);
        if let Err(error) = checked {
            self.spec = Err(error);
        }
        self
    }

    /// How long the lock lives unless it is extended, instead of the locker's default.
    pub fn ttl(self, ttl: Duration) -> Self {
        let checked = self.check(|spec| spec.leases.context.admit_ttl(ttl));
        checked.with(|spec| spec.ttl = whole_millis(ttl))
    }

    /// Keeps the lock from others for `delay` after its lease has expired. For work that cannot be
    /// stopped when the lock is lost, such as a write that is on its way. Default: zero. Parts of a
    /// millisecond count as a whole one.
    ///
    /// The nodes keep the keys for the TTL and the delay; the guard is valid for the TTL alone.
    /// Releasing the guard, or dropping it while it is valid, deletes the keys at once. A guard
    /// that is dropped after its lease has expired leaves the keys to their end, and after a crash
    /// others wait for both. Clients of other libraries are kept out as well. There is no delay
    /// where the keys were deleted from the nodes. After Consul's lock-delay
    /// (<https://developer.hashicorp.com/consul/docs/automate/session>).
    ///
    /// # Errors
    ///
    /// [`is_misuse`](Error::is_misuse), when the lock is asked for: the TTL and the delay together
    /// are more than a TTL may be, or the delay is above 49 days.
    pub fn lock_delay(mut self, delay: Duration) -> Self {
        let set = self.spec.as_mut().map(|spec| spec.resource.set_lock_delay(delay));
        if let Ok(Err(error)) = set {
            self.spec = Err(error);
        }
        self
    }

    /// How long to wait for the lock, instead of the locker's default. Zero tries once.
    pub fn wait(self, wait: Duration) -> Self {
        self.with(|spec| spec.wait = Some(wait))
    }

    /// Waits for the lock as long as it takes another holder to let go; without a quorum, no longer
    /// than [`unavailable_wait`](Self::unavailable_wait).
    pub fn wait_forever(self) -> Self {
        self.with(|spec| spec.wait = None)
    }

    /// How long to go on trying while there is no quorum, instead of the locker's default; see
    /// [`LockerBuilder::unavailable_wait`](crate::LockerBuilder::unavailable_wait).
    pub fn unavailable_wait(self, wait: Duration) -> Self {
        self.with(|spec| spec.unavailable_wait = wait)
    }

    /// When to try again, instead of the locker's default; [`wait`](Self::wait) ends the tries all
    /// the same.
    pub fn retry(self, retry: Retry) -> Self {
        self.check(|_| retry.check()).with(|spec| spec.own_retry = Some(Box::new(retry)))
    }

    /// How long the lock is extended by itself, instead of the locker's default.
    pub fn auto_extend(self, extend: Extend) -> Self {
        self.with(|spec| spec.extend = extend)
    }

    /// Gives the lock a [fence](LockGuard::fence), or fencing token: a number that rises with every
    /// holder, for what the lock protects to refuse one who comes too late (see
    /// [`guarded`](crate::guarded)). The nodes are asked for it together with the lock, so as a
    /// rule it costs no round trip more, and one where the first number is too low. A user with few
    /// rights needs those of `fence.lua` ([`compatibility`](crate::manual::compatibility)).
    ///
    /// # Errors
    ///
    /// Beside those of an unfenced lock: [`is_misuse`](Error::is_misuse) for a key whose fence can
    /// have no name, [`is_unavailable`](Error::is_unavailable) when no majority takes a fence.
    /// There is never a guard without one.
    pub fn fenced(self) -> Self {
        let checked = self.check(|spec| spec.resource.check_fences());
        checked.with(|spec| spec.fenced = true)
    }

    /// Acquires the lock in the order of arrival, also where this locker has met no other at the
    /// key within the last second. It stands in the key's queue, which one of the nodes keeps,
    /// behind all who wait there, and asks the other nodes when its turn comes: one round trip more
    /// where the lock is free. (A request that is not fair asks all nodes at once then, and may
    /// come first in the moment of a hand-over.)
    ///
    /// The order is that in which requests reach the queue's node, while that can be reached; where
    /// it fails, another begins a new queue. While it answers, an outage of the others is found
    /// within seconds, and not within [`unavailable_wait`](Self::unavailable_wait). Of the tasks of
    /// one locker one stands there at a time, and they follow one another in their own order.
    /// Requests that are not fair, locks of several keys, and clients of other libraries keep to no
    /// order, nor does
    /// [`try_acquire`](Self::try_acquire), which ignores this option.
    ///
    /// # Errors
    ///
    /// [`is_misuse`](Error::is_misuse), when the lock is asked for, where there is no queue: for
    /// several keys, a key with a brace that ends no tag, a `wait` of zero, and a
    /// [`retry`](Self::retry) by [`Retry::custom`] or with [`Retry::tries_max`].
    pub fn fair(self) -> Self {
        self.with(|spec| spec.fair = true)
    }

    /// Acquires the lock in the order of arrival, also when a node is lost: as
    /// [`fair`](Self::fair), but every node keeps a queue. A request asks all nodes for their
    /// highest ticket, takes a higher one, and tells it to all; the lowest ticket is next (Lamport,
    /// "A New Solution of Dijkstra's Concurrent Programming Problem", CACM 17(8), 1974).
    ///
    /// The promise: if a majority has recorded the ticket of request A before request B is sent, A
    /// gets the lock before B. It holds while A waits, and while that majority keeps its data and
    /// answers A at least every 1.5 s. If two requests overlap, either may be first. A node that
    /// has not answered A once does not count for A any more; when no majority is left, A takes a
    /// new ticket and loses its place. The tasks of one locker wait in its own line first, and have
    /// no ticket until their turn comes.
    ///
    /// A free lock takes one round trip, or two with a [fence](Self::fenced); where others wait it
    /// takes one more. Each that waits writes to every node twice a second. Requests without
    /// `fair_strict` may come in between, and can keep those with it waiting without end: use it
    /// for every request of the key. [`try_acquire`](Self::try_acquire) has the lock only where
    /// none waits. A user with few rights needs those of `ticket_ask.lua`
    /// ([`compatibility`](crate::manual::compatibility)).
    ///
    /// # Errors
    ///
    /// As [`fair`](Self::fair), and [`is_misuse`](Error::is_misuse) for read locks and slots.
    pub fn fair_strict(mut self) -> Self {
        self.spec = self.spec.and_then(|mut spec| {
            spec.resource = spec.resource.by_ticket(&BY_TICKET)?;
            Ok(spec)
        });
        self.fair()
    }

    /// What kind of lock this is, for metrics, instead of the locker's; see
    /// [`LockerBuilder::class`](crate::LockerBuilder::class).
    pub fn class(self, class: &'static str) -> Self {
        self.with(|spec| spec.resource.class = spec.leases.context.classes.number(class))
    }

    /// Checks what options say only together, where one of the rare ones is set.
    #[inline]
    fn check_whole(&mut self, is_waiting: bool) {
        let is_rare = |spec: &AcquireSpec| spec.fair || !spec.resource.lock_delay().is_zero();
        if self.spec.as_ref().is_ok_and(is_rare) {
            self.check_rare(is_waiting);
        }
    }

    #[inline(never)]
    fn check_rare(&mut self, is_waiting: bool) {
        let Ok(spec) = &self.spec else { return };
        let life = spec.leases.context.admit_life(spec.ttl, &spec.resource);
        let order = if spec.fair && is_waiting { spec.check_fair() } else { Ok(()) };
        if let Err(error) = life.and(order) {
            self.spec = Err(error);
        }
    }

    /// What [`run`](Self::run) does with its work when the lock is lost. Default: drops it.
    pub fn on_loss(mut self, on_loss: OnLoss) -> Self {
        self.on_loss = on_loss;
        self
    }

    /// Acquires the lock, as `.await` on the request does: a future for what takes no
    /// [`IntoFuture`], such as `spawn`, `try_join_all` and `block_on`.
    #[inline]
    pub fn acquire(mut self) -> Acquire {
        self.check_whole(true);
        Acquire::new(self.spec)
    }

    /// Tries once. `Ok(None)`: another holds the lock.
    ///
    /// # Errors
    ///
    /// [`is_unavailable`](Error::is_unavailable) when too few nodes could be asked,
    /// [`is_full`](Error::is_full), [`is_authentication`](Error::is_authentication),
    /// [`is_too_slow`](Error::is_too_slow), [`is_misuse`](Error::is_misuse),
    /// [`is_closed`](Error::is_closed). What was granted is being
    /// released then: the release is sent, and not awaited.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves no key behind.
    pub async fn try_acquire(mut self) -> Result<Option<LockGuard>, Error> {
        self.check_whole(false);
        match Acquiring::once(self.spec).await {
            Ok(hold) => Ok(Some(LockGuard::new(hold))),
            Err(error) if error.is_contended() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Acquires the lock, waits for `work`, and releases the lock, whatever comes of the work.
    ///
    /// When the lock is lost before the work is done, the work is dropped and the error is one that
    /// [`is_lost`](Error::is_lost), unless [`on_loss`](Self::on_loss) says otherwise. The clocks
    /// are read before each step of the work, and no step is interrupted: one that runs past the
    /// end and finishes the work returns its value, as does work whose release is not known to have
    /// arrived. Steps that must not come too late check [`Held::is_valid`] themselves.
    ///
    /// The error is the work's own, which that of the lock becomes by `From`: `anyhow::Error`,
    /// `Box<dyn Error>`, an `enum` with a variant for it. As the last expression of a function the
    /// call takes it from there. Elsewhere the compiler cannot know it, and the work names it once:
    ///
    /// ```no_run
    /// # async fn example(locker: quorlock::Locker) -> Result<(), quorlock::Error> {
    /// let total = locker
    ///     .lock("order:42")
    ///     .run(|held| async move {
    ///         println!("held for {:?} more", held.remaining());
    ///         Ok::<_, quorlock::Error>(7)
    ///     })
    ///     .await?;
    /// # assert_eq!(total, 7);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of acquiring (as `.await`), those of the work, and a lock that was lost.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work and releases the lock.
    pub async fn run<F, Fut, T, E>(self, work: F) -> Result<T, E>
    where
        F: FnOnce(Held) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: From<Error>,
    {
        let on_loss = self.on_loss;
        let guard = self.await?;
        let work = work(Held::new(&guard));
        work_under(guard, on_loss, work).await
    }

    /// As [`run`](Self::run), for an async closure, which may borrow from its surroundings. (The
    /// future of `run` can be required to be `Send`; the future of this one is `Send` when the
    /// closure's is, which only a direct call can see.)
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    ///
    /// # Cancel safety
    ///
    /// As [`run`](Self::run).
    pub async fn run_async<F, T, E>(self, work: F) -> Result<T, E>
    where
        F: AsyncFnOnce(Held) -> Result<T, E>,
        E: From<Error>,
    {
        let on_loss = self.on_loss;
        let guard = self.await?;
        let work = work(Held::new(&guard));
        work_under(guard, on_loss, work).await
    }
}

/// Does the work under the guard, and releases the lock; what a loss does to the work is as asked.
async fn work_under<T, E: From<Error>>(
    guard: LockGuard,
    on_loss: OnLoss,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let done = match on_loss {
        OnLoss::Cancel => guard.protect(work).await?,
        OnLoss::Signal => work.await,
    };
    // What the nodes say of the release changes nothing for work that is done.
    let _ = guard.release().await;
    done
}

impl IntoFuture for LockRequest {
    type Output = Result<LockGuard, Error>;
    type IntoFuture = Acquire;

    #[inline]
    fn into_future(self) -> Acquire {
        self.acquire()
    }
}

impl fmt::Debug for LockRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.spec.as_ref().ok().map(|spec| LockKey::new(spec.resource.given().to_vec()));
        f.debug_struct("LockRequest").field("key", &key).finish_non_exhaustive()
    }
}
