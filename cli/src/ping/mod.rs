//! `quorlock ping`: each node's round trips and properties.
//!
//! | file | job |
//! |---|---|
//! | `measure` | asking the nodes in turn, and timing the answers |
//! | `node` | a node and its answers; what is wrong with it |
//! | `table`, `report` | for people, for programs (`schema.json`) |
//!
//! A node's properties come from the library's handshake. The round trips are those of `PING` over
//! the library's own connections: what a caller waits for, the library's own share included. The
//! nodes are asked one after another, so that none waits for another.

mod measure;
mod node;
mod report;
mod table;

use std::time::Duration;

use quorlock::{
    Locker,
    report::{Fault, NodeHealth},
};

use crate::args::PingArgs;
use crate::exit::{Cause, Failure};
use crate::nodes::{self, Nodes};
use crate::{output, reach};
use node::{Node, why};

/// What `--json` prints, as a JSON Schema.
const SCHEMA: &str = include_str!("schema.json");

/// How long connecting to a node may take. It is less than the program waits for the nodes, so that
/// a node that hangs is reported as such.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(800);

/// Measures and shows.
pub(crate) async fn run(args: &PingArgs) -> Result<(), Failure> {
    if args.schema {
        return output::print(SCHEMA).await;
    }
    let nodes = Nodes::find(&args.nodes)?;
    let builder = nodes.locker()?.connect_timeout(CONNECT_TIMEOUT);
    let locker: Locker = nodes::build(builder)?;
    match reach::every_answer(&locker).await {
        // The table shows which nodes refused us, and why.
        Err(error) if !error.is_authentication() => return Err(error.into()),
        _ => {}
    }
    let health = locker.health();
    let is_connected: Vec<bool> = health.iter().map(NodeHealth::is_connected).collect();
    let (pings, signal) = measure::ask_in_turn(args, nodes.clients()?, &is_connected).await?;
    let nodes = health.into_iter().zip(pings);
    let nodes: Vec<Node> = nodes.map(|(health, pings)| Node { health, pings }).collect();

    let shown =
        if args.json { report::json(args, &nodes) + "\n" } else { table::text(args, &nodes) };
    output::print(shown).await?;
    match signal {
        Some(cause) => Err(Failure::new(cause, "stopped early; what is shown is what came so far")),
        None => judge(&nodes),
    }
}

/// Fails without a majority: no lock could be acquired.
fn judge(nodes: &[Node]) -> Result<(), Failure> {
    let answered = nodes.iter().filter(|node| node.has_answered()).count();
    let (all, needed) = (nodes.len(), nodes::majority(nodes.len()));
    if answered >= needed {
        return Ok(());
    }
    let is_denied = |node: &&Node| {
        matches!(node.health.fault(), Some(Fault::Authentication { .. } | Fault::Anonymous))
    };
    let denied = nodes.iter().filter(is_denied).count();
    let cause = if denied > all - needed { Cause::Denied } else { Cause::Unavailable };
    let down = nodes.iter().filter(|node| !node.has_answered());
    let down: Vec<String> =
        down.map(|node| format!("{} {}", node.health.node, why(node))).collect();
    let what = format!("no quorum: {answered} of {all} nodes answered, {needed} needed");
    Err(Failure::new(cause, format!("{what}; {}", down.join(", "))))
}
