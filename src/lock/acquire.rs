//! The future of a lock request.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::guard::LockGuard;
use crate::error::Error;
use crate::lease::{AcquireSpec, Acquiring};

/// The future of an acquisition; see [`LockRequest`](crate::LockRequest).
///
/// # Cancel safety
///
/// Dropping it at any point leaves no lock behind: what was sent is released on every node, at once
/// and without waiting. A node that cannot be reached then is told when it is connected again, or
/// its key ends with the TTL.
#[must_use = "futures do nothing unless awaited"]
pub struct Acquire {
    acquiring: Acquiring,
}

impl Acquire {
    #[inline]
    pub(crate) fn new(spec: Result<AcquireSpec, Error>) -> Self {
        Self { acquiring: Acquiring::new(spec) }
    }
}

impl Future for Acquire {
    type Output = Result<LockGuard, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.acquiring).poll(cx).map_ok(LockGuard::new)
    }
}

impl fmt::Debug for Acquire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire").field("tries", &self.acquiring.tries()).finish_non_exhaustive()
    }
}
