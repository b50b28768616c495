//! `quorlock cached`, `idempotent` and `limit`: commands that need not run each time.
//!
//! | file | job |
//! |---|---|
//! | `cached` | a command whose output is kept for a while |
//! | `idempotent` | a command that is run once for each id |
//! | `limit` | a command that runs at most so often |
//! | `captured` | runs a command whose output is kept, and passes signals on to it |
//!
//! What they keep is on the first of the nodes; locks are on all of them.

mod cached;
mod captured;
mod idempotent;
mod limit;

use std::ffi::OsStr;
use std::time::Duration;

use quorlock::{Client, Extend, Locker};

pub(crate) use self::{cached::run as cached, idempotent::run as idempotent, limit::run as limit};
use crate::args::NodeArgs;
use crate::exit::{Cause, Failure};
use crate::nodes::{self, Nodes};

/// How long the first node may take, with connecting to it and with an output of 4 MiB.
const PATIENCE: Duration = Duration::from_secs(10);

/// A locker on all nodes, and a client of the first.
fn locker_and_client(args: &NodeArgs, wait: Duration) -> Result<(Locker, Client), Failure> {
    let nodes = Nodes::find(args)?;
    let locker = nodes::build(nodes.locker()?.wait(wait).auto_extend(Extend::Forever))?;
    Ok((locker, first(&nodes)?))
}

/// A client of the first node.
fn first(nodes: &Nodes<'_>) -> Result<Client, Failure> {
    let client = nodes.clients()?.into_iter().next();
    let client = client.ok_or_else(|| Failure::new(Cause::Configuration, "no nodes"))?;
    Ok(client.timeout(PATIENCE))
}

/// What a key is called on the nodes; with a name of its own behind it, so that it is no lock.
fn named(args: &NodeArgs, key: &OsStr, name: &str) -> Vec<u8> {
    [args.prefix.as_encoded_bytes(), key.as_encoded_bytes(), name.as_bytes()].concat()
}
