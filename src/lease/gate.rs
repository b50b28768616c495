//! The gate of a lock that readers have. A writer that waits keeps it shut on all nodes: readers
//! that ask from then on do not join those that have the lock, so that it waits for these and for
//! no others.
//!
//! It belongs to the acquisition as a whole, and not to one of its tries: it stays shut from one to
//! the next, and is opened when the acquisition ends. From then on the lock itself keeps readers
//! out, or there is nothing to keep them out for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quorlock_resp::encode;

use super::command::Encoded;
use super::leases::Leases;
use super::resource::Resource;
use crate::link::{ReplyKind, Undo};

/// How long a gate stays shut that is not shut again, in milliseconds: three heartbeats, for as
/// long as `turn_ask.lua` takes one that waits for alive.
const LIFE_MS: &[u8] = b"1500";

pub(super) struct Gate {
    leases: Arc<Leases>,
    resource: Resource,
    is_shut: AtomicBool,
}

impl Gate {
    /// Open. The lock is one of one key.
    pub(super) fn new(leases: Arc<Leases>, resource: Resource) -> Self {
        Self { leases, resource, is_shut: AtomicBool::new(false) }
    }

    /// Shuts it, or keeps it shut, for a while. Waits for nothing.
    pub(super) fn shut(&self) {
        let Some(gate) = self.resource.gate() else { return };
        // One task at a time has the acquisition: the order of other memory does not matter.
        self.is_shut.store(true, Ordering::Relaxed);
        self.tell_all(&[b"SET", gate.full(), b"shut", b"PX", LIFE_MS]);
    }

    /// Opens it, if it has been shut.
    pub(super) fn open(&self) {
        if !self.is_shut.swap(false, Ordering::Relaxed) {
            return;
        }
        if let Some(gate) = self.resource.gate() {
            self.tell_all(&[b"DEL", gate.full()]);
        }
    }

    fn tell_all(&self, words: &[&[u8]]) {
        let context = &self.leases.context;
        let mut bytes = Vec::new();
        encode::command(&mut bytes, words);
        let encoded = Encoded { bytes: &bytes, kind: ReplyKind::Any, undo: Undo::NONE };
        let (affinity, now) = (self.resource.affinity(), context.nodes.clock().now());
        context.nodes.tell(&context.command(encoded, affinity, context.options.ttl, now));
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.open();
    }
}
