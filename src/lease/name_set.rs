//! A set of names that nodes keep at a key: it only grows, until it ends.
//!
//! One question adds a name on every node and reads what a majority has. Any two majorities have a
//! node in common, so a reader finds every name that was added before it began. Adding is repeated
//! without harm. On one node, of two names that each keep the other out, one is added and stands:
//! a decision.

use std::collections::BTreeSet;
use std::future::poll_fn;

use super::command;
pub(crate) use super::command::Addition;
use super::context::LeaseContext;
use super::key::Key;
use crate::error::{Error, Kind};
use crate::quorum::{Election, Patience, Verdict};
use crate::report::Outcome;

/// Adds a name, if one is given, and reads all names. Where it fails, the name may be on some
/// nodes.
pub(crate) async fn add_and_read(
    context: &LeaseContext,
    key: &Key,
    addition: Addition<'_>,
) -> Result<BTreeSet<Vec<u8>>, Error> {
    context.check_open()?;
    let volatile = context.volatile.as_ref();
    let election = command::with_name_set(volatile, key, addition, |encoded| {
        let now = context.nodes.clock().now();
        let command = context.command(encoded, key.affinity(), addition.ttl, now);
        context.nodes.ask(&command, context.nodes.rule(Patience::Early))
    })?;
    let verdict = poll_fn(|cx| election.poll_verdict(cx)).await;
    if let Some(volatile) = volatile {
        volatile.check(&election)?;
    }
    match verdict {
        Verdict::Won => Ok(union(&election)),
        _ => Err(failure(context, key, &election)),
    }
}

/// Every name that one of the nodes has told.
fn union(election: &Election) -> BTreeSet<Vec<u8>> {
    let mut names = BTreeSet::new();
    for node in election.granted().nodes() {
        let Some(frame) = election.take_frame(node) else { continue };
        // A granted reply is of this form: `ReplyKind::NameSet` has seen to that.
        let items = frame.as_items().unwrap_or_default();
        names.extend(items.iter().skip(1).filter_map(|item| Some(item.as_bytes().ok()?.to_vec())));
    }
    names
}

fn failure(context: &LeaseContext, key: &Key, election: &Election) -> Error {
    let (nodes, needed) = (election.report(), context.nodes.majority());
    let is_wrong_type = |outcome: &Outcome| match outcome {
        Outcome::Refused { error } | Outcome::Failed { error } => error.starts_with("WRONGTYPE"),
        _ => false,
    };
    let wrong = nodes.iter().filter(|node| is_wrong_type(&node.outcome)).count();
    // So many leave no majority, whatever the others say.
    let kind = match wrong > nodes.len() - needed {
        true => Kind::Misuse {
            what: format!(
                "the key \"{}\" holds something else; use another key, or a prefix",
                key.given().escape_ascii()
            )
            .into(),
        },
        false => Kind::no_quorum(&nodes, needed),
    };
    Error::new(kind).with_key(key.given()).with_nodes(nodes)
}
