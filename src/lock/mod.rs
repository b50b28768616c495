//! The lock: what is asked of the nodes, and what a grant is good for.
//!
//! [`Locker`] hands out [`LockRequest`]s; awaiting one is an [`Acquire`], which ends in a
//! [`LockGuard`] or an error. Below the face, a [`claim::Claim`] owns a key and its random value
//! from the moment it is sent, and undoes itself when dropped; [`lease`] says until when a lock is
//! held. A held lock rests in its [`hold`], where the [`keeper`] extends it (an [`extension`]) and
//! finds its loss. Around these: [`takeover`] (locks of others, by their [`token`]s), [`shutdown`],
//! [`durability`] (nodes that may forget). The wire is written in `command`.
//!
//! ```text
//!  LockRequest ──await──▶ Acquire: Claim ──won, time left──▶ LockGuard ──release()──▶ Release
//!                            │ lost, late, dropped              │ dropped
//!                            ▼                                  ▼
//!                     compare-and-delete on every node that may hold the key
//! ```

mod acquire;
#[cfg(feature = "tokio-util")]
mod alarm;
mod builder;
mod claim;
mod command;
mod durability;
mod extension;
mod guard;
mod hold;
mod initialise;
mod inspect;
mod keeper;
mod key;
mod lease;
mod locker;
mod request;
mod retry;
mod shutdown;
mod takeover;
#[cfg(test)]
mod tests;
mod token;

#[cfg(all(test, feature = "testing", quorlock_weak))]
pub(crate) use command::{ADOPT, WEAK_ADOPT, WEAK_EXTEND, WEAK_RELEASE};

pub use acquire::Acquire;
pub use builder::LockerBuilder;
pub use guard::{Held, LockGuard, Release};
pub use key::LockKey;
pub use locker::Locker;
pub use request::{LockRequest, OnLoss};
pub use shutdown::{LeftLock, Shutdown};
pub use token::OwnerToken;
