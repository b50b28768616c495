//! Locks for plain threads: every call blocks the thread that makes it.
//!
//! For programs without async code, and for threads beside it: a plain `fn main`, a thread pool,
//! tokio's `spawn_blocking`. The connections are served by a thread of the locker's own
//! ([`Driver::Thread`](crate::Driver::Thread)), and locks are extended by it whatever the callers
//! do meanwhile.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! fn main() -> Result<(), quorlock::Error> {
//!     let nodes = ["redis://a:6379", "redis://b:6379", "redis://c:6379"];
//!     let locker = quorlock::Locker::quorum(nodes)?.prefix("pay:").build_blocking()?;
//!
//!     let guard = locker.lock("order:42").wait(Duration::from_secs(2)).acquire()?;
//!     println!("held for {:?} more", guard.remaining());
//!     println!("{:?}", guard.release()?); // so does dropping it, without waiting
//!     Ok(())
//! }
//! ```
//!
//! A call on a thread that is polling futures would keep all of its other tasks from running, and
//! could wait for one of them. On tokio's threads that is noticed and refused: the error
//! [`is_misuse`](crate::Error::is_misuse). Use the async [`Locker`](crate::Locker) there, or
//! `spawn_blocking`. Dropping a guard never waits, and works everywhere.

mod client;
mod guard;
mod latch;
mod locker;
mod park;

pub use client::Client;
pub use guard::LockGuard;
pub use latch::{Barrier, Latch};
pub use locker::{LockRequest, Locker, Segments, Slots};
