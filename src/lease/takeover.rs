//! Locks of others: taking one over by its token, releasing one by it, deleting one by force.
//!
//! Adopting gives the lock another value, node by node: where the key holds the token's value, a
//! script sets a fresh one. A majority of such nodes makes the lock ours, by the rules of any
//! acquisition. The token's value is worth nothing from then on: an undo that is still pending for
//! it deletes nothing, a second adopter finds another value, and a guard that still lives under it
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

use super::claim::Claim;
use super::command::{Encoded, Subject};
use super::context::LeaseContext;
use super::extension::Extension;
use super::hold_ref::HoldRef;
use super::key::Key;
use super::leases::Leases;
use super::release::{Release, Releasing};
use super::resource::Resource;
use super::token::OwnerToken;
use super::wire::Value;
use crate::clock::Moment;
use crate::error::{Error, Kind};
use crate::link::ReplyKind;
use crate::node_vote::NodeVote;
use crate::options::Extend;
use crate::quorum::{Election, Found, NodeMask, Patience, Verdict};
use crate::report::{NodeReport, Outcome};

/// See [`Locker::adopt`](crate::Locker::adopt).
pub(crate) async fn adopt(
    leases: &Arc<Leases>,
    resource: Resource,
    token: &OwnerToken,
    ttl: Duration,
    (extend, is_fenced): (Extend, bool),
) -> Result<HoldRef, Error> {
    let context = &leases.context;
    token.check_one_key()?;
    // Dropped anywhere below, the claim and the hold put the former value back.
    let now = context.nodes.clock().now();
    let mut claim = Claim::ask(context, resource, Some(token.value()), ttl, now)?;
    if is_fenced {
        // Above the former holder's, who may still write under that.
        claim.ask_fence()?;
    }
    let verdict = poll_fn(|cx| claim.election.poll_verdict(cx)).await;
    let mut at = context.nodes.clock().read();
    let longest =
        claim.election.granted().nodes().filter_map(|node| claim.election.time(node)).max();
    if let Some(longest) = longest.filter(|longest| *longest > context.options.ttl) {
        // The keys live for as long as before, and so long matters what is pending for them.
        context.nodes.extend_horizon(context.options.undo_horizon(longest));
    }
    if let Some(volatile) = &context.volatile {
        volatile.check(&claim.election)?;
    }
    context.check_open()?;
    if verdict != Verdict::Won {
        return Err(claim.error(why_not(context, &claim.election)));
    }
    if is_fenced {
        poll_fn(|cx| claim.poll_fence(cx)).await?;
        at = context.nodes.clock().read();
    }
    if !at.stamp.is_before(claim.warning()) {
        return Err(claim.error(Kind::TooSlow { ttl, elapsed: at.stamp.since(claim.sent) }));
    }
    let former_end = (!token.is_left_behind()).then(|| former_end(context, &claim.election));
    // While it waits it is extended, whatever is asked for afterwards.
    let waits = match former_end {
        Some(_) => Extend::Forever,
        None => extend,
    };
    let hold = Adopting(HoldRef::begin(leases, claim, waits, at)?);
    if let Some(end) = former_end {
        hold.outlive(end, ttl).await?;
    }
    if let Err(lost) = hold.0.own(extend) {
        return Err(hold.why_ended(lost).await);
    }
    Ok(hold.0.clone())
}

/// A hold that is not ours yet: dropping it ends it.
struct Adopting(HoldRef);

impl Adopting {
    /// Waits until the former holder's time is over. Then a majority must say once more that it
    /// holds the new value: a node may have come back from before it was given that, and have let
    /// the former holder extend its lock, where servers may forget.
    async fn outlive(&self, end: Moment, ttl: Duration) -> Result<(), Error> {
        let nodes = &self.0.context().nodes;
        let confirmed = match self.0.protect(nodes.sleep_past(end)).await {
            Some(Err(no_runtime)) => return Err(no_runtime),
            Some(Ok(())) => self.0.extend(ttl).await,
            None => Err(self.0.lost_error()),
        };
        match confirmed {
            Err(lost) if lost.is_lost() => Err(self.why_ended(lost).await),
            confirmed => confirmed,
        }
    }

    /// Why the adoption has failed whose hold has ended with the error `lost`. The lock is lost
    /// only if the nodes said so. Where a majority may hold it still, by the former value or by
    /// ours, another try may succeed; nor is anything known when the locker was shut down.
    async fn why_ended(&self, lost: Error) -> Error {
        let context = self.0.context();
        if let Err(closed) = context.check_open() {
            return closed;
        }
        let nodes = match lost.nodes() {
            [] => self.ask_again().await,
            nodes => nodes.to_vec(),
        };
        let holders = self.0.claim(|claim| may_hold(&claim.election, &nodes)).unwrap_or_default();
        if holders < context.nodes.majority() {
            return lost.with_nodes(nodes);
        }
        let kind = Kind::no_quorum(&nodes, context.nodes.majority());
        Error::new(kind).with_key(&self.0.key()).with_nodes(nodes)
    }

