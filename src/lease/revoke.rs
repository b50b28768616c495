//! Asking a holder to let go of its lock.
//!
//! On every node that holds the holder's value a `!` is put behind it, and what the key has left to
//! live stays as it is. So the lock is held for all others as before, plain clients among them, but
//! no extension finds its value any more: it ends where it stands. The holder is told, by its
//! channel at once, or by its next extension, and its release deletes the marked value as it would
//! its own.
//!
//! Once a majority is marked, that cannot be taken back: whatever majority an extension needs has a
//! marked node in it, on which the lock ends when it would have ended by then. So it is over when
//! the longest of those is. Deleting the key instead would let another client in beside a holder
//! that works on; so a holder that does not listen is waited for.
//!
//! A holder that sets its key anew on a node that has lost it, or extends it by a command that was
//! on its way, was before that confirmed by a majority, and does not outlast what is said here: the
//! mark finds the key's life as that command has left it, or there is none to be marked.

use std::future::poll_fn;
use std::time::Duration;

use super::context::LeaseContext;
use super::inspect::look_for_value;
use super::key::Key;
use super::wire::owner_of;
use crate::error::{Error, Kind};
use crate::link::ReplyKind;
use crate::node_vote::NodeVote;
use crate::quorum::{Election, NodeMask, Patience, Verdict};
use crate::report::{Holder, Inspection, KeyState, NodeReport};

const REVOKE: &str = include_str!("script/revoke.lua");

/// A node counts in milliseconds.
const GRAIN: Duration = Duration::from_millis(1);

/// How often a lock is looked at whose holder changes meanwhile.
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
    for _ in 0..LOOKS {
        let (seen, value, may_be_held) = look_for_value(context, key).await;
        if let Some(what) = seen.foreign() {
            return Err(Error::new(Kind::Foreign { what: what.into() }).with_key(key.given()));
        }
        let (Some(holder), Some(value)) = (seen.holder(), value) else {
            return if may_be_held { Err(why_unknown(&seen, key)) } else { Ok(None) };
        };
        refuse(holder, &value)?;
        let marking = mark(context, key, &value)?;
        if poll_fn(|cx| marking.poll_verdict(cx)).await == Verdict::Won {
            let over_in = over_in(context, &marking);
            return Ok(Some(Revocation { holder: holder.clone(), over_in }));
        }
        if !has_changed_hands(&marking, context.nodes.majority()) {
            let nodes = marking.report();
            let kind = Kind::no_quorum(&nodes, context.nodes.majority());
            return Err(Error::new(kind).with_key(key.given()).with_nodes(nodes));
        }
    }
    Err(Error::new(Kind::Contended { holder: None }).with_key(key.given()))
}

/// Marks the value wherever it stands.
fn mark(context: &LeaseContext, key: &Key, value: &[u8]) -> Result<Election, Error> {
    let words = [b"EVAL", REVOKE.as_bytes(), b"1", key.full(), value];
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
    let outcome = |state: &KeyState| match state {
        KeyState::Unknown(outcome) => Some(outcome.clone()),
        _ => None,
    };
    let nodes = seen.nodes.iter().filter_map(|node| {
        let outcome = outcome(&node.state)?;
        Some(NodeReport { node: node.node.clone(), outcome, rtt: None })
    });
    let nodes: Vec<_> = nodes.collect();
    Error::new(Kind::no_quorum(&nodes, seen.majority)).with_key(key.given()).with_nodes(nodes)
}

/// Whether so many nodes hold another value by now that no majority can hold this one.
fn has_changed_hands(marking: &Election, majority: usize) -> bool {
    let votes = || marking.votes();
    let others = votes().filter(|(_, vote)| matches!(vote, NodeVote::Held | NodeVote::Gone));
    votes().count() - others.count() < majority
}

/// For how long a majority of the nodes that were marked can hold the lock at most.
fn over_in(context: &LeaseContext, marking: &Election) -> Duration {
    let mut left: Vec<_> =
        marking.granted().nodes().filter_map(|node| marking.time(node)).collect();
    left.sort_unstable();
    let longest = left.get(context.nodes.majority() - 1).or_else(|| left.last());
    let longest = longest.copied().unwrap_or(context.options.ttl);
    longest + GRAIN + context.options.drift.of(longest)
}
