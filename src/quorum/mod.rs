//! Many nodes, one verdict.
//!
//! [`NodeSet`] is a locker's nodes with everything that its callers and its driver share: the
//! operation [`slots`], and the driver's waker. Callers send through [`fanout`] and wait for an
//! [`Election`]; the [`driver`], one task for all nodes, reads the replies, casts the votes and
//! wakes; [`handover`] keeps a caller that computes from holding it up. [`tally`] says when votes
//! make a verdict, [`ballot`] counts them without a lock.
//!
//! This room votes by the kinds of replies. What was asked, and what a grant is good for, is not
//! its business.

mod ballot;
mod driver;
mod fanout;
mod handover;
mod mismatches;
mod ready_flag;
mod sleep;
mod slots;
mod tally;
#[cfg(test)]
#[cfg(quorlock_models)]
mod tests;
mod timer;

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use quorlock_resp::Frame;
use tokio::runtime::Handle;
use tokio::sync::Notify;

pub(crate) use fanout::{Command, Election, Found, NodeMask};
pub(crate) use tally::{Patience, Rule, Verdict};

use crate::clock::Clock;
use crate::entropy::Entropy;
use crate::error::{Error, Kind};
use crate::link::{Admission, Dial, HandshakeConfig, Network, Peer, Undo, time_of_refusal};
use crate::node::Node;
use crate::observe::Observers;
use crate::options::{Address, LinkOptions};
use crate::report::{Fault, Mode, NodeHealth, NodeReport, Outcome};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{AtomicWaker, Mutex};
use mismatches::Mismatches;
use slots::Slots;
use timer::DriverTimer;

/// What a node set is made of.
pub(crate) struct Parts {
    pub(crate) addresses: Vec<Address>,
    /// Whether the nodes must be independent masters, because their votes are counted.
    pub(crate) counted: bool,
    pub(crate) options: LinkOptions,
    pub(crate) clock: Clock,
    pub(crate) entropy: Arc<Entropy>,
    pub(crate) dial: Arc<dyn Dial>,
    pub(crate) handshake: HandshakeConfig,
    /// Who is told of nodes that go and come.
    pub(crate) observers: Observers,
}

/// The nodes, as their users hold them. When the last user lets go, the driver delivers what is
/// written and ends.
pub(crate) struct NodeSet {
    shared: Arc<Shared>,
}

/// What callers and the driver share.
struct Shared {
    nodes: Box<[Node]>,
    slots: Slots,
    mismatches: Mismatches,
    counted: bool,
    options: LinkOptions,
    clock: Clock,
    entropy: Arc<Entropy>,
    dial: Arc<dyn Dial>,
    handshake: HandshakeConfig,
    observers: Observers,
    driver: DriverState,
    /// A node's state changed; for tasks that wait for the nodes to be ready.
    changed: Notify,
    /// The longest time, in nanoseconds, for which an undo may matter; the links know it.
    undo_horizon: AtomicU64,
}

/// What is known of the driver from outside.
struct DriverState {
    waker: Arc<AtomicWaker>,
    /// How often the driver has run.
    passes: AtomicU64,
    /// Guards starting.
    starting: Mutex<()>,
    /// The runtime on which the last driver was started.
    home: Mutex<Option<Handle>>,
    /// How many drivers have been started.
    generation: AtomicU64,
    running: AtomicBool,
    /// The nodes are no longer used.
    closing: AtomicBool,
    timer: DriverTimer,
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

    /// Nodes on the network, ready to be connected to.
    pub(crate) fn on_network(
        addresses: Vec<Address>,
        counted: bool,
        clock: Clock,
        options: LinkOptions,
        handshake: HandshakeConfig,
        observers: Observers,
    ) -> Result<Self, Error> {
        let Some(entropy) = Entropy::from_system() else {
            return Err(Error::closed("the operating system gives no random numbers"));
        };
        let entropy = Arc::new(entropy);
        let dial = Arc::new(Network::new(clock.clone(), options.connect_timeout));
        let parts =
            Parts { addresses, counted, options, clock, entropy, dial, handshake, observers };
        Ok(Self::new(parts))
    }

