//! One node: its connections, its health, and the driver's work on each connection.
//!
//! [`Node`] is what callers share: the links, and why the node is not usable when it is not.
//! [`Session`] is what the driver owns of one link: connecting, reading, and waiting to try again.
//!
//! ```text
//!              ┌────────────── backoff over ◀──────────────┐
//!              ▼                                           │
//!  start ─▶ Connecting ──handshake, admitted──▶ Open ──▶ Waiting
//!              └──────── refused, silent, not admitted ────▲
//! ```

mod backoff;
mod connect;
mod session;

use std::sync::Arc;
use std::time::Duration;

pub(crate) use session::{Pass, Session};

use crate::clock::Moment;
use crate::link::{Link, Peer, Subscriptions};
use crate::options::{Address, LinkOptions};
use crate::report::{ConnectStep, Fault, NodeHealth, Outcome, ServerInfo};
use crate::sync::{Mutex, lock};

/// One node as its callers see it.
#[derive(Debug)]
pub(crate) struct Node {
    address: Address,
    links: Box<[Link]>,
    health: Mutex<Health>,
}

/// The node's health, as its connections reported it last.
#[derive(Debug)]
struct Health {
    /// How many are open.
    open: usize,
    /// Why one is not, or was not.
    reason: Fault,
    /// What the server said of itself, and how long its login took.
    server: Option<(ServerInfo, Option<Duration>)>,
    /// An observer was told that the node is down, and not yet that it is up.
    told_down: bool,
    /// The last server process, by its `run_id`, that observers were told may forget.
    told_forgets: Option<Option<Box<str>>>,
    /// What it tells unasked, on the one connection that listens.
    subscriptions: Subscriptions,
}

impl Node {
    pub(crate) fn new(address: Address, options: LinkOptions) -> Self {
        let link = || Link::new(options);
        Self {
            address,
            links: (0..options.connections).map(|_| link()).collect(),
            health: Mutex::new(Health {
                open: 0,
                reason: Fault::Connecting { step: None },
                server: None,
                told_down: false,
                told_forgets: None,
                subscriptions: Subscriptions::default(),
            }),
        }
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// The address without its login, for people.
    pub(crate) fn label(&self) -> Arc<str> {
        self.address.label.clone()
    }

    pub(crate) fn links(&self) -> &[Link] {
        &self.links
    }

    /// The link for `affinity` (a hash of the key): all commands about one key on one node form
    /// one queue, so that an undo can never overtake what it undoes.
    pub(crate) fn link(&self, affinity: u64) -> &Link {
        let index = match self.links.len() {
            1 => 0,
            count => (affinity % count as u64) as usize,
        };
        &self.links[index]
    }

    /// How many undos it has not confirmed; see [`Link::owed`].
    pub(crate) fn owed(&self, now: Moment) -> usize {
        self.links.iter().map(|link| link.owed(now)).sum()
    }

    /// A driver starts: commands may queue for its first connections.
    pub(crate) fn reopen(&self) {
        {
            let mut health = lock(&self.health);
            (health.open, health.reason) = (0, Fault::Connecting { step: None });
            health.subscriptions = Subscriptions::default();
        }
        for link in &self.links {
            link.reopen();
        }
    }

    /// The driver has ended, and its connections with it.
    pub(crate) fn leave(&self) {
        let mut health = lock(&self.health);
        health.subscriptions = Subscriptions::default();
        if std::mem::take(&mut health.open) > 0 {
            health.reason = Fault::Connecting { step: None };
        }
    }

    /// Why the node cannot be asked; `None` while it can, on one connection at least.
    pub(crate) fn fault(&self) -> Option<Fault> {
        let health = lock(&self.health);
        (health.open == 0).then(|| health.reason.clone())
    }

    /// The latest reason why a connection was not open.
    pub(crate) fn reason(&self) -> Fault {
        lock(&self.health).reason.clone()
    }

    /// Which server process it was when it was last connected.
    pub(crate) fn run_id(&self) -> Option<Box<str>> {
        let health = lock(&self.health);
        health.server.as_ref().and_then(|(server, _)| server.run_id.clone())
    }

    /// What it tells unasked.
    pub(crate) fn subscriptions(&self) -> Subscriptions {
        lock(&self.health).subscriptions
    }

    /// All that is known of it without asking.
    pub(crate) fn health(&self) -> NodeHealth {
        let asked = self.links.iter().filter_map(Link::rtt).max();
        let health = lock(&self.health);
        let is_up = health.open > 0;
        let outcome = match is_up {
            true => Outcome::Connected,
            false => Outcome::Down { fault: health.reason.clone() },
        };
        let (server, login) = health.server.clone().unzip();
        let rtt = asked.or_else(|| login.flatten()).filter(|_| is_up);
        NodeHealth {
            node: self.label(),
            outcome,
            rtt,
            server,
            contradicts_durability: false,
            tells_hand_overs: health.subscriptions.channel,
            tells_changes: health.subscriptions.changes,
            deletes_natively: self.links.iter().any(Link::is_native),
        }
    }

    /// The first attempt to connect is at this step.
    fn note_step(&self, at: ConnectStep) {
        if let Fault::Connecting { step } = &mut lock(&self.health).reason {
            *step = Some(at);
        }
    }

    /// It tells of no changes, though the handshake said that it would. `true`: that is news.
    fn note_tracking_refused(&self) -> bool {
        std::mem::take(&mut lock(&self.health).subscriptions.changes)
    }

    /// A connection has ended, or an attempt to make one. `true`: the node is down since then.
    fn set_fault(&self, reason: Fault, was_open: bool, listened: bool) -> bool {
        let mut health = lock(&self.health);
        if listened {
            health.subscriptions = Subscriptions::default();
        }
        health.reason = reason;
        health.open = health.open.saturating_sub(usize::from(was_open));
        health.open == 0 && !std::mem::replace(&mut health.told_down, true)
    }

    /// A connection was made. `true`: the node was down before.
    fn set_peer(&self, peer: Peer, listens: bool) -> bool {
        let mut health = lock(&self.health);
        if listens {
            health.subscriptions = peer.subscriptions;
        }
        health.server = Some((peer.server, peer.rtt));
        health.open += 1;
        std::mem::take(&mut health.told_down)
    }

    /// Whether observers have not been told yet that this process of the server may forget.
    fn is_new_to_forget(&self, run_id: Option<&str>) -> bool {
        let told = &mut lock(&self.health).told_forgets;
        let process = Some(run_id.map(Into::into));
        std::mem::replace(told, process.clone()) != process
    }

    /// A server was refused after its handshake. `health` shows what it is while no connection is
    /// open.
    fn note_refused(&self, peer: Peer) {
        let mut health = lock(&self.health);
        if health.open == 0 {
            health.server = Some((peer.server, peer.rtt));
        }
    }
}
