//! Distributed locks on Redis and Valkey, written from the wire up: on one server, or on a quorum
//! of independent ones (Redlock), at the speed of the bare sockets.
//!
//! ```no_run
//! use quorlock::Locker;
//!
//! #[tokio::main]
//! async fn main() -> Result<(), quorlock::Error> {
//!     // Nothing is sent before the first lock, and connections are made in the background.
//!     let nodes = ["redis://a:6379", "redis://b:6379", "redis://c:6379"];
//!     let locker = Locker::quorum(nodes)?.prefix("pay:").owner("pay-api").build()?;
//!
//!     let guard = locker.lock("order:42").await?; // waits up to 10 s; extends itself
//!     println!("held for {:?} more", guard.remaining());
//!     println!("{:?}", guard.release().await?); // so does dropping it, without waiting
//!     Ok(())
//! }
//! ```
//!
//! A lock of this kind is a *lease*: after its time another client may hold it, whatever the first
//! one is doing. Read what it promises before you rely on it:
//! [`manual::promises`](https://docs.rs/quorlock/latest/quorlock/manual/promises/), and
//! [`manual::when_not_to_lock`](https://docs.rs/quorlock/latest/quorlock/manual/when_not_to_lock/).
//!
//! # Where to go from here
//!
//! | you want to | look at |
//! |---|---|
//! | connect to one server, or to a quorum | [`Locker::single`], [`Locker::quorum`] |
//! | set TTL, waiting, extension, prefix | [`LockerBuilder`], or [`LockRequest`] for one lock |
//! | wait, try once, run work under a lock | [`LockRequest`] |
//! | know that a lock is lost while you work | [`LockGuard::lost`], [`LockGuard::protect`] |
//! | hand a lock over to another process | [`LockGuard::forget`], [`Locker::adopt`] |
//! | tell what went wrong | [`Error`], [`ErrorKind`], [`report`] |
//! | see what happens: logs, metrics | [`Observer`], [`Event`] |
//! | let a store refuse a holder who is late | [`LockRequest::fenced`], [`guarded`] |
//! | wait until several are there | [`Locker::latch`], [`Locker::barrier`] |
//! | run a job on one of several replicas | [`Locker::once`], [`recipe`] |
//! | find out who holds a lock | [`Locker::inspect`], [`Locker::health`] |
//! | ask a holder to let go | [`Locker::revoke`], [`Slots::revoke`], [`LockGuard::revoked`] |
//! | stop in good order | [`Locker::shutdown`] |
//! | TLS, passwords that change, Unix sockets | [`NodeOptions`] |
//! | lock on plain threads, without async code | the feature `blocking` |
//! | test without a server | the feature `testing` |
//! | send other commands | [`Client`] |
//!
//! # Features
//!
//! All are off by default.
//!
//! | feature | what it adds |
//! |---|---|
//! | `tls-rustls` | `rediss://` by rustls, with Mozilla's root certificates |
//! | `tls-native-roots` | the platform's root certificates beside those |
//! | `tokio-util` | a `CancellationToken` that is cancelled when a lock is lost |
//! | `tracing` | `TracingObserver`: events for the `tracing` crate |
//! | `serde` | `NodeOptions` out of a configuration, a `Fence` as a number |
//! | `testing` | servers inside the process, under tokio's clock, and faults for them |
//! | `blocking` | the same face for plain threads: `quorlock::blocking` |
//!
//! The program `quorlock`, for a shell, is the crate `quorlock-cli`.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

#[cfg(feature = "blocking")]
pub mod blocking;
mod client;
mod clock;
mod entropy;
mod error;
mod fence;
pub mod guarded;
mod latch;
mod lease;
mod link;
mod lock;
mod loss;
#[cfg(doc)]
pub mod manual;
mod node;
mod node_vote;
mod observe;
mod options;
mod quorum;
pub mod recipe;
pub mod report;
mod server_error;
#[cfg(test)]
#[cfg(feature = "testing")]
mod simulation;
mod slab;
mod sync;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use client::{Client, Pipeline};
pub use error::{Error, ErrorKind};
pub use fence::Fence;
pub use latch::{Barrier, Latch, LatchState};
pub use lease::{LeftLock, OwnerToken, Release, Revocation, Shutdown};
pub use lock::{
    Acquire, Held, LockGuard, LockKey, LockRequest, Locker, LockerBuilder, OnLoss, Segments, Slots,
};
#[cfg(feature = "tracing")]
pub use observe::TracingObserver;
pub use observe::{Event, Loss, Observer, Subject};
#[cfg(feature = "tls-rustls")]
pub use options::Tls;
pub use options::{
    Credentials, Driver, Durability, Extend, IntoNode, NodeOptions, Protocol, Retry, TcpOptions,
};
pub use quorlock_resp::Frame;
/// For [`Tls::from_config`]: the very version that this crate speaks by.
#[cfg(feature = "tls-rustls")]
pub use rustls;

/// The README's program compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
