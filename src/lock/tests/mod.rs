//! Locks on nodes in memory, under a driven clock: where a promise names a time, it is exact here.
//!
//! A [`World`] is some nodes and one client of theirs, with whatever drives its clocks and all that
//! it was told. Time stands still while any task has something to do, and then goes on to the next
//! timer.

#[cfg(feature = "tokio-util")]
mod alarm;
mod all;
mod attempts;
mod by_hand;
mod cadence;
mod clocks;
mod command;
mod complete;
mod deadlines;
mod delay;
mod ending;
mod extension;
mod fence;
mod frugal;
mod hand_on;
mod healing;
mod in_line;
mod living;
mod loss;
mod min_hold;
mod node;
mod outage;
mod owed;
mod panics;
mod quorum;
mod revoked;
mod revoked_slots;
mod sharing;
mod shutdown;
mod takeover;
mod views;

use std::cell::Cell;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::guard::LockGuard;
use super::locker::Locker;
use crate::clock::{Clock, Driven, Moment};
use crate::entropy::Entropy;
use crate::lease::{LeaseContext, Notices, OwnerToken};
use crate::link::HandshakeConfig;
use crate::lock::scripts::scripts;
use crate::observe::{Event, Loss, Observer};
use crate::options::{Address, Options};
use crate::quorum::{NodeSet, Parts};
use crate::testing::Nodes;
use node::{Behaviour, Node, Said};

/// Some nodes and a client.
struct World {
    network: Nodes,
    nodes: Vec<Arc<Node>>,
    locker: Locker,
    /// The client's side of the nodes.
    #[cfg(feature = "tokio-util")]
    set: std::sync::Weak<NodeSet>,
    driven: Arc<Driven>,
    told: Arc<Told>,
    /// How many clients there are.
    clients: Cell<u64>,
}

impl World {
    /// Nodes that behave so, and a client that knows none of them yet.
    fn of(behaviours: &[Behaviour]) -> Self {
        let world = Self::client(&Nodes::new(behaviours.len()), 1, Options::default());
        world.behave(behaviours);
        world
    }

    /// Nodes that serve at once, and a client that is connected to them all.
    async fn ready(count: usize) -> Self {
        Self::behaving(&vec![Behaviour::Grants; count]).await
    }

    /// As [`World::ready`]; once connected, the nodes behave so.
    async fn behaving(behaviours: &[Behaviour]) -> Self {
        let world = Self::with(behaviours.len(), Options::default()).await;
        world.behave(behaviours);
        world
    }

    /// As [`World::ready`], with a client that has these options.
    async fn with(count: usize, options: Options) -> Self {
        let world = Self::client(&Nodes::new(count), 1, options);
        world.locker.ready(Duration::from_secs(1)).await.unwrap();
        world
    }

    /// Another client of the same nodes, with clocks of its own.
    fn beside(&self) -> Self {
        self.clients.set(self.clients.get() + 1);
        Self::client(&self.network, self.clients.get(), Options::default())
    }

    fn client(network: &Nodes, seed: u64, mut options: Options) -> Self {
        let (clock, driven) = Driven::clock();
        let told = Arc::new(Told::default());
        options.observers.add(told.clone());
        let address = |index: usize| Address::parse(&format!("redis://node-{index}")).unwrap();
        let set = NodeSet::new(Parts {
            addresses: (0..network.len()).map(address).collect(),
            counted: true,
            options: options.link,
            clock,
            observers: options.observers.clone(),
            entropy: Arc::new(Entropy::from_seed(seed)),
            dial: Arc::new(network.clone()),
            handshake: HandshakeConfig { scripts: scripts(false), ..HandshakeConfig::default() },
        });
        let owner = format!("test{seed}");
        let notices = Notices::new(&owner);
        let inner = LeaseContext::new(set, options, owner.into(), notices);
        #[cfg(feature = "tokio-util")]
        let set = Arc::downgrade(&inner.nodes);
        let locker = Locker::of(inner);
        let (network, nodes) = (network.clone(), Node::all(network));
        Self {
            network,
            nodes,
            locker,
            #[cfg(feature = "tokio-util")]
            set,
            driven,
            told,
            clients: Cell::new(1),
        }
    }

    /// How each node serves from now on.
    fn behave(&self, behaviours: &[Behaviour]) {
        self.nodes.iter().zip(behaviours).for_each(|(node, behaviour)| node.set(*behaviour));
    }

