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
//! The value names the queue in which the writer waits. Readers whose turn has come in that queue
//! stood there before it, and pass: their commands may be late on some nodes, while the queue's
//! node has told the writer already that it is the first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
    queue: u64,
    /// The gate's key; `None` where there is no name for it.
    resource: Option<Resource>,
    /// The lock's affinity: commands about the gate use the same links.
    affinity: u64,
    value: Box<str>,
    is_shut: AtomicBool,
}

impl Gate {
    /// Open. The lock is one of one key, and its writer waits in the queue of this name, if it waits
    /// in one.
    pub(super) fn new(leases: Arc<Leases>, lock: &Resource, queue: u64) -> Self {
        let Nonce([a, b, c, d, e, f, g, h, ..]) = leases.context.nodes.entropy().nonce();
        let nonce = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        let value = match queue {
            NO_PLACE => format!("{nonce:016x}"),
            _ => format!("{queue}:{nonce:016x}"),
        };
        let (resource, affinity) = (lock.gate(), lock.affinity());
        Self {
            leases,
            queue,
            resource,
            affinity,
            value: value.into(),
            is_shut: AtomicBool::new(false),
        }
    }

    /// The same gate for a writer that waits in another queue now: shut if this one is, which is
    /// open from then on. Readers do not come through in between.
    pub(super) fn moved_to(&self, lock: &Resource, queue: u64) -> Self {
        let moved = Self::new(self.leases.clone(), lock, queue);
        if self.is_shut.load(Ordering::Relaxed) {
            moved.shut();
            self.open();
        }
        moved
    }

    /// The name of the queue in which its writer waits.
    pub(super) fn queue(&self) -> u64 {
        self.queue
    }

    /// Shuts it, or keeps it shut, for a while. Waits for nothing.
    pub(super) fn shut(&self) {
        let Some(gate) = self.resource.as_ref().and_then(|it| it.keys().first()) else { return };
        // One task at a time has the acquisition: the order of other memory does not matter.
        self.is_shut.store(true, Ordering::Relaxed);
        let mut bytes = Vec::new();
        let value = self.value.as_bytes();
        encode::command(&mut bytes, &[b"SET", gate.full(), value, b"PX", LIFE_MS]);
        self.tell(Encoded { bytes: &bytes, kind: ReplyKind::Any, undo: Undo::NONE });
    }

    /// Opens it, if it has been shut.
    pub(super) fn open(&self) {
        if !self.is_shut.swap(false, Ordering::Relaxed) {
            return;
        }
        if let Some(resource) = &self.resource {
            let gate = Subject { resource, value: Value::Told(&self.value) };
            gate.with_open(|open| self.tell(open));
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
