//! Servers inside the process, for unit tests, and faults for them. (Feature `testing`.)
//!
//! [`Nodes`] are some nodes in memory with lockers on them; a [`Node`] can also listen on loopback
//! TCP. Either speaks the protocol as a server does, by the clock of tokio, so that a test can
//! pause it. A fault is a [`Rule`]: [`When`] it happens, and the [`Reaction`].
//!
//! ```
//! use quorlock::testing::{Nodes, Reaction, When};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), quorlock::Error> {
//! let nodes = Nodes::new(5);
//! nodes[0].hang();
//! nodes[1].add(When::after("SET").then(Reaction::Cut { after_bytes: 3 }));
//!
//! let locker = nodes.locker().build()?;
//! let guard = locker.lock("order:42").await?; // three of five are a quorum
//! assert!(guard.release().await?.is_released());
//! # Ok(()) }
//! ```
//!
//! | file | owns |
//! |---|---|
//! | `store` | one node's keys and what it answers to commands: pure, the time handed in |
//! | `wire` | a server's side of the codec |
//! | `clock` | a node's clock, which can be stepped and drift |
//! | `fault` | conditions and reactions |
//! | `shared`, `serve` | what a node's connections share; one connection |
//! | `node`, `listen`, `nodes` | the face: one node, its port; several in memory |

mod clock;
mod fault;
mod listen;
mod node;
mod nodes;
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
pub use nodes::Nodes;
