//! Distributed locks on Redis and Valkey, written from the wire up.
//!
//! # The rooms
//!
//! Data goes one way: a room imports only from those above it in this list.
//!
//! | room | holds |
//! |---|---|
//! | `quorlock_resp` | bytes to frames and back |
//! | `options` | every knob, its default, and why; a node by its URL or its parts |
//! | `error`, `report`, `observe` | what went wrong, and whose doing; each node's part; events |
//! | `clock`, `entropy`, `sync` | the one clock, the one source of randomness, std or loom |
//! | `slab` | places that are used again and again, without a lock |
//! | `weak` | the rules of safety, each of which a build that never ships can leave out |
//! | `link` | one connection: handshake, bytes out, replies in, what a dead one left |
//! | `node` | one node: its links, its health, reconnecting |
//! | `quorum` | many nodes, one verdict: fan-out, votes, the driver task |
//! | `lock`, `client` | the lock itself, and the protocol-level client |
//! | `testing` | servers inside the process, and faults for them |
//! | `simulation` | tests only: clients, nodes and faults on one machine in memory, from a seed |
//! | `bin/quorlock` | the program, over the public face |
//! | `manual` | what the code alone does not say |
#![forbid(unsafe_code)]

mod client;
mod clock;
mod entropy;
mod error;
mod link;
mod lock;
#[cfg(doc)]
pub mod manual;
mod node;
mod observe;
mod options;
mod quorum;
pub mod report;
#[cfg(test)]
#[cfg(feature = "testing")]
mod simulation;
mod slab;
mod sync;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod weak;

pub use client::{Client, Pipeline};
pub use error::{Error, ErrorKind};
pub use lock::{
    Acquire, Held, LeftLock, LockGuard, LockKey, LockRequest, Locker, LockerBuilder, OnLoss,
    OwnerToken, Release, Shutdown,
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
