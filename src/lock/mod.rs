//! The face: the locker, its requests and its guards.
//!
//! [`Locker`] hands out [`LockRequest`]s; awaiting one is an [`Acquire`], which ends in a
//! [`LockGuard`] or an error. What lies behind them, from the claim of a key to its release, is the
//! room [`lease`](crate::lease).
//!
//! ```text
//!  LockRequest ──await──▶ Acquire: claim ──won, time left──▶ LockGuard ──release()──▶ Release
//!                            │ lost, late, dropped              │ dropped
//!                            ▼                                  ▼
//!                     compare-and-delete on every node that may hold the key
//! ```

mod acquire;
mod all;
mod behind;
mod builder;
mod guard;
mod handles;
mod held;
mod key;
mod locker;
mod mutex;
mod queued;
mod reading;
mod request;
mod scripts;
mod segments;
mod slots;
mod slotted;
#[cfg(test)]
mod tests;
mod ticketed;
mod within;

pub use acquire::Acquire;
pub use builder::LockerBuilder;
pub use guard::LockGuard;
pub use held::Held;
pub use key::LockKey;
pub use locker::Locker;
pub use request::{LockRequest, OnLoss};
pub use segments::Segments;
pub use slots::Slots;
