//! The switch between the standard library's synchronisation and loom's.
//!
//! Only the lock-free rooms (`quorum/ballot`, `quorum/slots`) and what they share with a driver
//! import from here: under `--cfg loom` every access to these types is a point at which the model
//! checker may switch threads.

#[cfg(not(loom))]
pub(crate) use atomic_waker::AtomicWaker;
#[cfg(loom)]
pub(crate) use loom::future::AtomicWaker;

#[cfg(loom)]
pub(crate) use loom::sync::atomic;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a short lock. A panic under one of our locks is a bug of ours that has already been
/// reported by the panic itself; the state behind it is still the best there is, and a `Drop` that
/// must write a release may not panic a second time.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
