//! Locks of others: taking one over by its token, and deleting one by force.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use quorlock_resp::encode;

use super::claim::Claim;
use super::guard::{LockGuard, OwnerToken};
use super::hold::HoldRef;
use super::key::Key;
use super::locker::Inner;
use crate::error::{Error, Kind};
use crate::link::{Shape, Urgency};
use crate::observe::Loss;
use crate::options::Extend;
use crate::quorum::{Command, NodeMask, Verdict};
use crate::report::NodeReport;

/// See [`Locker::adopt`](super::Locker::adopt).
pub(crate) async fn adopt(
    locker: &Arc<Inner>,
    key: Key,
    token: &OwnerToken,
    ttl: Duration,
    extend: Extend,
) -> Result<LockGuard, Error> {
    let mut claim = Claim::adopt(locker, key, token.as_str(), ttl)?;
    let verdict = poll_fn(|cx| claim.poll_verdict(cx)).await;
    let at = locker.nodes.clock().read();
    let Some(tie) = claim.tie() else { return Err(Error::new(Kind::Lost { reason: None })) };
    let nodes = tie.election.report();
    let answered = nodes.iter().filter(|node| node.outcome.is_answer()).count();
    let needed = locker.nodes.majority();
    let kind = match verdict {
        Verdict::Won if at.stamp.is_before(tie.end_of(tie.sent, locker)) => {
            claim.own();
            return HoldRef::begin(claim, extend, at).map(LockGuard::new);
        }
        Verdict::Won => Kind::Lost { reason: Some(Loss::Expired) },
        _ if answered >= needed => Kind::Lost { reason: None },
        _ => Kind::no_quorum(&nodes, needed),
    };
    Err(Error::new(kind).with_key(tie.key.given()).with_nodes(nodes))
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
