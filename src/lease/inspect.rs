//! Who holds a key, and for how long: asked of every node, for waiters, errors and people.
//!
//! A nil reply to an acquisition says neither. So it is asked separately, and only when a caller is
//! about to wait or wants to know.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use quorlock_resp::Frame;

use super::context::LeaseContext;
use super::key::{Key, READERS};
use super::leases::Leases;
use super::wire::{REVOKED, owner_of};
use crate::error::Error;
use crate::fence::Fence;
use crate::link::ReplyKind;
use crate::quorum::{Election, NodeMask, NodeSet};
use crate::report::{Holder, Inspection, KeyState, NodeInspection, Outcome, printable};

/// For how long answers are waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Until each node has answered, or has not in time.
    AllNodes,
    /// Until a majority has told who holds the key, or that no one value can have one: a node that
    /// hangs delays none that waits.
    Holder,
}

/// What is known of the key on a node, and the value that it has there.
type Seen = (KeyState, Option<Vec<u8>>);

/// The two questions to a node.
type Asked = (Result<Election, Error>, Result<Election, Error>);

/// Asks every node for the key's value and its remaining time. Whether that is a lock of this very
/// locker is looked for where `names_own` says so, for all its holds are looked at then.
pub(crate) async fn look(
    leases: Arc<Leases>,
    key: Key,
    names_own: bool,
    extent: Extent,
) -> Inspection {
    let context = &*leases.context;
    let (mut nodes, values) = ask_all(context, &key, extent).await;
    if names_own {
        name_own(&mut nodes, &values, &leases, &key);
    }
    let majority = context.nodes.majority();
    let holder = holder_of(&nodes, &values, majority);
    let fence = if extent == Extent::AllNodes { look_at_fence(context, &key).await } else { None };
    Inspection::new(nodes, majority, holder, fence)
}

/// As [`look`], with the value that a majority of the nodes holds, and whether a majority may hold
/// one as far as the nodes have not told.
pub(super) async fn look_for_value(
    context: &LeaseContext,
    key: &Key,
) -> (Inspection, Option<Vec<u8>>, bool) {
    let (nodes, values) = ask_all(context, key, Extent::Holder).await;
    let majority = context.nodes.majority();
    let holder = holder_of(&nodes, &values, majority);
    let count = |value: &Vec<u8>| values.iter().flatten().filter(|other| *other == value).count();
    let value = values.iter().flatten().find(|value| count(value) >= majority).cloned();
    let most = values.iter().flatten().map(count).max().unwrap_or_default();
    let is_unknown = |node: &&NodeInspection| matches!(node.state, KeyState::Unknown(_));
    let may_be_held = most + nodes.iter().filter(is_unknown).count() >= majority;
    (Inspection::new(nodes, majority, holder, None), value, may_be_held)
}

/// What each node holds under the key, and the values that are a lock's.
async fn ask_all(
    context: &LeaseContext,
    key: &Key,
    extent: Extent,
) -> (Vec<NodeInspection>, Vec<Option<Vec<u8>>>) {
    let majority = context.nodes.majority();
    let asked = |node| (ask(context, key, node, b"GET"), ask(context, key, node, b"PTTL"));
    let mut asked: Vec<Option<Asked>> = (0..context.nodes.len()).map(asked).map(Some).collect();
    let mut seen: Vec<Option<Seen>> = asked.iter().map(|_| None).collect();
    let mut needed = if extent == Extent::AllNodes { asked.len() } else { majority };
    while needed > 0 {
        for node in first_answers(&asked, needed).await {
            seen[node] = see(context, key, node, asked[node].take()).await;
        }
        needed = usize::from(!is_settled(&seen, majority));
    }
    let (mut nodes, mut values) = (Vec::new(), Vec::new());
    for (node, seen) in context.nodes.labels().zip(seen) {
        let (state, value) = seen.unwrap_or((KeyState::Unknown(Outcome::Pending), None));
        nodes.push(NodeInspection { node, state });
        values.push(value);
    }
    (nodes, values)
}

/// The highest fence of the key that a majority of the nodes has. A node that does not tell, as
/// for want of a right, counts as one that has none.
async fn look_at_fence(context: &LeaseContext, key: &Key) -> Option<Fence> {
    let key = key.fence()?;
    let nodes = 0..context.nodes.len();
    let asked: Vec<_> = nodes.map(|node| ask(context, &key, node, b"GET")).collect();
    let mut fences = Vec::new();
    for (node, asked) in asked.into_iter().enumerate() {
        fences.extend(answer(node, asked).await.ok().and_then(|frame| fence_in(&frame)));
    }
    reached_by(context.nodes.majority(), fences)
}

fn fence_in(frame: &Frame) -> Option<Fence> {
    Fence::from_number(frame.as_str().ok()?.parse().ok()?)
}

/// The highest fence that so many of these have reached.
fn reached_by(majority: usize, mut fences: Vec<Fence>) -> Option<Fence> {
    fences.sort_unstable_by_key(|fence| std::cmp::Reverse(*fence));
    fences.get(majority.checked_sub(1)?).copied()
}

