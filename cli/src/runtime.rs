//! The Tokio runtime. It runs on the calling thread, which in `quorlock lock` also extends the
//! lock.

use std::hash::{BuildHasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use tokio::runtime::{Builder, Runtime};

use crate::exit::Failure;

/// A runtime on this thread.
pub(crate) fn on_this_thread() -> Result<Runtime, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::internal("cannot start the runtime", &error))
}

/// 64 random bits: for names that must not meet, not for secrets.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// Runs `work` to its end on a runtime on this thread.
///
/// Does not wait for helper threads then: resolving a name or writing to stdout may take
/// arbitrarily long, and must delay neither the program's end nor a panic's unwinding.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = on_this_thread()?;
    let done = catch_unwind(AssertUnwindSafe(|| runtime.block_on(work)));
    runtime.shutdown_background();
    done.unwrap_or_else(|panic| resume_unwind(panic))
}
