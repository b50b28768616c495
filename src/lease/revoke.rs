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
//! marked: with a node without the mark it could have a majority again. So as many of the marked
//! keys as leave it none have to live until that end, or nearly (see [`weigh`]). Where they would
//! not, for one of them ends sooner and some node has no mark, the keys are marked once more, to
//! live until then; and one that may have ended before the last was marked counts as none. Where
//! even that is not sure, the end is waited for, and the lock looked at once more. A holder that
//! has heard of it sets nothing anew.

use std::future::poll_fn;
use std::time::Duration;

use super::context::LeaseContext;
use super::inspect::look_for_value;
use super::key::Key;
use super::wire::owner_of;
use super::{validity, watch};
use crate::clock::nanoseconds;
use crate::error::{Error, Kind};
use crate::link::ReplyKind;
use crate::node_vote::NodeVote;
use crate::quorum::{Election, NodeMask, Patience, Verdict};
use crate::report::{Holder, Inspection, KeyState, NodeInspection, NodeReport, Outcome};

const REVOKE: &str = include_str!("script/revoke.lua");

/// How often a lock is looked at, at most, while its holders change or its end is not sure.
const LOOKS: usize = 3;

/// How often it is marked in a row, at most, until its keys end together.
const ROUNDS: usize = 3;

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
    for looks_left in (0..LOOKS).rev() {
        let (seen, value, may_be_held) = look_for_value(context, key).await;
        if let Some(what) = seen.foreign() {
            return Err(Error::new(Kind::Foreign { what: what.into() }).with_key(key.given()));
        }
        let (Some(holder), Some(value)) = (seen.holder(), value) else {
            // A holder that was told by the first mark may have let go before the next one came.
            let over_in =
                longest_mark(&seen).map_or(Duration::ZERO, |life| context.by_other_clocks(life));
            let let_go = asked.map(|holder| Revocation { holder, over_in });
            return if may_be_held { Err(why_unknown(&seen, key)) } else { Ok(let_go) };
        };
        refuse(holder, &value)?;
        let (marking, marked) = mark(context, key, &value).await?;
        if !marking.granted().is_empty() {
            asked = Some(holder.clone());
        }
        match marked {
            Marked::EndsIn(end) => {
                let over_in = context.by_other_clocks(end);
                return Ok(Some(Revocation { holder: holder.clone(), over_in }));
            }
            Marked::NotSure(end) if looks_left > 0 => {
                let over = context.nodes.clock().now().plus(context.by_other_clocks(end));
                watch::changed(context, None, over).await?;
            }
            Marked::NoMajority if !has_changed_hands(&marking, context.nodes.majority()) => {
                let nodes = marking.report();
                let kind = Kind::no_quorum(&nodes, context.nodes.majority());
                return Err(Error::new(kind).with_key(key.given()).with_nodes(nodes));
            }
            Marked::NotSure(_) | Marked::Again(_) | Marked::NoMajority => {}
        }
    }
    Err(Error::new(Kind::Contended { holder: None }).with_key(key.given()))
}

/// What its marks make of a lock.
enum Marked {
    /// No majority has them.
    NoMajority,
    /// It ends after so long, whatever its holder does.
    EndsIn(Duration),
    /// Some of the keys end too soon, and may be marked once more, to live so long at least.
    Again(Duration),
    /// What of it was marked ends after so long. By then its holder may have set some of it anew.
    NotSure(Duration),
}

/// Marks the value wherever it stands, and again where the keys would not end together.
async fn mark(
    context: &LeaseContext,
    key: &Key,
    value: &[u8],
) -> Result<(Election, Marked), Error> {
    let clock = context.nodes.clock();
    let (mut least, mut rounds) = (Duration::ZERO, ROUNDS);
    loop {
        rounds -= 1;
        let sent = clock.stamp();
        let marking = send_mark(context, key, value, least)?;
        let verdict = poll_fn(|cx| marking.poll_verdict(cx)).await;
        let took = clock.stamp().since(sent);
        let lives: Vec<_> =
            marking.granted().nodes().filter_map(|node| marking.time(node)).collect();
        let marked = match verdict {
            Verdict::Won => weigh(context, &lives, took),
            _ => Marked::NoMajority,
        };
        match marked {
            Marked::Again(longer) if rounds > 0 => least = longer,
            Marked::Again(_) => {
                let longest = lives.into_iter().max().unwrap_or_default();
                return Ok((marking, Marked::NotSure(longest)));
            }
            marked => return Ok((marking, marked)),
        }
    }
}

/// What the marks of a majority make of a lock, which `took` so long, by the lives that they told.
///
/// A key that ends before the others may be set anew, by an extension that was sent before the
/// marks, has found it gone, and is still counted. So such a key has to outlive the time that a
/// node has for its answer; or it ends so little before the others that its holder's reckoning has
/// ended by then, as that runs ahead by the clocks' drift and by a margin.
fn weigh(context: &LeaseContext, lives: &[Duration], took: Duration) -> Marked {
    // One that was told at the round's begin may have ended by now.
    let lasting = || lives.iter().copied().filter(|life| *life > took);
    let Some(end) = context.majority_end(lasting()) else {
        return Marked::NotSure(lives.iter().copied().max().unwrap_or_default());
    };
    let (drift, ttl) = (context.options.drift, end); // the TTL is no shorter than what is left
    let margin = Duration::from_nanos(validity::margin(nanoseconds(ttl), drift, 0));
    let ahead = (drift.of(ttl) + margin).saturating_sub(took);
    let settled = took + context.options.node_timeout(Duration::MAX);
    // Lives are told at any moment of a round, and the round before may have fallen short by two.
    let blur = 3 * took;
    let is_late =
        |life: &Duration| *life + ahead >= end || (*life > settled && *life + blur >= end);
    if lasting().filter(is_late).count() >= context.too_many_for_others() {
        return Marked::EndsIn(end);
    }
    // The end may have been told when the round began, and the next mark may come when as long as
    // this round has passed once more: so, if it does not take longer, no key lives longer than the
    // one that this end is of, however often that is asked for, and by however many clients.
    Marked::Again(end.saturating_sub(2 * took))
}

/// How long a value with the mark stands on some node.
fn longest_mark(seen: &Inspection) -> Option<Duration> {
    let remaining = |node: &NodeInspection| match &node.state {
        KeyState::Held(holder) if holder.is_revoked => Some(holder.remaining),
        _ => None,
    };
    seen.nodes.iter().filter_map(remaining).max()
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

/// Whether so many nodes hold another value by now, or none, that no majority can hold this one.
fn has_changed_hands(marking: &Election, majority: usize) -> bool {
    let votes = || marking.votes();
    let others = votes().filter(|(_, vote)| matches!(vote, NodeVote::Held | NodeVote::Gone));
    votes().count() - others.count() < majority
}
