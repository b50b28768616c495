//! What servers count: how often each command was executed, by clients and by their scripts.

use std::collections::BTreeMap;

use crate::servers::Servers;

/// Of each server by itself.
#[derive(Debug, Default)]
pub(crate) struct Counts(Vec<Node>);

#[derive(Debug, Default)]
struct Node(BTreeMap<String, Executed>);

/// How often, and for how long.
#[derive(Clone, Copy, Debug, Default)]
struct Executed {
    calls: u64,
    micros: u64,
}

/// What the scripts that keep a queue execute, and clients send only where there is none.
const OF_SCRIPTS: [&str; 11] = [
    "del",
    "get",
    "pexpireat",
    "pttl",
    "publish",
    "set",
    "time",
    "zadd",
    "zrange",
    "zrem",
    "zscore",
];

/// What only who counts sends.
const OF_COUNTING: [&str; 3] = ["client|list", "info", "ping"];

impl Counts {
    /// By now.
    pub(crate) fn of(servers: &Servers) -> Self {
        let node = |stats: String| Node(stats.lines().filter_map(executed).collect());
        Self(servers.ask_each(&["INFO", "commandstats"]).map(node).collect())
    }

    /// What has come since then.
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self(self.0.iter().zip(&before.0).map(|(now, then)| now.since(then)).collect())
    }

    /// How many commands clients have sent. A script counts as one, and what it executes as none.
    pub(crate) fn sent(&self) -> u64 {
        self.0.iter().map(Node::sent).sum()
    }

    /// How often a command was executed, by scripts, too.
    pub(crate) fn calls(&self, name: &str) -> u64 {
        self.0.iter().map(|node| node.calls(name)).sum()
    }

    /// The time that the servers spent on these, in microseconds: a script's holds that of what it
    /// calls.
    pub(crate) fn micros(&self, names: &[&str]) -> u64 {
        let each = self.0.iter().flat_map(|node| names.iter().filter_map(|name| node.0.get(*name)));
        each.map(|executed| executed.micros).sum()
    }

    /// The commands that were executed, with how often each was.
    pub(crate) fn all(&self) -> BTreeMap<&str, u64> {
        let mut all = BTreeMap::new();
        for (name, executed) in self.0.iter().flat_map(|node| &node.0) {
            *all.entry(name.as_str()).or_default() += executed.calls;
        }
        all
    }
}

impl Node {
    fn since(&self, before: &Self) -> Self {
        let since = |(name, now): (&String, &Executed)| {
            let then = before.0.get(name).copied().unwrap_or_default();
            let calls = now.calls.saturating_sub(then.calls);
            (name.clone(), Executed { calls, micros: now.micros.saturating_sub(then.micros) })
        };
        Self(self.0.iter().map(since).collect())
    }

    fn calls(&self, name: &str) -> u64 {
        self.0.get(name).map_or(0, |executed| executed.calls)
    }

    /// Servers count what scripts execute with what clients send. Where no queue is kept, a script
    /// executes GET and DEL or PEXPIRE, and no client does. Where one is kept (its scripts alone
    /// ask for the TIME), a client may send SET as well, at its first try, which is not told apart
    /// and not counted; each tracked read is a PTTL.
    fn sent(&self) -> u64 {
        let keeps_queue = self.calls("time") > 0;
        let is_sent = |name: &str| match name {
            "del" | "get" | "pexpire" => false,
            _ if keeps_queue && OF_SCRIPTS.contains(&name) => false,
            _ => !OF_COUNTING.contains(&name),
        };
        let sent = self.0.iter().filter(|(name, _)| is_sent(name));
        let tracked = if keeps_queue { self.calls("client|caching") } else { 0 };
        sent.map(|(_, executed)| executed.calls).sum::<u64>() + tracked
    }
}

/// `cmdstat_set:calls=7,usec=9,…`
fn executed(line: &str) -> Option<(String, Executed)> {
    let (name, figures) = line.strip_prefix("cmdstat_")?.split_once(':')?;
    let figure = |wanted: &str| {
        let mut figures = figures.split(',').filter_map(|figure| figure.split_once('='));
        figures.find(|(name, _)| *name == wanted)?.1.parse().ok()
    };
    Some((name.to_owned(), Executed { calls: figure("calls")?, micros: figure("usec")? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_scripts_execute_was_not_sent() {
        let node = |names: &[(&str, u64)]| {
            let executed = |calls| Executed { calls, micros: 0 };
            Node(names.iter().map(|(name, calls)| ((*name).to_owned(), executed(*calls))).collect())
        };
        let plain = node(&[("set", 5), ("evalsha", 5), ("get", 5), ("del", 4), ("info", 2)]);
        assert_eq!(plain.sent(), 10);
        let queue = node(&[("evalsha", 3), ("time", 3), ("set", 2), ("pttl", 2)]);
        assert_eq!(queue.sent(), 3);
        let watched = node(&[("evalsha", 3), ("time", 3), ("pttl", 2), ("client|caching", 1)]);
        assert_eq!(watched.sent(), 5);
    }

    #[test]
    fn executions_are_read_by_name() {
        let (name, found) = executed("cmdstat_client|list:calls=3,usec=12,x=1").unwrap();
        assert_eq!((name.as_str(), found.calls, found.micros), ("client|list", 3, 12));
        assert!(executed("# Commandstats").is_none());
    }
}