fn ask(context: &LeaseContext, key: &Key, node: usize, name: &[u8]) -> Result<Election, Error> {
    let (words, to) = ([name, key.full()], NodeMask::only(node));
    context.ask(&words, ReplyKind::Any, key.affinity(), to, NodeSet::rule_of_one())
}

/// Those of the nodes that have answered, as soon as so many have.
async fn first_answers(asked: &[Option<Asked>], needed: usize) -> Vec<usize> {
    poll_fn(|cx| {
        let mut is_answered = |(get, pttl): &Asked| {
            [get, pttl].into_iter().flatten().all(|asked| asked.poll_verdict(cx).is_ready())
        };
        let nodes = asked.iter().enumerate();
        let nodes = nodes.filter(|(_, asked)| asked.as_ref().is_some_and(&mut is_answered));
        let answered: Vec<usize> = nodes.map(|(node, _)| node).collect();
        if answered.len() >= needed { Poll::Ready(answered) } else { Poll::Pending }
    })
    .await
}

/// What a node answers.
async fn see(context: &LeaseContext, key: &Key, node: usize, asked: Option<Asked>) -> Option<Seen> {
    let (get, pttl) = asked?;
    let (get, pttl) = (answer(node, get).await, answer(node, pttl).await);
    let is_other_type = get.as_ref().is_ok_and(|frame| frame.error_word() == Some(b"WRONGTYPE"));
    let kind = match is_other_type {
        true => answer(node, ask(context, key, node, b"TYPE")).await.ok(),
        false => None,
    };
    Some(state_of(get, pttl, kind))
}

async fn answer(node: usize, asked: Result<Election, Error>) -> Result<Frame, Outcome> {
    let Ok(election) = asked else { return Err(Outcome::NotAsked) };
    poll_fn(|cx| election.poll_verdict(cx)).await;
    election.take_frame(node).ok_or_else(|| election.outcome(node).0)
}

/// Whether a majority has one value, or none can have it whatever the others answer.
fn is_settled(seen: &[Option<Seen>], majority: usize) -> bool {
    let values: Vec<_> = seen.iter().flatten().filter_map(|(_, value)| value.as_ref()).collect();
    let count = |value: &_| values.iter().filter(|other| *other == value).count();
    let (most, left) = (values.iter().map(count).max().unwrap_or_default(), seen.iter());
    let left = left.filter(|seen| seen.is_none()).count();
    most >= majority || most + left < majority
}

/// One node's state, and the value it holds if that is a lock's.
fn state_of(
    get: Result<Frame, Outcome>,
    pttl: Result<Frame, Outcome>,
    kind: Option<Frame>,
) -> Seen {
    let (get, pttl) = match (get, pttl) {
        (Ok(get), Ok(pttl)) => (get, pttl),
        (Err(outcome), _) | (_, Err(outcome)) => return (KeyState::Unknown(outcome), None),
    };
    if let Some(error) = pttl.as_error() {
        return (KeyState::Unknown(Outcome::Refused { error: printable(error) }), None);
    }
    let remaining = pttl.as_integer();
    let expiry = if remaining == Ok(-1) { "without expiry" } else { "with an expiry" };
    if let Some(error) = get.as_error() {
        if get.error_word() != Some(b"WRONGTYPE") {
            return (KeyState::Unknown(Outcome::Refused { error: printable(error) }), None);
        }
        let kind = kind.as_ref().and_then(|kind| kind.as_str().ok()).unwrap_or("value");
        let what = format!("a {kind}, {expiry}").into();
        return (KeyState::Foreign { what }, None);
    }
    let (Ok(value), Ok(remaining)) = (get.as_bytes(), remaining) else {
        return (KeyState::Free, None);
    };
    match u64::try_from(remaining) {
        Ok(millis) => {
            let (value, is_revoked) = without_revocation(value);
            let owner = owner_of(value).map(|owner| printable(owner.as_bytes()));
            let remaining = Duration::from_millis(millis);
            let is_shared = value == READERS;
            let holder = Holder { owner, remaining, is_shared, is_own: false, is_revoked };
            (KeyState::Held(holder), Some(value.to_vec()))
        }
        Err(_) if remaining == -1 => {
            (KeyState::Foreign { what: format!("a string, {expiry}").into() }, None)
        }
        Err(_) => (KeyState::Free, None), // it expired between the two questions
    }
}

/// The value that a lock was acquired with, and whether it was revoked since.
fn without_revocation(value: &[u8]) -> (&[u8], bool) {
    match value.strip_suffix(REVOKED).filter(|value| owner_of(value).is_some()) {
        Some(value) => (value, true),
        None => (value, false),
    }
}

