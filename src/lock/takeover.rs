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
//!
//! ```text
//!  token ──asked──▶ majority set ──left behind──────────────────────▶ ours
//!                     │    └──its guard may live──▶ waits, extended ──▶ ours
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
use crate::error::{Error, Kind};
use crate::link::{Shape, Urgency};
use crate::options::Extend;
use crate::quorum::{Command, Deed, NodeMask, Verdict};
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
    let former_end = match token.is_left_behind() {
        true => None,
        false => Some(at.now.plus(former_left(locker, tie))),
    };
    let hold = Adopting(HoldRef::begin(claim, extend, at)?);
    if let Some(end) = former_end {
        let clock = locker.nodes.clock();
        if !clock.can_sleep() {
            return Err(Error::no_runtime());
        }
        if hold.0.protect(clock.sleep_until(end)).await.is_none() {
            // A shutdown takes what is held here, too; the token's value is put back then.
            locker.check_open()?;
            return Err(hold.0.lost_error());
        }
    }
    hold.0.own()?;
    Ok(LockGuard::new(hold.0.clone()))
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
/// token's value.
fn why_not(locker: &Inner, tie: &Tie) -> Kind {
    let without = |deed| matches!(deed, Deed::Held | Deed::Gone);
    let without = tie.election.deeds().filter(|(_, deed)| without(*deed)).count();
    let needed = locker.nodes.majority();
    match locker.nodes.len() - without < needed {
        true => Kind::Lost { reason: None },
        false => Kind::no_quorum(&tie.election.report(), needed),
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
