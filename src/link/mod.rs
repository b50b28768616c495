//! One connection to one node.
//!
//! [`Link`] is the half that callers share: the bytes to send and the commands that await a reply,
//! behind one short lock. [`Inbound`] is the half that the driver owns: it reads and decodes.
//! [`Network`] makes a stream to where an address says, [`Handshake`](handshake::Handshake) turns
//! it into a usable one, and [`Peer`] is who answered. This room knows bytes, frames and positions.
//! It does not know what a command means, or how many nodes there are, and it calls no room above
//! it.
//!
//! ```text
//!  Opening ──open()──▶ Open ──orphan()──▶ Orphaned ──reopen()──▶ Opening
//!     │ commands queue   │ commands flow    undos only, the driver is gone
//!     └─────close()──────┴─▶ Closed ──open()────▶ Open     (a later connection)
//!                              └──────reopen()──▶ Opening  (a new driver's first connection)
//! ```
//!
//! A command whose kind [names the server](ReplyKind::names_server) tells it the `run_id` of the
//! process that it believes to speak to. The same bytes go to every node, with a hole at their end,
//! and each link fills it with the `run_id` that *its own connection* was told while shaking hands;
//! what queues before that is filled when the connection opens. A connection ends with its server's
//! process, and nothing is sent on another one again: a server that is restarted between the two
//! never sees the command.
//!
//! However a connection ends, `State::end` tells the tasks that wait, and turns what may still have
//! to be undone into [`pending`] undos; the next connection sends them first.

mod answer;
mod dial;
mod fifo;
mod handshake;
mod inbound;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod memory;
mod native;
mod needs_flush;
mod outgoing;
mod peer;
mod pending;
mod pipeline;
mod push;
mod reply;
mod shared;
mod stagger;
mod state;
mod stream;
#[cfg(test)]
mod tests;
#[cfg(feature = "tls-rustls")]
mod tls;
mod undo;

pub(crate) use answer::{ReplyKind, fence_of, key_in_the_way, time_beside, time_of_refusal};
pub(crate) use dial::Network;
pub(crate) use handshake::{Handshake, HandshakeConfig};
pub(crate) use inbound::{Ended, Inbound};
pub(crate) use outgoing::{Outgoing, Sent, Urgency};
pub(crate) use peer::{Admission, AdmissionPolicy, EpochValue, Peer, RunId};
pub(crate) use pending::Client;
pub(crate) use pipeline::{Completion, Entry, Lapsed, Ticket};
pub(crate) use push::{Listener, Push, Subscriptions};
pub(crate) use shared::Link;
#[cfg(test)]
pub(crate) use stream::Dialing;
pub(crate) use stream::{Dial, Reader, Writer, secure};
pub(crate) use undo::{Undo, UndoScript};
