//! A writer's lock that becomes a read lock without being let go of in between.
//!
//! ```text
//!  writer's guard ──its hold ends──▶ asked ──majority──▶ reader's guard
//!                                      └─ no majority, no time, dropped ─▶ let go of
//! ```
//!
//! It takes one round trip. No other writer can have the lock meanwhile: each node goes from the
//! one to the other in one step, and so a majority of them has either at any time.

use std::future::poll_fn;
use std::sync::Arc;

use super::claim::Claim;
use super::context::LeaseContext;
use super::hold_ref::HoldRef;
use super::leases::Leases;
use super::resource::Resource;
use crate::error::{Error, Kind};
use crate::options::Extend;
use crate::quorum::{Found, NodeMask, Verdict};
use crate::sync::atomic::Ordering;

/// A lock that is in no hold while its nodes are asked: a shutdown must know of it.
pub(crate) struct Downgrading(Arc<LeaseContext>);

impl Downgrading {
    /// Before the writer's hold ends.
    pub(crate) fn begin(leases: &Leases) -> Self {
        let context = leases.context.clone();
        context.downgrading.fetch_add(1, Ordering::SeqCst);
        Self(context)
    }
}

impl Drop for Downgrading {
    /// Behind what becomes of the lock: a hold, or its undo.
    fn drop(&mut self) {
        self.0.downgrading.fetch_sub(1, Ordering::SeqCst);
    }
}

/// See [`LockGuard::downgrade`](crate::LockGuard::downgrade).
pub(crate) async fn downgrade(
    leases: &Arc<Leases>,
    mut writer: Claim,
    (resource, script): (Resource, &'static str),
    extend: Extend,
) -> Result<HoldRef, Error> {
    let context = &leases.context;
    // Dropped anywhere below, it lets go of the lock, whatever the nodes have made of it.
    let shared = writer.downgrade(resource, script)?;
    let verdict = poll_fn(|cx| shared.election.poll_verdict(cx)).await;
    let at = context.nodes.clock().read();
    if verdict != Verdict::Won {
        let Found { held, gone, .. } = shared.election.found(NodeMask::NONE);
        let (nodes, needed) = (context.nodes.len(), context.nodes.majority());
        return Err(shared.error(match nodes - held - gone >= needed {
            true => Kind::no_quorum(&shared.election.report(), needed),
            false => Kind::Lost { reason: None },
        }));
    }
    if !at.stamp.is_before(shared.warning()) {
        let elapsed = at.stamp.since(shared.sent);
        return Err(shared.error(Kind::TooSlow { ttl: shared.ttl(), elapsed }));
    }
    HoldRef::begin(leases, shared, extend, at)
}
