//! The gate of a lock that readers have. A writer that waits keeps it shut on all nodes: readers
//! that ask from then on do not join those that have the lock, so that it waits for these and for
//! no others.
//!
//! It belongs to the acquisition as a whole, and not to one of its tries: it stays shut from one to
//! the next, and is opened when the acquisition ends. From then on the lock itself keeps readers
//! out, or there is nothing to keep them out for. It holds a value of that acquisition's, and only
//! that value is deleted, since the delete may arrive after the next writer's `SET`. It is no lock:
//! its value names no owner.
//!
//! While the writer is the first in a queue, the value names that: readers whose turn has come in
//! it stood there before, and pass. Their commands may be late on some nodes, and the queue's node
//! has told the writer already that it is the first. A writer that has no place keeps all out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use quorlock_resp::encode;

use super::command::{Encoded, NO_PLACE, Subject};
use super::leases::Leases;
use super::resource::Resource;
use super::wire::Value;
use crate::entropy::Nonce;
use crate::link::{ReplyKind, Undo};

/// How long a gate stays shut that is not shut again, in milliseconds: three heartbeats, for as
/// long as `turn_ask.lua` takes one that waits for alive.
const LIFE_MS: &[u8] = b"1500";

pub(super) struct Gate {
    leases: Arc<Leases>,
    /// The gate's key; `None` where there is no name for it.
    resource: Option<Resource>,
    /// The lock's affinity: commands about the gate use the same links.
    affinity: u64,
    nonce: u64,
    /// The queue that the value names which was told last.
    queue: AtomicU64,
    is_shut: AtomicBool,
}

impl Gate {
    /// Open. The lock is one of one key.
    pub(super) fn new(leases: Arc<Leases>, lock: &Resource) -> Self {
        let Nonce([a, b, c, d, e, f, g, h, ..]) = leases.context.nodes.entropy().nonce();
        let nonce = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        let (resource, affinity) = (lock.gate(), lock.affinity());
        let (queue, is_shut) = (AtomicU64::new(NO_PLACE), AtomicBool::new(false));
        Self { leases, resource, affinity, nonce, queue, is_shut }
    }

    /// Shuts it, or keeps it shut, for a while: to all, or for the first in the queue of this name
    /// but to those who were there before. Waits for nothing.
    pub(super) fn shut(&self, queue: u64) {
        let Some(gate) = self.resource.as_ref().and_then(|it| it.keys().first()) else { return };
        // One task at a time has the acquisition: the order of other memory does not matter.
        self.queue.store(queue, Ordering::Relaxed);
        self.is_shut.store(true, Ordering::Relaxed);
        let mut bytes = Vec::new();
        let value = self.value(queue);
        encode::command(&mut bytes, &[b"SET", gate.full(), value.as_bytes(), b"PX", LIFE_MS]);
        self.tell(Encoded { bytes: &bytes, kind: ReplyKind::Any, undo: Undo::NONE });
    }

    /// Opens it, if it has been shut.
    pub(super) fn open(&self) {
        if !self.is_shut.swap(false, Ordering::Relaxed) {
            return;
        }
        if let Some(resource) = &self.resource {
            let value = self.value(self.queue.load(Ordering::Relaxed));
            let gate = Subject { resource, value: Value::Told(&value) };
            gate.with_open(|open| self.tell(open));
        }
    }

    fn value(&self, queue: u64) -> String {
        match queue {
            NO_PLACE => format!("{:016x}", self.nonce),
            _ => format!("{queue}:{:016x}", self.nonce),
        }
    }

    /// Tells all nodes, on the links that carry the lock.
    fn tell(&self, encoded: Encoded<'_>) {
        let context = &self.leases.context;
        let now = context.nodes.clock().now();
        context.nodes.tell(&context.command(encoded, self.affinity, context.options.ttl, now));
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.open();
    }
}
