//! The switch between the standard library's synchronisation and loom's.
//!
//! Under `--cfg quorlock_models` every access to these types is a point at which the model checker
//! may switch threads. The models stand beside what they check, in each room's `tests`.

use std::task::Waker;

#[cfg(quorlock_models)]
pub(crate) use loom::sync::{Mutex, MutexGuard, atomic};
#[cfg(not(quorlock_models))]
pub(crate) use std::sync::{Mutex, MutexGuard, atomic};

#[cfg(not(quorlock_models))]
use atomic_waker::AtomicWaker as Inner;
#[cfg(quorlock_models)]
use loom::future::AtomicWaker as Inner;

/// Takes a short lock. A panic under one of our locks is a bug of ours that has already been
/// reported by the panic itself; the state behind it is still the best there is, and a `Drop` that
/// must write a release may not panic a second time.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The waker of the one task that waits for something.
#[derive(Debug)]
pub(crate) struct AtomicWaker(Inner);

impl AtomicWaker {
    pub(crate) fn new() -> Self {
        Self(Inner::new())
    }

    /// Remembers whom to wake. A task that registers looks again afterwards: a wake that came
    /// before found no waker, one that comes later finds this one.
    pub(crate) fn register(&self, waker: &Waker) {
        #[cfg(not(quorlock_models))]
        self.0.register(waker);
        #[cfg(quorlock_models)]
        self.0.register_by_ref(waker);
    }

    pub(crate) fn wake(&self) {
        self.0.wake();
    }

    /// Forgets whom to wake.
    pub(crate) fn clear(&self) {
        #[cfg(not(quorlock_models))]
        drop(self.0.take());
        #[cfg(quorlock_models)]
        drop(self.0.take_waker());
    }
}

/// What the models of every room use.
#[cfg(test)]
#[cfg(quorlock_models)]
pub(crate) mod models {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::Wake;

    /// Runs a weakened model, in which loom must find an interleaving that fails with `why`.
    pub(crate) fn must_fail(why: &str, model: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        // Few preemptions are enough, and a search without a bound takes longer to come to them.
        (builder.preemption_bound, builder.max_branches) = (Some(3), 10_000);
        let failure = catch_unwind(AssertUnwindSafe(|| builder.check(model)));
        let failure = failure.expect_err("the weakened twin passed: its model shows nothing");
        let text = failure.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| failure.downcast_ref::<&str>().copied()).unwrap_or_default();
        assert!(text.contains(why), "the weakened twin failed, but not by `{why}`: {text}");
    }

    /// A waker that remembers that it was woken.
    #[derive(Default)]
    pub(crate) struct Flag(AtomicBool);

    impl Flag {
        /// Whether it was woken since the last call.
        pub(crate) fn take(&self) -> bool {
            self.0.swap(false, Ordering::SeqCst)
        }
    }

    impl Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
}
