//! Waiting that can end early: [`LockRequest::until`].

use std::future::Future;

use crate::error::Error;
use crate::lock::{LockGuard, LockRequest};

/// How a wait has ended.
#[derive(Debug)]
pub enum Until<T> {
    /// The look has found what was to be done under the lock.
    Found(T),
    /// The lock is held, and a look under it has found nothing.
    Held(LockGuard),
}

impl LockRequest {
    /// Acquires the lock, unless `look` finds that what was to be done under it has been done: a
    /// value is in the cache, an order is paid.
    ///
    /// The look is taken before anything is asked for, and again each time the lock has been
    /// acquired; so who waited for another that did the work learns that as soon as it is its turn,
    /// and gives the turn to the next. With [`Until::Held`] nothing was found *under the lock*:
    /// what others do under it, they did not do before.
    ///
    /// ```no_run
    /// # async fn example(
    /// #     locker: quorlock::Locker,
    /// #     find: impl Fn() -> std::future::Ready<Option<String>>,
    /// #     compute: impl Fn() -> std::future::Ready<String>,
    /// # ) -> Result<String, quorlock::Error> {
    /// use quorlock::recipe::Until;
    ///
    /// let report = match locker.lock("report").until(async || Ok(find().await)).await? {
    ///     Until::Held(guard) => guard.protect(compute()).await?, // and store it
    ///     Until::Found(report) => report,
    /// };
    /// # Ok(report) }
    /// ```
    ///
    /// The error is the look's own, as with [`run`](Self::run). A look that hangs is not bounded by
    /// [`wait`](Self::wait), which the lock is waited for.
    ///
    /// # Errors
    ///
    /// Those of acquiring (as `.await`), and those of the look. When another held the lock for all
    /// the time, one more look is taken before that is an error.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves no key behind; a look under the lock is dropped with it.
    pub async fn until<F, Fut, T, E>(self, mut look: F) -> Result<Until<T>, E>
    where
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<Option<T>, E>>,
        E: From<Error>,
    {
        if let Some(found) = look().await? {
            return Ok(Until::Found(found));
        }
        match self.acquire().await {
            Ok(guard) => match look().await? {
                Some(found) => {
                    drop(guard); // the next one is not kept waiting for what the nodes say of it
                    Ok(Until::Found(found))
                }
                None => Ok(Until::Held(guard)),
            },
            Err(error) if error.is_contended() => match look().await? {
                Some(found) => Ok(Until::Found(found)),
                None => Err(error.into()),
            },
            Err(error) => Err(error.into()),
        }
    }
}