    /// What each node does with an extension now. The keeper's extensions have failed, and nothing
    /// is kept of what the nodes said to them. This one holds nothing: the loss is final.
    async fn ask_again(&self) -> Vec<NodeReport> {
        let context = self.0.context();
        let asked = self.0.claim(|claim| Extension::send(context, claim, claim.ttl()).ok());
        let Some(extension) = asked.flatten() else {
            // Without a runtime no node can be asked: the adoption's own report is the newest.
            return self.0.votes();
        };
        poll_fn(|cx| extension.poll_verdict(cx)).await;
        extension.report()
    }
}

impl Drop for Adopting {
    fn drop(&mut self) {
        // The claim that this leaves puts the former value back.
        if !self.0.was_owned() {
            self.0.end(&mut None);
        }
    }
}

/// How many nodes may hold the former value or ours, by what they did with the adoption and then
/// with an extension of ours.
fn may_hold(adoption: &Election, extended: &[NodeReport]) -> usize {
    let may_hold = |((_, vote), then): &((usize, NodeVote), &NodeReport)| match then.outcome {
        Outcome::Granted => true,
        Outcome::Gone => false,
        // It may be the former value, where the adoption has not been executed.
        Outcome::Held => !matches!(vote, NodeVote::Granted | NodeVote::Held | NodeVote::Gone),
        _ => !matches!(vote, NodeVote::Held | NodeVote::Gone),
    };
    adoption.votes().zip(extended).filter(may_hold).count()
}

/// Why an adoption has failed. The lock is lost only if too few nodes are left that may hold the
/// token's value; where some did, another value may be that of an adoption that fails as well.
fn why_not(context: &LeaseContext, adoption: &Election) -> Kind {
    let Found { granted, held, gone, .. } = adoption.found(NodeMask::NONE);
    let (nodes, needed) = (context.nodes.len(), context.nodes.majority());
    if nodes - gone - held >= needed {
        Kind::no_quorum(&adoption.report(), needed)
    } else if granted > 0 && nodes - gone >= needed {
        Kind::Contended { holder: None }
    } else {
        Kind::Lost { reason: None }
    }
}

/// Until when a former holder may count on nodes that have been given the new value: for as long as
/// the former one would have lived on any node of some majority of them.
fn former_end(context: &LeaseContext, adoption: &Election) -> Moment {
    let life = context.majority_life(adoption);
    // The clock is read behind the answers: a node may have granted while this thread was not let
    // run, and its time counts from then.
    context.nodes.clock().now().plus(life)
}

/// See [`Locker::release_by_token`](crate::Locker::release_by_token).
pub(crate) async fn release(
    leases: &Leases,
    resource: Resource,
    token: &OwnerToken,
) -> Result<Release, Error> {
    let context = &*leases.context;
    token.check_one_key()?;
    // A guard of ours shall not believe in what we delete.
    leases.lose(|claim| {
        let is_meant = resource.keys().iter().any(|key| claim.resource.has(key));
        is_meant && claim.value().to_string() == token.value()
    });
    let subject = Subject { resource: &resource, value: Value::Told(token.value()) };
    let affinity = resource.affinity();
    // What an earlier release could not delete, the next connection deletes before this one.
    let unsure = context.nodes.pending_on(affinity, &subject.pair());
    let election = subject.with_release(|encoded: Encoded<'_>| {
        // It is no undo of what was accepted, of which there are only so many.
        let now = context.nodes.clock().now();
        let command = context.command(encoded, affinity, context.options.ttl, now);
        context.nodes.ask(&command, context.nodes.rule(Patience::All))
    })?;
    Ok(Releasing { election, unsure }.finish().await)
}

/// See [`Locker::force_release`](crate::Locker::force_release).
pub(crate) async fn force_release(
    context: &LeaseContext,
    key: &Key,
) -> Result<Vec<NodeReport>, Error> {
    // The reply says how many keys it deleted. A node that had none counts as refusing; all are
    // waited for.
    let (words, rule) = ([b"DEL", key.full()], context.nodes.rule_of_all());
    let election = context.ask(&words, ReplyKind::Script, key.affinity(), NodeMask::ALL, rule)?;
    poll_fn(|cx| election.poll_verdict(cx)).await;
    let nodes = election.report();
    let answered = nodes.iter().filter(|node| node.outcome.is_answer()).count();
    let needed = context.nodes.majority();
    if answered >= needed {
        return Ok(nodes);
    }
    Err(Error::new(Kind::no_quorum(&nodes, needed)).with_key(key.given()).with_nodes(nodes))
}
