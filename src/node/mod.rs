//! One node: its connections, its health, and the driver's work on each connection.
//!
//! [`Node`] is what callers share: the links, and why the node is not usable when it is not.
//! [`Session`] is what the driver owns of one link: connecting, reading, and waiting to try again.
//!
//! ```text
//!              ┌────────────── backoff over ◀──────────────┐
//!              ▼                                           │
//!  start ─▶ Connecting ──handshake, admitted──▶ Open ──▶ Waiting
//!              └──────── refused, silent, not admitted ────▲
//! ```

mod backoff;
mod connect;
mod session;

use std::sync::Arc;

use bytes::Bytes;

pub(crate) use session::{Pass, Session};

use crate::link::{Address, Link, Peer};
use crate::options::LinkOptions;
use crate::report::Fault;
use crate::sync::{Mutex, lock};

/// One node as its callers see it.
#[derive(Debug)]
pub(crate) struct Node {
    address: Address,
    links: Box<[Link]>,
    health: Mutex<Health>,
}

/// What the last attempt to connect told.
#[derive(Debug)]
struct Health {
    fault: Option<Fault>,
    peer: Option<Peer>,
}

impl Node {
    pub(crate) fn new(address: Address, undo_head: &Bytes, options: LinkOptions) -> Self {
        let link = || Link::new(undo_head.clone(), options);
        Self {
            address,
            links: (0..options.connections).map(|_| link()).collect(),
            health: Mutex::new(Health { fault: Some(Fault::Connecting), peer: None }),
        }
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// The address without its login, for people.
    pub(crate) fn label(&self) -> Arc<str> {
        self.address.label.clone()
    }

    pub(crate) fn links(&self) -> &[Link] {
        &self.links
    }

    /// The link for `affinity` (a hash of the key): all commands about one key on one node form
    /// one queue, so that an undo can never overtake what it undoes.
    pub(crate) fn link(&self, affinity: u64) -> &Link {
        let index = match self.links.len() {
            1 => 0,
            count => (affinity % count as u64) as usize,
        };
        &self.links[index]
    }

    /// A driver starts: commands may queue for its first connections.
    pub(crate) fn reopen(&self) {
        self.set_fault(Fault::Connecting);
        for link in &self.links {
            link.reopen();
        }
    }

    /// Why the node cannot be asked; `None` while it can.
    pub(crate) fn fault(&self) -> Option<Fault> {
        lock(&self.health).fault.clone()
    }

    /// Which server process it was when it was last connected.
    pub(crate) fn run_id(&self) -> Option<Box<str>> {
        let health = lock(&self.health);
        health.peer.as_ref().and_then(|peer| peer.run_id.clone())
    }

    fn set_fault(&self, fault: Fault) {
        lock(&self.health).fault = Some(fault);
    }

    fn set_peer(&self, peer: Peer) {
        *lock(&self.health) = Health { fault: None, peer: Some(peer) };
    }
}
