//! The nodes as their users hold them: how they are made, and what is known of all of them.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::Notify;

use super::mask::NodeMask;
use super::mismatches::Mismatches;
use super::shared::{DriverState, Shared};
use super::slots::Slots;
use super::tally::{Patience, Rule};
use super::timer::DriverTimer;
use crate::clock::Clock;
use crate::entropy::Entropy;
use crate::error::{Error, Kind};
use crate::link::{Dial, HandshakeConfig, Undo};
use crate::node::Node;
use crate::observe::Observers;
use crate::options::{Address, LinkOptions};
use crate::report::{NodeHealth, NodeReport, Outcome};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{AtomicWaker, Mutex};

/// The arguments of [`NodeSet::new`].
pub(crate) struct Parts {
    pub(crate) addresses: Vec<Address>,
    /// Whether the nodes must be independent masters, because their votes are counted.
    pub(crate) counted: bool,
    pub(crate) options: LinkOptions,
    pub(crate) clock: Clock,
    pub(crate) entropy: Arc<Entropy>,
    pub(crate) dial: Arc<dyn Dial>,
    pub(crate) handshake: HandshakeConfig,
    /// The observers of nodes that disconnect and reconnect.
    pub(crate) observers: Observers,
}

/// The nodes, as their users hold them. When the last user lets go, the driver delivers what is
/// written and ends.
pub(crate) struct NodeSet {
    pub(super) shared: Arc<Shared>,
}

