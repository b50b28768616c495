//! Putting a new deployment into service without waiting.

use std::future::poll_fn;
use std::sync::Arc;

use super::command;
use super::context::LeaseContext;
use super::durability::Volatile;
use crate::error::{Error, Kind};
use crate::node_vote::NodeVote;
use crate::quorum::{Election, Verdict};
use crate::report::NodeReport;

/// See [`Locker::initialise`](crate::Locker::initialise).
///
/// Every node is looked at before any is changed. A node in service says that the deployment works
/// already: those that are not have forgotten something, and wait for a reason.
pub(crate) async fn initialise(context: &Arc<LeaseContext>) -> Result<Vec<NodeReport>, Error> {
    let Some(volatile) = &context.volatile else {
        return Err(Error::misuse(
            "only a `Volatile` deployment is initialised; this locker has `Durability::Persistent`",
        ));
    };
    context.check_open()?;
    context.nodes.ready(context.options.link.connect_timeout).await?;
    let (seen, _) = ask(context, volatile, b"look").await?;
    let serving = seen.votes().filter(|(_, vote)| *vote == NodeVote::Granted).count();
    if serving == context.nodes.len() {
        return Ok(seen.report());
    }
    if serving > 0 {
        return Err(Error::misuse(format!(
            "{serving} of {} nodes are in service: the deployment is at work, and a node that is \
             not will vote by itself when no lock that it has forgotten can be left",
            context.nodes.len()
        ))
        .with_nodes(seen.report()));
    }
    let (done, verdict) = ask(context, volatile, b"write").await?;
    if verdict == Verdict::Won {
        return Ok(done.report());
    }
    Err(no_answer(context, &done))
}

/// Asks every node, and waits for all of them; an error unless each could say yes or no.
async fn ask(
    context: &Arc<LeaseContext>,
    volatile: &Volatile,
    act: &[u8],
) -> Result<(Election, Verdict), Error> {
    let election = command::with_initialise(volatile, act, |encoded| {
        let now = context.nodes.clock().now();
        let command = context.command(encoded, 0, context.options.ttl, now);
        context.nodes.ask(&command, context.nodes.rule_of_all())
    })?;
    let verdict = poll_fn(|cx| election.poll_verdict(cx)).await;
    volatile.check(&election)?;
    if election.votes().any(|(_, vote)| !matches!(vote, NodeVote::Granted | NodeVote::Gone)) {
        return Err(no_answer(context, &election));
    }
    Ok((election, verdict))
}

fn no_answer(context: &LeaseContext, election: &Election) -> Error {
    let nodes = election.report();
    let refused = nodes.iter().any(|node| node.outcome.is_authentication());
    let needed = context.nodes.len();
    let kind = if refused { Kind::Authentication { needed } } else { Kind::Unavailable { needed } };
    Error::new(kind).with_nodes(nodes)
}
