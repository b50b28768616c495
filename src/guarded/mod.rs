//! Writes that a store refuses where their holder comes too late: the other half of a fence.
//!
//! A [`Fence`] protects nothing by itself. What protects is the place that is written to: beside
//! the data stands the highest fence that has written, and a write under a lower one is refused, in
//! the same step in which it would be done. A holder that was stopped for longer than its lock
//! lasted then finds that out from the store, whatever its own clock says.
//!
//! - [`sql`]: statements for PostgreSQL, for any driver.
//! - [`Write`]: writes to a Redis or Valkey, which need not be one of those that keep the locks.
//!
//! [`manual::fencing`](https://docs.rs/quorlock/latest/quorlock/manual/fencing/) has the argument,
//! and recipes for other stores.

mod refused;
pub mod sql;
mod write;

pub use refused::{Refused, WriteError};
pub use write::Write;

#[cfg(doc)]
use crate::lease::Fence;
