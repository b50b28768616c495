//! Reentrant acquisition: the lock of a guard that the caller passes is had again at once.
//!
//! By what is in hand, and not by who asks: a task has no name that could be told from another's,
//! and work that a task does for others is not its own.

use super::guard::LockGuard;
use super::request::LockRequest;
use crate::error::Error;
use crate::lease::Claim;

impl LockRequest {
    /// Returns [another handle](LockGuard::share) of the guard's lock, if that covers what is asked
    /// for, and no node is asked; otherwise acquires it. So a function that locks what it works on
    /// can be called by one that has locked it: reentrancy, by the guard that is handed down.
    ///
    /// A read lock is covered by a write lock of its key, too. A slot covers no other. What else
    /// was asked for, such as a TTL or a wait, is for a lock that is acquired. A guard of another
    /// locker covers nothing, nor does one whose lock is lost.
    ///
    /// ```no_run
    /// # use quorlock::{Error, LockGuard, Locker};
    /// async fn pay(locker: &Locker, held: &LockGuard) -> Result<(), Error> {
    ///     let guard = locker.lock("order:42").within(held).await?;
    ///     // … what must not overlap
    ///     guard.release().await.map(drop)
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As `.await`; [`is_misuse`](Error::is_misuse) for what would wait for this very guard: a
    /// write lock within a read lock of the key, several keys of which the guard has some and not
    /// all, more slots than there are beside the guard's, and a fenced lock within one that has no
    /// fence.
    ///
    /// # Cancel safety
    ///
    /// As `.await`.
    pub async fn within(self, guard: &LockGuard) -> Result<LockGuard, Error> {
        let spec = self.into_spec()?;
        let is_same_locker = std::ptr::eq(&**guard.hold.context(), &*spec.leases.context);
        if is_same_locker && guard.is_valid() {
            let wants_fence = spec.fenced && guard.fence().is_none();
            let covers = |claim: &Claim| claim.resource.covers(&spec.resource);
            match guard.hold.claim(covers).transpose()? {
                Some(true) if wants_fence => {
                    let why = "the guard has no fence; ask for the outer lock with one";
                    return Err(Error::misuse(why));
                }
                Some(true) => return Ok(guard.share()),
                _ => {}
            }
        }
        Self::new(Ok(spec)).await
    }
}
