//! Servers inside the process, for unit tests, and faults for them. (Feature `testing`.)
//!
//! [`Nodes`] are some nodes in memory with lockers on them; a [`Node`] can also listen on loopback
//! TCP, for code that takes URLs. Either speaks the protocol as a server does.
//!
//! ```toml
//! [dev-dependencies]
//! quorlock = { version = "0.1", features = ["testing"] }
//! tokio = { version = "1.54.1", features = ["macros", "rt", "test-util"] }
//! ```
//!
//! ```
//! use std::time::Duration;
//!
//! use quorlock::testing::{Nodes, Reaction, When};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), quorlock::Error> {
//! let nodes = Nodes::new(5); // in a #[tokio::test(start_paused = true)]
//! nodes[0].hang();
//! nodes[1].add(When::after("SET").then(Reaction::Cut { after_bytes: 3 }));
//!
//! let locker = nodes.locker().ttl(Duration::from_secs(30)).build()?;
//! let guard = locker.lock("order:42").await?; // three of five are a quorum
//! assert_eq!(nodes[2].remaining("order:42"), Some(Duration::from_secs(30)));
//!
//! nodes.add(When::before("extend").then(Reaction::Drop)); // from now on, on each node
//! guard.lost().await; // half a minute, and it takes no time
//! # Ok(()) }
//! ```
//!
//! # Faults
//!
//! A fault is a [`Rule`]: [`When`] it happens (before or after a command, by its name, its key, its
//! number, or by chance from a seed) and the [`Reaction`]:
//!
//! | reaction | stands for |
//! |---|---|
//! | [`Delay`](Reaction::Delay) | a slow network, there or back |
//! | [`Drop`](Reaction::Drop) | a network that loses what it is given; a refused connection |
//! | [`Hang`](Reaction::Hang) | a process that is stopped by a signal, or swapped out |
//! | [`Cut`](Reaction::Cut) | a connection that ends, in the middle of a reply if need be |
//! | [`Answer`](Reaction::Answer) | a proxy or a server that errs: an error, or nonsense |
//! | [`Restart`](Reaction::Restart) | a crash, with what was on the disk or without |
//! | [`StepClock`](Reaction::StepClock), [`DriftClock`](Reaction::DriftClock) | a wrong clock |
//!
//! Faults that do not depend on a command are methods of the node: [`Node::hang`],
//! [`Node::stop`], [`Node::restart`], [`Node::cut`], [`Node::step_clock`], and [`Node::command`]
//! for whatever another client may do to a key.
//!
//! # Time
//!
//! A node's keys end by tokio's clock, wherever it is reached: under a paused clock
//! (`#[tokio::test(start_paused = true)]`, with tokio's feature `test-util`) time-outs and expiry
//! come when they are due, and no test waits for them. So do the leases of the lockers of
//! [`Nodes::locker`]. A locker that is built from URLs measures its leases by the clock of the
//! machine, as it must in production: a test that pauses the time of a [`Node::listen`] builds it
//! with [`LockerBuilder::tokio_clock`](crate::LockerBuilder::tokio_clock), or its guards outlive
//! their keys. A thread outside the runtime has no paused clock: a caller that asks a node for a
//! value there sees it by the system's.
//!
//! | file | owns |
//! |---|---|
//! | `store` | one node's keys and what it answers to commands: pure, the time handed in |
//! | `wire` | a server's side of the codec |
//! | `clock` | a node's clock, which can be stepped and drift |
//! | `fault` | conditions and reactions |
//! | `shared`, `serve` | what a node's connections share; one connection |
//! | `outbox`, `first` | what a connection has still to send; waiting for two things at once |
//! | `node`, `listen`, `nodes` | the face: one node, its port; several in memory |

mod clock;
mod fault;
mod first;
mod listen;
mod node;
mod nodes;
mod outbox;
mod serve;
mod shared;
pub(crate) mod store;
pub(crate) mod wire;

#[cfg(test)]
pub(crate) use clock::NodeClock;
#[cfg(test)]
pub(crate) use fault::draw;
pub use fault::{Reaction, Rule, When};
pub use node::{Node, NodeBuilder};
pub use nodes::{Nodes, NodesBuilder};
#[cfg(test)]
pub(crate) use shared::Heard;
