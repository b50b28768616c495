//! Refuses nodes that hold keys, because they may be in production.
//!
//! A run writes as fast as the nodes can take it, which would be an outage for their other clients.

use std::time::Duration;

use quorlock::{Client, Error};

use super::place::Place;
use crate::exit::{Cause, Failure};
use crate::nodes::majority;
use crate::words::counted;

/// How long a node may take to be connected to and to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Refuses unless every node says that it is empty. Sends no other commands.
pub(crate) async fn refuse_if_any(clients: Vec<Client>, places: &[Place]) -> Result<(), Failure> {
    let mut asked = tokio::task::JoinSet::new();
    for (number, client) in clients.into_iter().enumerate() {
        let client = client.timeout(PATIENCE);
        asked.spawn(async move { (number, count(&client).await) });
    }
    let mut untold = Vec::new();
    let mut populated = None;
    while let Some(answer) = asked.join_next().await {
        let Ok((number, counted)) = answer else { continue };
        let label = &places[number].label;
        match counted {
            Ok(0) => {}
            Ok(keys) => populated = populated.max(Some((keys, label))),
            Err(failure) => untold.push((label, failure)),
        }
    }
    if let Some((keys, label)) = populated {
        let what = format!(
            "{label} holds {} and may be in use, and nothing was written; measure on \
             empty nodes, or give --force",
            counted(keys as usize, "key")
        );
        return Err(Failure::new(Cause::Configuration, what));
    }
    let answered = places.len() - untold.len();
    let needed = majority(places.len());
    let Some((label, failure)) = untold.into_iter().next() else { return Ok(()) };
    let why = if answered < needed {
        format!("no quorum: {answered} of {} nodes answered, {needed} needed", places.len())
    } else {
        format!("cannot count the keys on {label}; leave it out, or give --force")
    };
    Err(Failure::new(failure.cause, format!("{why}: {}", failure.what)))
}

/// The keys in all databases of a node.
async fn count(client: &Client) -> Result<u64, Failure> {
    let reply = client.command(["INFO", "keyspace"]).await.map_err(named)?;
    match reply.as_str() {
        Ok(text) => Ok(keys(text)),
        // If INFO is not allowed, count at least the keys of one database.
        Err(_) => {
            let reply = client.command(["DBSIZE"]).await.map_err(named)?;
            let refused = || {
                let error = String::from_utf8_lossy(reply.as_error().unwrap_or_default());
                Failure::new(Cause::Denied, error.escape_debug().to_string())
            };
            reply.as_integer().ok().and_then(|n| u64::try_from(n).ok()).ok_or_else(refused)
        }
    }
}

/// The error's report of its one node, which says more than the error itself.
fn named(error: Error) -> Failure {
    let node = error.nodes().first().map(ToString::to_string);
    let failure = Failure::from(error);
    Failure { what: node.unwrap_or(failure.what), ..failure }
}

/// The sum over lines like `db0:keys=12,expires=0,avg_ttl=0`.
fn keys(info: &str) -> u64 {
    let databases = info.lines().filter_map(|line| line.split_once(":keys="));
    let counts =
        databases.filter_map(|(_, rest)| rest.split(',').next()?.trim().parse::<u64>().ok());
    counts.sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_all_databases_count() {
        let info = "# Keyspace\r\ndb0:keys=12,expires=0,avg_ttl=0\r\ndb7:keys=30,expires=1\r\n";
        assert_eq!(keys(info), 42);
        assert_eq!(keys("# Keyspace\r\n"), 0);
    }
}
