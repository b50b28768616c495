//! What is left on the nodes when every client has ended in order: nothing, but what clients that
//! were killed have held or waited for, and what clients have left on purpose.
//!
//! A slot `{K}:slot:I` is a key like that of a lock. Of the keys that the library has beside these
//! the queues are looked at, as `{K}:slots:N:quorlock:queue`, and their beats: one that waits no
//! longer is in none.

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
    let mut left = Vec::new();
    for key in keys.iter().map(Reply::text) {
        for value in values(server, &key) {
            // A value ends with its process, `random@name@host:process`, and with a mark where its
            // holder was asked to let go.
            let value = value.strip_suffix('!').unwrap_or(&value).to_owned();
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

/// The values of those that have this key, or wait in it.
fn values(server: &Server, key: &str) -> Vec<String> {
    let members = |key: &str| match server.command(&["ZRANGE", key, "0", "-1"]) {
        Reply::Array(members) => members.iter().map(Reply::text).collect(),
        _ => Vec::new(),
    };
    if is_queue(key) {
        return members(key);
    }
    if key.contains("quorlock:") {
        return Vec::new();
    }
    match server.command(&["GET", key]) {
        Reply::Bulk(value) if value == b"quorlock:readers" => {
            members(&format!("{{{key}}}:quorlock:readers"))
        }
        Reply::Bulk(value) => vec![String::from_utf8_lossy(&value).into_owned()],
        // It has ended between the two commands.
        _ => Vec::new(),
    }
}

fn is_queue(key: &str) -> bool {
    key.ends_with(":quorlock:queue") || key.ends_with(":quorlock:beats")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_a_lock_and_what_keeps_those_that_wait_for_one_is_a_queue() {
        assert!(is_queue("{redlock:k0}:slots:2:quorlock:queue"));
        assert!(is_queue("{redlock:k0}:slots:2:quorlock:beats"));
        assert!(!is_queue("{redlock:k0}:slot:1") && !is_queue("{k0}:quorlock:readers"));
    }
}
