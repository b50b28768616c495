//! Asking a holder to let go of its lock.
//!
//! On every node that holds the holder's value a `!` is put behind it, and the key lives on as
//! long as it would have. So the lock is held for all others as before, plain clients among them,
//! but no extension finds its value any more: it ends where it stands. The holder is told, by its
//! channel at once, or by its next extension, and its release deletes the marked value as it would
//! its own.
//!
//! Once a majority is marked, that cannot be taken back: whatever majority an extension needs has a
//! marked node in it, on which the key keeps the end that it has. So the lock is over when so many
//! of the marked keys have ended as make a majority: the rest is none. Deleting the key instead
//! would let another client in beside a holder that works on; so a holder that does not listen is
//! waited for.
//!
//! An extension that was on its way is counted: the mark finds the key's life as that has left it.
//! And a holder sets its value anew where a key has ended, which it must not do on a node that was
//! marked: with a node without the mark it could have a majority again. So until that end as many
//! of the marked keys have to live as leave it none. Where they would not, for one of them ends
//! sooner and some node has no mark, the keys are marked once more, to live until then.

use std::future::poll_fn;
use std::time::Duration;

use super::context::{GRAIN, LeaseContext};
use super::inspect::look_for_value;
use super::key::Key;
use super::wire::owner_of;
use crate::error::{Error, Kind};
use crate::link::ReplyKind;
use crate::node_vote::NodeVote;
use crate::quorum::{Election, NodeMask, Patience, Verdict};
use crate::report::{Holder, Inspection, KeyState, NodeInspection, NodeReport, Outcome};

const REVOKE: &str = include_str!("script/revoke.lua");

/// How often a lock is looked at, at most, while its holders change; and how often it is marked
/// while it is extended.
const LOOKS: usize = 3;

/// A lock that was revoked, by [`Locker::revoke`](crate::Locker::revoke).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Revocation {
    /// Who holds the lock, as it was found when it was asked for.
    pub holder: Holder,
    /// The lock is over after so long at the latest, counted from when this was returned: its
    /// holder has released it by then, or lost it.
    pub over_in: Duration,
}

/// See [`Locker::revoke`](crate::Locker::revoke).
pub(crate) async fn revoke(context: &LeaseContext, key: &Key) -> Result<Option<Revocation>, Error> {
    context.nodes.ensure_driver()?;
    // One that was asked, on some node at least.
    let mut asked = None;
    for _ in 0..LOOKS {
        let (seen, value, may_be_held) = look_for_value(context, key).await;
        if let Some(what) = seen.foreign() {
            return Err(Error::new(Kind::Foreign { what: what.into() }).with_key(key.given()));
        }
        let (Some(holder), Some(value)) = (seen.holder(), value) else {
            // A holder that was told by the first mark may have let go before the next one came.
            let let_go = asked.map(|holder| Revocation { holder, over_in: Duration::ZERO });
            return if may_be_held { Err(why_unknown(&seen, key)) } else { Ok(let_go) };
        };
        refuse(holder, &value)?;
        let (marking, is_final) = mark(context, key, &value).await?;
        if is_final {
            let over_in = context.majority_life(&marking);
            return Ok(Some(Revocation { holder: holder.clone(), over_in }));
        }
        if !marking.granted().is_empty() {
            asked = Some(holder.clone());
        }
        if !has_changed_hands(&marking, context.nodes.majority()) {
            let nodes = marking.report();
            let kind = Kind::no_quorum(&nodes, context.nodes.majority());
            return Err(Error::new(kind).with_key(key.given()).with_nodes(nodes));
        }
    }
    Err(Error::new(Kind::Contended { holder: None }).with_key(key.given()))
}

/// Marks the value wherever it stands. Whether the lock ends by that: a majority is marked, and
/// what is left to the others stays too little. Asked for again and again, it makes no life longer:
/// marks that end together by a timer's grain, which a holder's margin covers, are left as they
/// are.
async fn mark(context: &LeaseContext, key: &Key, value: &[u8]) -> Result<(Election, bool), Error> {
    let clock = context.nodes.clock();
    let (mut least, mut rounds) = (Duration::ZERO, LOOKS);
    loop {
        rounds -= 1;
        let sent = clock.now();
        let marking = send_mark(context, key, value, least)?;
        let is_won = poll_fn(|cx| marking.poll_verdict(cx)).await == Verdict::Won;
        let lives: Vec<_> =
            marking.granted().nodes().filter_map(|node| marking.time(node)).collect();
        let end = context.majority_end(lives.iter().copied()).unwrap_or_default();
        let last = lives.iter().filter(|life| **life + GRAIN >= end);
        let is_even = last.count() >= context.too_many_for_others();
        if !is_won || is_even || rounds == 0 {
            return Ok((marking, is_won && is_even));
        }
        least = end.saturating_sub(clock.now().since(sent));
    }
}

fn send_mark(
    context: &LeaseContext,
    key: &Key,
    value: &[u8],
    least: Duration,
) -> Result<Election, Error> {
    let least = least.as_millis().to_string();
    let words = [b"EVAL", REVOKE.as_bytes(), b"1", key.full(), value, least.as_bytes()];
    let rule = context.nodes.rule(Patience::All);
    context.ask(&words, ReplyKind::Adopt, key.affinity(), NodeMask::ALL, rule)
}

/// Refuses a holder that would not understand.
fn refuse(holder: &Holder, value: &[u8]) -> Result<(), Error> {
    if holder.is_shared {
        return Err(Error::misuse(
            "readers hold the lock, and readers are not asked to let go of it",
        ));
    }
    if owner_of(value).is_none() {
        return Err(Error::misuse(
            "a client that is not quorlock holds the lock, and does not understand that it is to \
             let go of it; wait for its end",
        ));
    }
    Ok(())
}

/// Too few nodes have told what they hold.
fn why_unknown(seen: &Inspection, key: &Key) -> Error {
    let report = |node: &NodeInspection| {
        let outcome = match &node.state {
            KeyState::Unknown(outcome) => outcome.clone(),
            KeyState::Free => Outcome::Gone,
            KeyState::Held(_) | KeyState::Foreign { .. } => Outcome::Held,
        };
        NodeReport { node: node.node.clone(), outcome, rtt: None }
    };
    let nodes: Vec<_> = seen.nodes.iter().map(report).collect();
    Error::new(Kind::no_quorum(&nodes, seen.majority)).with_key(key.given()).with_nodes(nodes)
}

/// Whether so many nodes hold another value by now that no majority can hold this one.
fn has_changed_hands(marking: &Election, majority: usize) -> bool {
    let votes = || marking.votes();
    let others = votes().filter(|(_, vote)| matches!(vote, NodeVote::Held | NodeVote::Gone));
    votes().count() - others.count() < majority
}