/// Marks what this locker holds itself, by a guard that lives. Its name alone does not tell: others
/// may have the same. It may hold several values of one key: of a lock that is lost, too. Where
/// readers hold the key no value of theirs stands there, and any read lock of this locker counts.
fn name_own(nodes: &mut [NodeInspection], values: &[Option<Vec<u8>>], leases: &Leases, key: &Key) {
    let context = &*leases.context;
    let name = Some(&*context.owner);
    let may_be_own = |value: &Vec<u8>| value == READERS || owner_of(value) == name;
    if !values.iter().flatten().any(may_be_own) {
        return;
    }
    let own = leases.find(|claim| {
        if !claim.was_owned() || !claim.resource.has(key) {
            return None;
        }
        let stands = match claim.resource.primitive.holders.are_readers() {
            true => READERS.to_vec(),
            false => claim.value().to_string().into_bytes(),
        };
        values.iter().flatten().find(|found| **found == stands)
    });
    for (node, value) in nodes.iter_mut().zip(values) {
        if let (KeyState::Held(holder), Some(_)) = (&mut node.state, own) {
            holder.is_own = value.as_ref() == own;
        }
    }
}

/// The holder whose one value stands on a majority; what remains is the longest of its keys. It is
/// revoked where a majority says so.
fn holder_of(
    nodes: &[NodeInspection],
    values: &[Option<Vec<u8>>],
    majority: usize,
) -> Option<Holder> {
    let mut held: HashMap<&[u8], Vec<&Holder>> = HashMap::new();
    for (node, value) in nodes.iter().zip(values) {
        if let (KeyState::Held(holder), Some(value)) = (&node.state, value) {
            held.entry(value).or_default().push(holder);
        }
    }
    let holders = held.into_values().find(|holders| holders.len() >= majority)?;
    let is_revoked = holders.iter().filter(|holder| holder.is_revoked).count() >= majority;
    let holder = holders.into_iter().max_by_key(|holder| holder.remaining)?;
    Some(Holder { is_revoked, ..holder.clone() })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn bulk(text: &str) -> Frame {
        Frame::Bulk(Bytes::copy_from_slice(text.as_bytes()))
    }

    fn seen(get: Frame, pttl: i64, kind: Option<&str>) -> KeyState {
        state_of(Ok(get), Ok(Frame::Integer(pttl)), kind.map(bulk)).0
    }

    #[test]
    fn a_nodes_answers_say_what_it_holds() {
        let ours = format!("{}@me@h:1", "ab".repeat(20));
        let held = |owner: Option<&str>| {
            let owner = owner.map(Into::into);
            KeyState::Held(Holder {
                owner,
                remaining: Duration::from_millis(70),
                is_shared: false,
                is_own: false,
                is_revoked: false,
            })
        };
        let foreign = |what: &str| KeyState::Foreign { what: what.into() };
        let wrong_type = || Frame::Error(Bytes::from_static(b"WRONGTYPE Operation against a key"));

        assert_eq!(seen(Frame::Null, -2, None), KeyState::Free);
        assert_eq!(seen(bulk(&ours), 70, None), held(Some("me@h:1")));
        assert_eq!(seen(bulk("other"), 70, None), held(None));
        assert_eq!(seen(bulk(&ours), -2, None), KeyState::Free);
        assert_eq!(seen(bulk("x"), -1, None), foreign("a string, without expiry"));
        assert_eq!(seen(wrong_type(), -1, Some("hash")), foreign("a hash, without expiry"));
        assert_eq!(seen(wrong_type(), 5, None), foreign("a value, with an expiry"));
    }

    #[test]
    fn a_node_that_may_not_be_asked_does_not_say_free() {
        let forbidden = || Ok(Frame::Error(Bytes::from_static(b"NOPERM no pttl")));
        assert!(matches!(state_of(Ok(bulk("x")), forbidden(), None).0, KeyState::Unknown(_)));
        assert!(matches!(
            state_of(forbidden(), Ok(Frame::Integer(5)), None).0,
            KeyState::Unknown(_)
        ));
    }

    #[test]
    fn a_fence_counts_that_a_majority_has_reached() {
        let reached = |numbers: &[u64]| {
            let fences = numbers.iter().copied().filter_map(Fence::from_number).collect();
            reached_by(2, fences).map(Fence::number)
        };
        assert_eq!(reached(&[7, 9, 8]), Some(8));
        assert_eq!(reached(&[9, 9]), Some(9));
        assert_eq!(reached(&[9]), None);
        assert_eq!(fence_in(&bulk("42")), Fence::from_number(42));
        for none in ["-1", "x", "9007199254740992"] {
            assert_eq!(fence_in(&bulk(none)), None, "{none}");
        }
        assert_eq!(fence_in(&Frame::Null), None);
    }

    #[test]
    fn the_holder_has_one_value_on_a_majority() {
        let node = |millis| NodeInspection {
            node: "n".into(),
            state: KeyState::Held(Holder {
                owner: None,
                remaining: Duration::from_millis(millis),
                is_shared: false,
                is_own: false,
                is_revoked: false,
            }),
        };
        let nodes = [node(10), node(30), node(20)];
        let values = |names: [&str; 3]| names.map(|name| Some(name.as_bytes().to_vec()));
        let holder = holder_of(&nodes, &values(["a", "a", "b"]), 2).unwrap();
        assert_eq!(holder.remaining, Duration::from_millis(30));
        assert_eq!(holder_of(&nodes, &values(["a", "b", "c"]), 2), None);
    }
}