    /// Nodes of a quorum that are reached through `dial`.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn in_memory(
        addresses: Vec<Address>,
        clock: Clock,
        options: LinkOptions,
        handshake: HandshakeConfig,
        observers: Observers,
        dial: Arc<dyn Dial>,
    ) -> Result<Self, Error> {
        let Some(entropy) = Entropy::from_system() else {
            return Err(Error::closed("the operating system gives no random numbers"));
        };
        let (entropy, counted) = (Arc::new(entropy), true);
        Ok(Self::new(Parts {
            addresses,
            counted,
            options,
            clock,
            entropy,
            dial,
            handshake,
            observers,
        }))
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

    /// What would be undone by an undo that this one supersedes is undone by this one.
    pub(crate) fn undo_instead(&self, affinity: u64, undo: Undo<'_>) {
        self.shared.nodes.iter().for_each(|node| node.link(affinity).undo_instead(undo));
    }

    /// Withdraws the undo of a pair that is owed to nodes.
    pub(crate) fn withdraw(&self, affinity: u64, pair: &[u8]) {
        self.shared.nodes.iter().for_each(|node| node.link(affinity).withdraw(pair));
    }

    /// Which nodes are owed the undo of a pair.
    pub(crate) fn owing(&self, affinity: u64, pair: &[u8]) -> NodeMask {
        let nodes = self.shared.nodes.iter().enumerate();
        let owed = nodes.filter(|(_, node)| node.link(affinity).owes(pair));
        owed.fold(NodeMask::NONE, |mask, (index, _)| mask.and(index))
    }

    /// Whether every reply has come, and no node is owed an undo, or may be.
    pub(crate) fn is_settled(&self) -> bool {
        self.shared.nodes.iter().flat_map(|node| node.links()).all(|link| link.is_settled())
    }

    /// How many undos the nodes have not confirmed, over all of them.
    pub(crate) fn owed(&self) -> usize {
        let now = self.clock().now();
        self.shared.nodes.iter().map(|node| node.owed(now)).sum()
    }

    /// What the nodes' names are.
    pub(crate) fn labels(&self) -> impl Iterator<Item = Arc<str>> + '_ {
        self.shared.nodes.iter().map(Node::label)
    }

    /// All that is known of each node without asking.
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
    fn standing(&self) -> Vec<NodeReport> {
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
        Err(Error::misuse(format!("{node} {why}")).with_nodes(self.standing()))
    }

    /// Waits until every node is connected; after `timeout`, as many as there are must be a
    /// majority.
    pub(crate) async fn ready(&self, timeout: Duration) -> Result<Vec<NodeReport>, Error> {
        self.ensure_driver()?;
        let mut timer = self.sleep_until(self.clock().now().plus(timeout))?;
        loop {
            let changed = self.shared.changed.notified();
            self.check_fit()?;
            let health = self.standing();
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

impl Shared {
    /// Whether a server may vote: an independent master, no other node of this set, and one on the
    /// locker's terms.
    fn admit(&self, index: usize, peer: &Peer) -> Result<(), Fault> {
        self.admit_alone(index, peer)?;
        let fit =
            self.handshake.policy.as_ref().map_or(Admission::Admitted, |policy| policy.judge(peer));
        let mismatch = match fit {
            Admission::Admitted => None,
            Admission::Mismatch(why) => Some(why),
            Admission::Unusable(fault) => return Err(fault),
        };
        self.mismatches.set(index, mismatch);
        Ok(())
    }

    /// A node has refused a vote for good: as if it had been found when it was connected to.
    fn note_mismatch(&self, index: usize, reply: &Frame) {
        let why =
            self.handshake.policy.as_ref().map(|policy| policy.explain(time_of_refusal(reply)));
        self.mismatches.set(index, why);
    }

    fn admit_alone(&self, index: usize, peer: &Peer) -> Result<(), Fault> {
        if !self.counted {
            return if peer.is_replica() { Err(Fault::Replica) } else { Ok(()) };
        }
        if let Some(mode @ (Mode::Cluster | Mode::Sentinel)) = peer.server.mode {
            return Err(Fault::Mode { mode: mode.to_string().into() });
        }
        if peer.is_replica() {
            return Err(Fault::Replica);
        }
        let Some(run_id) = &peer.server.run_id else { return Ok(()) };
        let mut others = self.nodes.iter().enumerate().filter(|(other, _)| *other != index);
        let twin = others.find(|(_, node)| {
            node.fault().is_none() && node.run_id().as_deref() == Some(&**run_id)
        });
        twin.map_or(Ok(()), |(_, node)| Err(Fault::Duplicate { of: node.label() }))
    }
}