impl NodeSet {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { addresses, counted, options, clock, entropy, dial, handshake, observers } =
            parts;
        let nodes: Box<[Node]> =
            addresses.into_iter().map(|address| Node::new(address, options)).collect();
        let driver = DriverState {
            waker: Arc::new(AtomicWaker::new()),
            passes: AtomicU64::new(0),
            starting: Mutex::new(()),
            home: Mutex::new(None),
            generation: AtomicU64::new(0),
            running: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            timer: DriverTimer::new(),
        };
        let (slots, mismatches) = (Slots::new(nodes.len()), Mismatches::new(nodes.len()));
        let changed = Notify::new();
        let undo_horizon = AtomicU64::new(0);
        let shared = Shared {
            nodes,
            slots,
            mismatches,
            counted,
            options,
            clock,
            entropy,
            dial,
            handshake,
            observers,
            driver,
            changed,
            undo_horizon,
        };
        Self { shared: Arc::new(shared) }
    }

    /// The same nodes, over connections of their own.
    pub(crate) fn apart(&self) -> Self {
        let Shared { nodes, counted, options, clock, .. } = &*self.shared;
        let Shared { entropy, dial, handshake, observers, .. } = &*self.shared;
        Self::new(Parts {
            addresses: nodes.iter().map(|node| node.address().clone()).collect(),
            counted: *counted,
            options: *options,
            clock: clock.clone(),
            entropy: entropy.clone(),
            dial: dial.clone(),
            handshake: handshake.clone(),
            observers: observers.clone(),
        })
    }

    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.shared.nodes.len()
    }

    /// How many grants are a majority.
    pub(crate) fn majority(&self) -> usize {
        Rule::majority(self.len())
    }

    /// The rule by which all nodes vote and a majority of grants wins.
    pub(crate) fn rule(&self, patience: Patience) -> Rule {
        let narrow = |count: usize| u8::try_from(count).unwrap_or(u8::MAX);
        Rule { voters: narrow(self.len()), needed: narrow(self.majority()), patience }
    }

    /// The rule by which nothing is decided before all have answered.
    pub(crate) fn rule_of_all(&self) -> Rule {
        let rule = self.rule(Patience::All);
        Rule { needed: rule.voters, ..rule }
    }

    /// The rule by which one node's answer decides.
    pub(crate) fn rule_of_one() -> Rule {
        Rule { voters: 1, needed: 1, patience: Patience::Early }
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    pub(crate) fn entropy(&self) -> &Entropy {
        &self.shared.entropy
    }

    /// Hands the driver on, for a caller that has woken another task of the driver's runtime and
    /// may not give its worker back.
    pub(crate) fn hand_on(&self) {
        self.shared.hand_driver_on(false);
    }

    /// Keys will live for longer than the options say, and undos will matter for so long.
    pub(crate) fn extend_horizon(&self, horizon: Duration) {
        let nanos = u64::try_from(horizon.as_nanos()).unwrap_or(u64::MAX);
        // Ordering: the links' own locks order what they are told.
        let known = &self.shared.undo_horizon;
        if known.load(Ordering::Relaxed) < nanos {
            known.fetch_max(nanos, Ordering::Relaxed);
            let links = self.shared.nodes.iter().flat_map(|node| node.links());
            links.for_each(|link| link.extend_horizon(horizon));
        }
    }

    /// Replaces the undos that this one supersedes by this one, on every node.
    pub(crate) fn undo_instead(&self, affinity: u64, undo: Undo<'_>) {
        self.shared.nodes.iter().for_each(|node| node.link(affinity).undo_instead(undo));
    }

    /// Withdraws the pending undos of a pair from every node.
    pub(crate) fn withdraw(&self, affinity: u64, pair: &[u8]) {
        self.shared.nodes.iter().for_each(|node| node.link(affinity).withdraw(pair));
    }

    /// The nodes on which the undo of a pair is pending.
    pub(crate) fn pending_on(&self, affinity: u64, pair: &[u8]) -> NodeMask {
        let nodes = self.shared.nodes.iter().enumerate();
        let pending = nodes.filter(|(_, node)| node.link(affinity).has_pending(pair));
        pending.fold(NodeMask::NONE, |mask, (index, _)| mask.with(index))
    }

    /// Whether every reply has come, and no undo is pending on any node.
    pub(crate) fn is_settled(&self) -> bool {
        self.shared.nodes.iter().flat_map(|node| node.links()).all(|link| link.is_settled())
    }

    /// How many undos the nodes have not confirmed, over all of them.
    pub(crate) fn owed(&self) -> usize {
        let now = self.clock().now();
        self.shared.nodes.iter().map(|node| node.owed(now)).sum()
    }

    /// The nodes' names.
    pub(crate) fn labels(&self) -> impl Iterator<Item = Arc<str>> + '_ {
        self.shared.nodes.iter().map(Node::label)
    }

    /// The name of each node's process, or of its address where that has none; `None` where the
    /// node is not connected, or does not tell what is published.
    pub(crate) fn processes(&self) -> impl Iterator<Item = Option<Box<str>>> + '_ {
        self.shared.nodes.iter().map(|node| {
            let is_heard = node.subscriptions().channel;
            is_heard.then(|| node.run_id().unwrap_or_else(|| (&*node.label()).into()))
        })
    }

    /// Whether this node tells when a key has changed that was read to be tracked.
    pub(crate) fn tells_changes(&self, node: usize) -> bool {
        self.shared.nodes.get(node).is_some_and(|node| node.subscriptions().changes)
    }

    /// The health of each node, without asking it.
    pub(crate) fn health(&self) -> Vec<NodeHealth> {
        let policy = self.shared.handshake.policy.as_deref();
        let health = self.shared.nodes.iter().map(|node| {
            let mut health = node.health();
            let known = health.server.as_ref().zip(policy);
            health.contradicts_durability =
                known.is_some_and(|(server, policy)| policy.may_be_forgotten(server));
            health
        });
        health.collect()
    }

    /// Which nodes are connected, and why the others are not.
    fn connection_reports(&self) -> Vec<NodeReport> {
        let report = |node: &Node| {
            let fault = node.fault();
            let outcome = fault.map_or(Outcome::Connected, |fault| Outcome::Down { fault });
            NodeReport { node: node.label(), outcome, rtt: None }
        };
        self.shared.nodes.iter().map(report).collect()
    }

    /// Refuses to acquire anything while a node is connected that does not belong to the others.
    pub(crate) fn check_fit(&self) -> Result<(), Error> {
        let Some((index, why)) = self.shared.mismatches.first() else { return Ok(()) };
        let node = self.shared.nodes.get(index).map(Node::label).unwrap_or_default();
        Err(Error::misuse(format!("{node} {why}")).with_nodes(self.connection_reports()))
    }

    /// Waits until every node is connected; after `timeout`, as many as there are must be a
    /// majority.
    pub(crate) async fn ready(&self, timeout: Duration) -> Result<Vec<NodeReport>, Error> {
        self.ensure_driver()?;
        let mut timer = self.sleep_until(self.clock().now().plus(timeout))?;
        loop {
            let changed = self.shared.changed.notified();
            self.check_fit()?;
            let health = self.connection_reports();
            let up = health.iter().filter(|node| node.outcome == Outcome::Connected).count();
            if up == self.len() {
                return Ok(health);
            }
            let hopeless = health.iter().filter(|node| node.outcome.is_authentication()).count();
            if hopeless > self.len() - self.majority() {
                let kind = Kind::Authentication { needed: self.majority() };
                return Err(Error::new(kind).with_nodes(health));
            }
            let mut changed = pin!(changed);
            let late = poll_fn(|cx| {
                if changed.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(false);
                }
                Pin::new(&mut timer).poll(cx).map(|()| true)
            });
            if late.await {
                if up >= self.majority() {
                    return Ok(health);
                }
                let kind = Kind::Unavailable { needed: self.majority() };
                return Err(Error::new(kind).with_nodes(health));
            }
        }
    }
}

impl Drop for NodeSet {
    fn drop(&mut self) {
        self.shared.driver.closing.store(true, Ordering::Release);
        self.shared.hand_driver_on(true);
    }
}

impl fmt::Debug for NodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.shared.nodes.iter().map(Node::label)).finish()
    }
}
