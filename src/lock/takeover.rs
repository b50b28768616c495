//! Locks of others: taking one over by its token, and deleting one by force.
//!
//! Adopting gives the lock another value, node by node: where the key holds the token's value, a
//! script sets a fresh one. A majority of such nodes makes the lock ours, by the rules of any
//! acquisition. The token's value is worth nothing from then on: an undo that is still owed for it
//! deletes nothing, a second adopter finds another value, and a guard that still lives under it
//! finds that a majority does not hold its key any more.
//!
//! That guard may not learn of it before its next extension. So a lock that was not known to be
//! left behind is ours only when the time is over that the former value had left on a majority of
//! the nodes that were given the new one: until then the former holder may count on any of them.
//! And a majority must confirm the new value then. Where servers may forget, nodes can come back
//! from a snapshot with the former value, and the former holder's extensions count there; but at
//! the confirmation it has no majority whose time is not over, and that is final.
//!
//! ```text
//!  token ──asked──▶ majority set ──left behind──────────────────────────────────▶ ours
//!                     │    └──its guard may live──▶ waits, extended ──confirmed──▶ ours
//!                     │ no majority, no time, dropped
//!                     ▼
//!            the former value is put back on every node that may hold the new one
//! ```

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use quorlock_resp::encode;

use super::claim::{Claim, Tie};
use super::guard::LockGuard;
use super::hold::HoldRef;
use super::key::Key;
use super::locker::Inner;
use super::token::OwnerToken;
use crate::clock::Moment;
use crate::error::{Error, Kind};
use crate::link::{Shape, Urgency};
use crate::observe::Loss;
use crate::options::Extend;
use crate::quorum::{Command, Found, NodeMask, Verdict};
use crate::report::NodeReport;

/// A server tells the time left in whole milliseconds, rounded down.
const GRAIN: Duration = Duration::from_millis(1);

/// See [`Locker::adopt`](super::Locker::adopt).
pub(crate) async fn adopt(
    locker: &Arc<Inner>,
    key: Key,
    token: &OwnerToken,
    ttl: Duration,
    extend: Extend,
) -> Result<LockGuard, Error> {
    // Dropped anywhere below, the claim and the hold put the former value back.
    let claim = Claim::adopt(locker, key, token.value(), ttl)?;
    let verdict = poll_fn(|cx| claim.poll_verdict(cx)).await;
    let at = locker.nodes.clock().read();
    let Some(tie) = claim.tie() else { return Err(Error::new(Kind::Lost { reason: None })) };
    if let Some(volatile) = &locker.volatile {
        volatile.check(&tie.election)?;
    }
    locker.check_open()?;
    let error = |kind| Error::new(kind).with_key(tie.key.given()).with_nodes(claim.report());
    if verdict != Verdict::Won {
        return Err(error(why_not(locker, tie)));
    }
    if !at.stamp.is_before(tie.warning(locker)) {
        return Err(error(Kind::TooSlow { ttl, elapsed: at.stamp.since(tie.sent) }));
    }
    let former_end = at.now.plus(former_left(locker, tie));
    owe_for_as_long(locker, tie);
    // Until it is ours it is extended, whatever was asked for.
    let hold = Adopting(HoldRef::begin(claim, Extend::Forever, at)?);
    if !token.is_left_behind() {
        outlive(locker, &hold.0, former_end, ttl).await?;
    }
    hold.0.own(extend)?;
    Ok(LockGuard::new(hold.0.clone()))
}

/// Waits for the end of the time that the former holder may count on, and makes sure that a majority
/// holds the new value then: a node that came back from a snapshot may hold the former one again.
async fn outlive(
    locker: &Inner,
    hold: &HoldRef,
    former_end: Moment,
    ttl: Duration,
) -> Result<(), Error> {
    let clock = locker.nodes.clock();
    if !clock.can_sleep() {
        return Err(Error::no_runtime());
    }
    let waited = hold.protect(clock.sleep_until(former_end)).await;
    let confirmed = match waited {
        Some(()) => hold.extend(ttl).await,
        None => Err(hold.lost_error()),
    };
    let Err(error) = confirmed else { return Ok(()) };
    locker.check_open()?;
    // Its time is over, and not the lock's: the token can be tried again.
    match hold.loss() {
        Some(Loss::Expired) => {
            let needed = locker.nodes.majority();
            Err(Error::new(Kind::Unavailable { needed }).with_key(&hold.key()))
        }
        _ => Err(error),
    }
}

/// What is undone of an adoption is about keys that may live for as long as the former holder wanted.
fn owe_for_as_long(locker: &Inner, tie: &Tie) {
    let left = tie.election.granted().filter_map(|node| tie.election.time(node)).max();
    if let Some(left) = left.filter(|left| *left > locker.options.ttl) {
        locker.nodes.extend_horizon(locker.options.undo_horizon(left));
    }
}

/// A hold that is not ours yet: dropping it ends it.
struct Adopting(HoldRef);

impl Drop for Adopting {
    fn drop(&mut self) {
        // The claim that this leaves puts the former value back.
        if !self.0.is_owned() {
            drop(self.0.end());
        }
    }
}

/// Why an adoption has failed. The lock is lost only if too few nodes are left that may hold the
/// token's value; where some did, another value may be that of an adoption that fails as well.
fn why_not(locker: &Inner, tie: &Tie) -> Kind {
    let Found { granted, held, gone, .. } = tie.election.found();
    let (nodes, needed) = (locker.nodes.len(), locker.nodes.majority());
    if nodes - gone - held >= needed {
        Kind::no_quorum(&tie.election.report(), needed)
    } else if granted > 0 && nodes - gone >= needed {
        Kind::Contended { holder: None }
    } else {
        Kind::Lost { reason: None }
    }
}

/// How long a former holder may count on nodes that have been given the new value: for as long as
/// the former one would have lived on any node of some majority of them.
fn former_left(locker: &Inner, tie: &Tie) -> Duration {
    let granted = tie.election.granted();
    let mut left: Vec<_> = granted.filter_map(|node| tie.election.time(node)).collect();
    left.sort_unstable();
    let longest = left.get(locker.nodes.majority() - 1).or_else(|| left.last());
    let longest = longest.copied().unwrap_or(locker.options.ttl);
    longest + GRAIN + locker.options.drift.of(longest)
}

/// See [`Locker::force_release`](super::Locker::force_release).
pub(crate) async fn force_release(locker: &Inner, key: &Key) -> Result<Vec<NodeReport>, Error> {
    let mut bytes = Vec::new();
    encode::command(&mut bytes, &[b"DEL", key.full()]);
    let command = Command {
        bytes: &bytes,
        // How many keys it deleted.
        shape: Shape::Script,
        undo: &[],
        affinity: key.affinity(),
        sent: locker.nodes.clock().now(),
        allowed: locker.options.node_deadline(locker.options.ttl),
        urgency: Urgency::Usual,
        to: NodeMask::ALL,
    };
    // A node that had no key counts as refusing; all are waited for.
    let election = locker.nodes.ask(&command, locker.nodes.rule_of_all())?;
    poll_fn(|cx| election.poll_verdict(cx)).await;
    let nodes = election.report();
    let answered = nodes.iter().filter(|node| node.outcome.is_answer()).count();
    let needed = locker.nodes.majority();
    if answered >= needed {
        return Ok(nodes);
    }
    Err(Error::new(Kind::no_quorum(&nodes, needed)).with_key(key.given()).with_nodes(nodes))
}
