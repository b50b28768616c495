//! What people build from a lock, ready to use: each the way that is easily got wrong by hand.
//!
//! | recipe | what it is for |
//! |---|---|
//! | [`Locker::once`] | a job that one of several replicas runs |
//! | [`Locker::elect`] | one leader among several candidates |
//! | [`Cached`] | a cache whose values are computed once |
//! | [`Limit`], [`Gate`] | at most so many in so much time: over all processes, in one |
//! | [`Locker::idempotent`] | a request that is done once, however often it comes |
//! | [`LockRequest::until`] | waiting that ends early, once another has done the work |
//!
//! All of them use what the face has, and nothing below it: a lock of theirs is an ordinary lock,
//! which every other client sees and is excluded by.
//! [`manual::recipes`](https://docs.rs/quorlock/latest/quorlock/manual/recipes/) says of each what
//! it promises, what it does not, and what it costs.

mod cached;
mod decided;
mod elect;
mod idempotent;
mod limit;
mod once;
mod store_error;
#[cfg(test)]
#[cfg(feature = "testing")]
mod tests;
mod until;

pub use cached::{CacheOptions, Cached, CachedError, OnUnavailable, Store, Stored};
pub use elect::{Election, Leader, Term};
pub use idempotent::{Done, Idempotent};
pub use limit::{Gate, Limit, Taken};
pub use once::{Once, Ran, period_key};
pub use store_error::StoreError;
pub use until::Until;

#[cfg(doc)]
use crate::lock::{LockRequest, Locker};