    fn set(&self, nodes: std::ops::Range<usize>, behaviour: Behaviour) {
        self.nodes[nodes].iter().for_each(|node| node.set(behaviour));
    }

    /// On which nodes the guard's value stands.
    fn holders(&self, guard: &LockGuard) -> Vec<usize> {
        self.holders_of(&guard.key().to_string(), &guard.owner_token())
    }

    /// On which nodes the token's value stands.
    fn holders_of(&self, key: &str, token: &OwnerToken) -> Vec<usize> {
        let holds =
            |node: &Arc<Node>| node.value(key).is_some_and(|v| v == token.value().as_bytes());
        (0..self.nodes.len()).filter(|node| holds(&self.nodes[*node])).collect()
    }

    /// How many nodes hold anything under the key.
    fn keys(&self, key: &str) -> usize {
        self.nodes.iter().filter(|node| node.value(key).is_some()).count()
    }

    /// What a node has got of one kind.
    fn got(&self, node: usize, what: &str) -> Vec<Said> {
        self.nodes[node].log().into_iter().filter(|said| said.what == what).collect()
    }
}

/// All that an observer was told and when, but for what nodes do.
#[derive(Default)]
struct Told(Mutex<Vec<(Moment, News)>>);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum News {
    Waiting { is_own: bool },
    Acquired,
    Extended { remaining: Duration },
    Failed { remaining: Duration },
    Lost { reason: Loss, stalled: Option<Duration> },
    HeldTooLong { remaining: Duration },
    Revoked { remaining: Duration },
    Released,
}

impl Observer for Told {
    fn on_event(&self, event: &Event<'_>) {
        let news = match event {
            Event::Waiting { holder: Some(holder), .. } => News::Waiting { is_own: holder.is_own },
            Event::Acquired { .. } => News::Acquired,
            Event::Extended { remaining, .. } => News::Extended { remaining: *remaining },
            Event::ExtensionFailed { remaining, .. } => News::Failed { remaining: *remaining },
            Event::Lost { reason, stalled, .. } => {
                News::Lost { reason: *reason, stalled: *stalled }
            }
            Event::HeldTooLong { remaining, .. } => News::HeldTooLong { remaining: *remaining },
            Event::Revoked { remaining, .. } => News::Revoked { remaining: *remaining },
            Event::Released { .. } => News::Released,
            _ => return,
        };
        self.0.lock().unwrap().push((now(), news));
    }
}

impl Told {
    /// What was told and is `wanted`, and when.
    fn all<T>(&self, wanted: impl Fn(News) -> Option<T>) -> Vec<(Moment, T)> {
        let told = self.0.lock().unwrap();
        told.iter().filter_map(|(at, news)| Some((*at, wanted(*news)?))).collect()
    }

    /// Whether the holder that a caller waits for is its own locker.
    fn waits(&self) -> Vec<(Moment, bool)> {
        self.all(|news| match news {
            News::Waiting { is_own } => Some(is_own),
            _ => None,
        })
    }

    fn losses(&self) -> Vec<(Moment, Loss)> {
        self.all(|news| match news {
            News::Lost { reason, .. } => Some(reason),
            _ => None,
        })
    }

    fn failures(&self) -> Vec<(Moment, Duration)> {
        self.all(|news| match news {
            News::Failed { remaining } => Some(remaining),
            _ => None,
        })
    }

    fn extensions(&self) -> Vec<(Moment, Duration)> {
        self.all(|news| match news {
            News::Extended { remaining } => Some(remaining),
            _ => None,
        })
    }
}

fn now() -> Moment {
    Clock::default().now()
}

/// Lets time pass.
async fn pass(duration: Duration) {
    Clock::default().sleep_until(now().plus(duration)).await;
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A timer's grain: it comes so late at most under a paused clock.
const GRAIN: Duration = ms(1);

/// Asserts that something came when it was due, to the timer's grain.
#[track_caller]
fn assert_due(came: Moment, due: Moment) {
    assert!(came >= due, "{:?} too early", due.since(came));
    assert!(came <= due.plus(GRAIN), "{:?} too late", came.since(due));
}

/// When a holder of a lock with such a TTL is told of its end, if nothing extends it.
fn warning(guard: &LockGuard, ttl: Duration) -> Moment {
    let lasts = ttl - ttl / 100 - ms(2);
    let margin = (ttl / 100).max((lasts / 20).clamp(ms(3), ms(20)));
    now().plus(guard.remaining() - margin)
}
