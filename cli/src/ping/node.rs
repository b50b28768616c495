//! One node, how it answered, and what is wrong with it.

use quorlock::report::NodeHealth;

use super::measure::Pings;
use crate::words;

/// One node, and how it answered. Nothing was sent to one that is not connected.
pub(super) struct Node {
    pub(super) health: NodeHealth,
    pub(super) pings: Option<Pings>,
}

impl Node {
    pub(super) fn has_answered(&self) -> bool {
        self.health.is_connected() && self.pings.as_ref().is_some_and(|pings| pings.answered() > 0)
    }

    /// Warnings about a node that works.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        let of_all = [words::forgets([&self.health]), words::far_clocks([&self.health])];
        of_all.into_iter().flatten().chain(self.evicts())
    }

    pub(super) fn evicts(&self) -> Option<String> {
        let policy = self.health.server.as_ref()?.maxmemory_policy.as_deref()?;
        (policy != "noeviction").then(|| {
            format!(
                "{} deletes keys when its memory is full (maxmemory-policy {policy}), a lock that \
                 is held among them; set noeviction",
                self.health.node
            )
        })
    }
}

/// Why a node does not count towards the majority.
pub(super) fn why(node: &Node) -> String {
    match node.health.fault() {
        Some(fault) => fault.to_string(),
        None => "did not answer".into(),
    }
}
