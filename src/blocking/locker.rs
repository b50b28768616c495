//! The locker, and a lock request.

use std::fmt;
use std::time::Duration;

use super::guard::LockGuard;
use super::latch::{Barrier, Latch};
use super::park;
use crate::error::Error;
use crate::lease::{OwnerToken, Release, Revocation, Shutdown};
use crate::lock::{self, LockerBuilder};
use crate::options::{Driver, Extend, Retry};
use crate::report::{Inspection, NodeHealth, NodeReport, WaitStats};

impl LockerBuilder {
    /// Builds a locker for plain threads. Its connections are served by a thread of its own,
    /// whatever [`driver`](Self::driver) was chosen.
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build).
    #[cfg_attr(docsrs, doc(cfg(feature = "blocking")))]
    pub fn build_blocking(self) -> Result<Locker, Error> {
        Ok(Locker { locker: self.driver(Driver::Thread).build()? })
    }
}

/// Takes locks, as [`crate::Locker`] does, and waits on the thread that asks. Cheap to clone.
///
/// Every call that waits fails with an error that [`is_misuse`](Error::is_misuse) on a thread that
/// is polling futures.
#[derive(Clone)]
pub struct Locker {
    locker: lock::Locker,
}

impl Locker {
    /// As [`crate::Locker::lock`]: nothing happens until the request is acquired.
    pub fn lock(&self, key: impl AsRef<[u8]>) -> LockRequest {
        LockRequest { request: self.locker.lock(key) }
    }

    /// As [`crate::Locker::lock_all`]: nothing happens until the request is acquired.
    pub fn lock_all<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> LockRequest {
        LockRequest { request: self.locker.lock_all(keys) }
    }

    /// As [`crate::Locker::read`]: nothing happens until the request is acquired.
    pub fn read(&self, key: impl AsRef<[u8]>) -> LockRequest {
        LockRequest { request: self.locker.read(key) }
    }

    /// As [`crate::Locker::write`]: nothing happens until the request is acquired.
    pub fn write(&self, key: impl AsRef<[u8]>) -> LockRequest {
        LockRequest { request: self.locker.write(key) }
    }

    /// As [`crate::Locker::segments`].
    pub fn segments(&self, key: impl AsRef<[u8]>, count: u16) -> Segments {
        Segments { segments: self.locker.segments(key, count) }
    }

    /// As [`crate::Locker::slots`].
    pub fn slots(&self, key: impl AsRef<[u8]>, count: u16) -> Slots {
        Slots { slots: self.locker.slots(key, count) }
    }

    /// As [`crate::Locker::latch`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn latch(&self, key: impl AsRef<[u8]>, parties: usize) -> Result<Latch, Error> {
        self.locker.latch(key, parties).map(Latch::new)
    }

    /// As [`crate::Locker::barrier`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn barrier(&self, key: impl AsRef<[u8]>, parties: usize) -> Result<Barrier, Error> {
        self.locker.barrier(key, parties).map(Barrier::new)
    }

    /// As [`crate::Locker::ready`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn ready(&self, timeout: Duration) -> Result<Vec<NodeReport>, Error> {
        park::wait(self.locker.ready(timeout))?
    }

    /// As [`crate::Locker::stats`].
    #[must_use]
    pub fn stats(&self) -> WaitStats {
        self.locker.stats()
    }

    /// As [`crate::Locker::health`].
    #[must_use]
    pub fn health(&self) -> Vec<NodeHealth> {
        self.locker.health()
    }

    /// As [`crate::Locker::initialise`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn initialise(&self) -> Result<Vec<NodeReport>, Error> {
        park::wait(self.locker.initialise())?
    }

    /// As [`crate::Locker::inspect`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn inspect(&self, key: impl AsRef<[u8]>) -> Result<Inspection, Error> {
        park::wait(self.locker.inspect(key))?
    }

    /// As [`crate::Locker::adopt`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn adopt(&self, key: impl AsRef<[u8]>, token: &OwnerToken) -> Result<LockGuard, Error> {
        park::wait(self.locker.adopt(key, token))?.map(LockGuard::new)
    }

    /// As [`crate::Locker::release_by_token`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn release_by_token(
        &self,
        key: impl AsRef<[u8]>,
        token: &OwnerToken,
    ) -> Result<Release, Error> {
        park::wait(self.locker.release_by_token(key, token))?
    }

    /// As [`crate::Locker::revoke`].
    ///
    /// # Errors
    ///
    /// As there, and [`is_misuse`](Error::is_misuse) on a thread that is polling futures.
    pub fn revoke(&self, key: impl AsRef<[u8]>) -> Result<Option<Revocation>, Error> {
        park::wait(self.locker.revoke(key))?
    }

    /// As [`crate::Locker::force_release`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn force_release(&self, key: impl AsRef<[u8]>) -> Result<Vec<NodeReport>, Error> {
        park::wait(self.locker.force_release(key))?
    }

    /// As [`crate::Locker::shutdown`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn shutdown(&self, timeout: Duration) -> Result<Shutdown, Error> {
        park::wait(self.locker.shutdown(timeout))?
    }

    /// As [`crate::Locker::shutdown_leaving`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn shutdown_leaving(&self, timeout: Duration) -> Result<Shutdown, Error> {
        park::wait(self.locker.shutdown_leaving(timeout))?
    }

    /// As [`crate::Locker::owner`].
    #[must_use]
    pub fn owner(&self) -> &str {
        self.locker.owner()
    }

    /// The same locker for async code, on the same connections.
    #[must_use]
    pub fn as_async(&self) -> &lock::Locker {
        &self.locker
    }
}

