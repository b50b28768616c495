//! What is left on the nodes when every client has ended in order: nothing, but what clients that
//! were killed have held, and what clients have left on purpose.

use std::collections::HashSet;
use std::time::Duration;

use support::wait::Watchdog;
use support::{Reply, Server};

use crate::nodes::Nodes;

/// How long the last undos may take to be executed.
const SETTLING: Duration = Duration::from_secs(2);

/// Each key that no client has a right to leave, in words.
pub(crate) fn look(nodes: &Nodes, killed: &HashSet<u32>, spared: &[String]) -> Vec<String> {
    let watchdog = Watchdog::with_patience("the last undos", SETTLING * 2);
    loop {
        let servers = nodes.fleet.iter().enumerate();
        let left: Vec<String> = servers
            .flat_map(|(number, server)| {
                let keys = left_on(server, killed, spared);
                keys.into_iter().map(move |key| format!("left on node {number}: {key}"))
            })
            .collect();
        if left.is_empty() || watchdog.elapsed() > SETTLING {
            return left;
        }
        watchdog.pause();
    }
}

fn left_on(server: &Server, killed: &HashSet<u32>, spared: &[String]) -> Vec<String> {
    let keys = server.command(&["KEYS", "*"]).array();
    let names = keys.iter().map(Reply::text).filter(|key| !key.contains("quorlock:"));
    let mut left = Vec::new();
    for key in names {
        let value = match server.command(&["GET", &key]) {
            Reply::Bulk(value) => String::from_utf8_lossy(&value).into_owned(),
            // It has ended between the two commands.
            _ => continue,
        };
        for value in holders(server, &key, value) {
            // A value ends with its process: `random@name@host:process`.
            let process = value.rsplit(':').next().and_then(|number| number.parse().ok());
            let was_killed = process.is_some_and(|number| killed.contains(&number));
            if !was_killed && !spared.contains(&value) {
                let ttl = server.command(&["PTTL", &key]).int();
                let owner = value.split_once('@').map_or("?", |(_, owner)| owner);
                left.push(format!("{key} of {owner}, for another {ttl} ms"));
            }
        }
    }
    left
}

/// The values of those that have a key which holds this: itself, or those of its readers.
fn holders(server: &Server, key: &str, value: String) -> Vec<String> {
    if value != "quorlock:readers" {
        return vec![value];
    }
    let readers = format!("{{{key}}}:quorlock:readers");
    let readers = server.command(&["ZRANGE", &readers, "0", "-1"]).array();
    readers.iter().map(Reply::text).collect()
}
