//! What a store does only while no later holder of the lock has come: the other half of a fence.
//!
//! A [`Fence`], or fencing token, protects nothing by itself. What protects is the store: beside
//! the data it keeps the highest fence that has reached it, and refuses what comes with a lower
//! one, in the same step in which it would do it. A holder that was stopped for longer than its
//! lock lasted then learns so from the store, whatever its own clock says.
//!
//! **First the fence, then read, then write.** A later holder stops an earlier one as soon as its
//! fence has reached the store, and not before: what it read until then, the earlier one may still
//! change. So the fence comes with the first read, or before it.
//!
//! - [`sql`]: statements for PostgreSQL, for any driver.
//! - [`Command`]: reads and writes on a Redis or Valkey, which need not be one of those that keep
//!   the locks.
//!
//! Every writer of the data has to do it this way: nothing refuses a plain write.
//! [`manual::fencing`](https://docs.rs/quorlock/latest/quorlock/manual/fencing/) has the argument,
//! and recipes for other stores.

mod command;
mod error;
pub mod sql;

pub use command::Command;
pub use error::{Error, Stale};

#[cfg(doc)]
use crate::fence::Fence;
