//! Nodes inside the process.
//!
//! [`store`] is one node's keys and what it answers to commands: pure, without I/O, the time handed
//! in. [`wire`] is a server's side of the codec.

pub(crate) mod store;
pub(crate) mod wire;