impl fmt::Debug for Locker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.locker.fmt(f)
    }
}

/// A key that several may have at once, as [`crate::Slots`].
#[derive(Clone, Debug)]
pub struct Slots {
    slots: lock::Slots,
}

impl Slots {
    /// As [`crate::Slots::acquire`]: nothing happens until the request is acquired.
    pub fn acquire(&self) -> LockRequest {
        LockRequest { request: self.slots.acquire() }
    }

    /// As [`crate::Slots::acquire_many`]: nothing happens until the request is acquired.
    pub fn acquire_many(&self, weight: u16) -> LockRequest {
        LockRequest { request: self.slots.acquire_many(weight) }
    }

    /// As [`crate::Slots::revoke`].
    ///
    /// # Errors
    ///
    /// As there, and [`is_misuse`](Error::is_misuse) on a thread that is polling futures.
    pub fn revoke(&self, slot: u16) -> Result<Option<Revocation>, Error> {
        park::wait(self.slots.revoke(slot))?
    }

    /// As [`crate::Slots::count`].
    #[must_use]
    pub fn count(&self) -> u16 {
        self.slots.count()
    }
}

/// One hot key as several locks, as [`crate::Segments`].
#[derive(Clone, Debug)]
pub struct Segments {
    segments: lock::Segments,
}

impl Segments {
    /// As [`crate::Segments::of`]: nothing happens until the request is acquired.
    pub fn of(&self, hash: u64) -> LockRequest {
        LockRequest { request: self.segments.of(hash) }
    }

    /// As [`crate::Segments::of_part`]: nothing happens until the request is acquired.
    pub fn of_part(&self, part: impl AsRef<[u8]>) -> LockRequest {
        LockRequest { request: self.segments.of_part(part) }
    }

    /// As [`crate::Segments::all`]: nothing happens until the request is acquired.
    pub fn all(&self) -> LockRequest {
        LockRequest { request: self.segments.all() }
    }

    /// As [`crate::Segments::count`].
    #[must_use]
    pub fn count(&self) -> u16 {
        self.segments.count()
    }
}

/// A lock request, as [`crate::LockRequest`].
#[must_use = "a lock that is asked for is taken by `acquire`"]
pub struct LockRequest {
    request: lock::LockRequest,
}

/// The options of the async request, each as it is there.
macro_rules! options {
    ($($name:ident($($argument:ident: $type:ty)?),)*) => {
        $(
            #[doc = concat!("As [`crate::LockRequest::", stringify!($name), "`].")]
            pub fn $name(self $(, $argument: $type)?) -> Self {
                Self { request: self.request.$name($($argument)?) }
            }
        )*
    };
}

impl LockRequest {
    options! {
        fenced(),
        fair(),
        fair_strict(),
        ttl(ttl: Duration),
        lock_delay(delay: Duration),
        wait(wait: Duration),
        wait_forever(),
        unavailable_wait(wait: Duration),
        retry(retry: Retry),
        auto_extend(extend: Extend),
        class(class: &'static str),
    }

    /// Acquires the lock, and waits for it as long as the request says.
    ///
    /// # Errors
    ///
    /// As [`crate::LockRequest::acquire`], and [`is_misuse`](Error::is_misuse) on a thread that is
    /// polling futures.
    pub fn acquire(self) -> Result<LockGuard, Error> {
        park::wait(self.request.acquire())?.map(LockGuard::new)
    }

    /// As [`crate::LockRequest::within`].
    ///
    /// # Errors
    ///
    /// As there, and [`is_misuse`](Error::is_misuse) on a thread that is polling futures.
    pub fn within(self, guard: &LockGuard) -> Result<LockGuard, Error> {
        park::wait(self.request.within(guard.as_async()))?.map(LockGuard::new)
    }

    /// Tries once. `Ok(None)`: another holds the lock.
    ///
    /// # Errors
    ///
    /// As [`crate::LockRequest::try_acquire`], and [`is_misuse`](Error::is_misuse) on a thread that
    /// is polling futures.
    pub fn try_acquire(self) -> Result<Option<LockGuard>, Error> {
        Ok(park::wait(self.request.try_acquire())??.map(LockGuard::new))
    }

    /// Acquires the lock, does the work, and releases the lock, whatever comes of the work.
    ///
    /// A thread cannot be stopped: if the lock is lost meanwhile, the work goes on, and looks at
    /// [`LockGuard::is_valid`] before each step that others see.
    ///
    /// # Errors
    ///
    /// Those of acquiring, and those of the work.
    pub fn run<T, E>(self, work: impl FnOnce(&LockGuard) -> Result<T, E>) -> Result<T, E>
    where
        E: From<Error>,
    {
        let guard = self.acquire()?;
        let done = work(&guard);
        // What the nodes say of the release changes nothing for work that is done.
        let _ = guard.release();
        done
    }
}

impl fmt::Debug for LockRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.request.fmt(f)
    }
}
