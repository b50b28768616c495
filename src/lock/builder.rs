//! Building a locker: its nodes, its options, its name.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::locker::Locker;
use super::scripts::scripts;
use crate::clock::Clock;
use crate::entropy::Entropy;
use crate::error::Error;
use crate::lease::{Epoch, FENCE, FENCE_VOTE, LeaseContext, Notices};
use crate::link::{Dial, HandshakeConfig, Network};
use crate::observe::Observer;
#[cfg(feature = "tls-rustls")]
use crate::options::Tls;
use crate::options::{
    Address, Driver, Durability, Extend, IntoNode, Options, Retry, TcpOptions, security,
    whole_millis,
};
use crate::quorum::{NodeSet, Parts, Rule};

/// A locker's nodes and options. Every option has a default; `README.md` lists them with the
/// reasons.
#[must_use = "a builder does nothing until `build` is called"]
pub struct LockerBuilder {
    addresses: Vec<Address>,
    counted: bool,
    options: Options,
    clock: Clock,
    /// What stands in the place of the network.
    #[cfg(any(test, feature = "testing"))]
    dial: Option<Arc<dyn Dial>>,
}

impl Locker {
    /// A locker on one server, given by its URL or by its [`NodeOptions`](crate::NodeOptions). The
    /// lock is as safe as that server: when it fails, or fails over to
    /// a replica, a lock may be lost or be held twice.
    ///
    /// # Errors
    ///
    /// [`is_misuse`](Error::is_misuse) when the address cannot be right.
    pub fn single(node: impl IntoNode) -> Result<LockerBuilder, Error> {
        LockerBuilder::single(node)
    }

    /// A locker on 1 to 15 independent masters, of which a majority must grant a lock (Redlock).
    /// Five are a good choice: they bear the loss of two. Replicas of one another and nodes of a
    /// Cluster are not independent, and are refused when they connect.
    ///
    /// # Errors
    ///
    /// [`is_misuse`](Error::is_misuse) when there is no node, more than 15, one whose address
    /// cannot be right, or one twice.
    pub fn quorum<N>(nodes: N) -> Result<LockerBuilder, Error>
    where
        N: IntoIterator,
        N::Item: IntoNode,
    {
        LockerBuilder::quorum(nodes)
    }
}

impl LockerBuilder {
    pub(crate) fn single(node: impl IntoNode) -> Result<Self, Error> {
        let address = Address::of(node)?;
        Ok(Self::of(vec![address], false))
    }

    pub(crate) fn quorum<N>(nodes: N) -> Result<Self, Error>
    where
        N: IntoIterator,
        N::Item: IntoNode,
    {
        // An address that is refused is not repeated, so its place is said.
        let take = |(index, node): (usize, N::Item)| {
            Address::of(node).map_err(|error| {
                Error::misuse(format!("{error} (node {} of those given)", index + 1))
            })
        };
        let addresses = nodes.into_iter().enumerate().map(take).collect::<Result<Vec<_>, _>>()?;
        if addresses.is_empty() {
            return Err(Error::misuse("no node was given; a quorum takes 1 to 15, best 5"));
        }
        if addresses.len() > Rule::VOTERS_MAX {
            return Err(Error::misuse(format!(
                "{} nodes were given; a quorum takes 1 to {}, best 5",
                addresses.len(),
                Rule::VOTERS_MAX
            )));
        }
        let mut seen = HashSet::new();
        if let Some(twice) = addresses.iter().find(|address| !seen.insert(&*address.label)) {
            return Err(Error::misuse(format!(
                "the node {} was given twice; a quorum needs independent masters",
                twice.label
            )));
        }
        Ok(Self::of(addresses, true))
    }

    fn of(addresses: Vec<Address>, counted: bool) -> Self {
        Self {
            addresses,
            counted,
            options: Options::default(),
            clock: Clock::default(),
            #[cfg(any(test, feature = "testing"))]
            dial: None,
        }
    }

    /// Nodes that are reached through `dial`, and whose leases are kept by tokio's clock.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn in_memory<U>(urls: U, dial: Arc<dyn Dial>) -> Result<Self, Error>
    where
        U: IntoIterator,
        U::Item: IntoNode,
    {
        Ok(Self { dial: Some(dial), ..Self::quorum(urls)? }.tokio_clock())
    }

    /// Measures leases by tokio's clock, which a test can pause and advance, and not by the clock
    /// of the machine. (Feature `testing`.)
    ///
    /// For a locker whose servers' time the test drives, too: on
    /// [`testing::Node::listen`](crate::testing::Node::listen). The lockers of
    /// [`testing::Nodes`](crate::testing::Nodes) do so by themselves. Never for real servers: a
    /// machine's clock goes on while it is suspended, and tokio's does not.
    #[cfg(any(test, feature = "testing"))]
    pub fn tokio_clock(mut self) -> Self {
        self.clock = Clock::tokios();
        self
    }

    /// Put before every key, verbatim. Default: nothing.
    pub fn prefix(mut self, prefix: impl Into<Vec<u8>>) -> Self {
        self.options.prefix = prefix.into();
        self
    }

    /// How long a lock lives unless it is extended, in whole milliseconds on the wire.
    /// Default: 10 s.
    ///
    /// Too short, and the lock is lost under a slow step or a pause of the process; too long, and
    /// the lock of a crashed holder keeps all clients waiting. Two to three times the longest usual
    /// critical section is a good choice.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.options.ttl = whole_millis(ttl);
        self
    }

    /// How long `locker.lock(key).await` waits for the lock. Default: 10 s. Zero tries once.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.options.wait = Some(wait);
        self
    }

    /// Waits for locks as long as it takes another holder to let go; without a quorum, no longer
    /// than [`unavailable_wait`](Self::unavailable_wait).
    pub fn wait_forever(mut self) -> Self {
        self.options.wait = None;
        self
    }

    /// How long to go on trying while there is no quorum, within [`wait`](Self::wait): the nodes
    /// cannot be reached, say nothing, have no room, or refuse all clients. The error is that of
    /// the last try, most often one that [`is_unavailable`](Error::is_unavailable). Default: 1 s.
    /// Zero gives up at the first such try, and [`Duration::MAX`] waits for the end of any outage.
    ///
    /// The time begins with the first of the tries that found no quorum; one that found one, and
    /// the lock held by another client, ends it.
    pub fn unavailable_wait(mut self, wait: Duration) -> Self {
        self.options.unavailable_wait = wait;
        self
    }

    /// Hands a lock on from guard to guard in this process, without asking the nodes, for so long
    /// from its acquisition. Default: zero, not at all.
    ///
    /// A release, or a drop, then gives the lock to the next task that waits for the same key of
    /// this locker or its clones: in microseconds, with what is left of the lock's time, which is
    /// extended as that task asks. A release says [`Released`](crate::Release::Released), though no
    /// node was asked. The lock is released on the nodes, as ever, where none waits here or the
    /// next one asks for another TTL; while a node has not answered, or an extension is on its way;
    /// where the guard's [`owner_token`](crate::LockGuard::owner_token) was read; and when the
    /// budget is over, so that other processes have their turn. A task that was given the lock and
    /// is not polled has it all the same, to its end: as one has whose acquisition the nodes have
    /// granted.
    ///
    /// *More:* fewer commands where the tasks of one process want a key again and again. *Less:*
    /// other processes wait less long.
    pub fn local_handover(mut self, budget: Duration) -> Self {
        self.options.local_handover = budget;
        self
    }

    /// Whether every lock gets a [fence](crate::LockGuard::fence), but for read locks and slots, as
    /// if [`fenced`](crate::LockRequest::fenced) was asked for with each, and one that is
    /// [adopted](crate::Locker::adopt) too. Default: `false`.
    pub fn fenced(mut self, fenced: bool) -> Self {
        self.options.fenced = fenced;
        self
    }

    /// The name under which locks are held, for those who look at a key or wait for it; the host
    /// and the process are added to it. Never secret. Default: `host:pid`.
    pub fn owner(mut self, name: impl Into<Box<str>>) -> Self {
        self.options.owner = Some(name.into());
        self
    }

    /// How long one node may take to answer one command, before its vote is counted as unknown.
    /// Default: 1 % of the TTL, at least 50 ms and at most 500 ms. Far below the TTL, for this is
    /// what a hung majority costs.
    pub fn node_timeout(mut self, timeout: Duration) -> Self {
        self.options.node_timeout = Some(timeout);
        self
    }

    /// How long a held lock is extended by itself, at a third of its TTL each time.
    /// Default: for an hour.
    pub fn auto_extend(mut self, extend: Extend) -> Self {
        self.options.extend = extend;
        self
    }

    /// How many extensions may be in flight at the same time; further ones wait for an answer.
    /// Default: 1,024, which is 10,000 in a second where the nodes answer within 100 ms. With more
    /// locks or shorter TTLs than that can serve, locks are lost; with a much higher bound, the
    /// extensions delay acquisitions on the same connections.
    pub fn extensions_max(mut self, extensions: usize) -> Self {
        self.options.extensions_max = extensions;
        self
    }

    /// What the servers still know when they come back. It belongs to the deployment: all its
    /// clients must say the same. Default: [`Durability::Persistent`], everything.
    ///
    /// Wrongly persistent, and a node that was restarted can give a held lock away; wrongly
    /// volatile, and it is away for the longest TTL, and each acquisition costs a script.
    ///
    /// ```no_run
    /// # fn example() -> Result<(), quorlock::Error> {
    /// use std::time::Duration;
    ///
    /// use quorlock::{Durability, Locker};
    ///
    /// let longest_ttl = Duration::from_secs(30);
    /// let locker = Locker::quorum(["redis://a", "redis://b", "redis://c"])?
    ///     .durability(Durability::Volatile { longest_ttl })
    ///     .build()?;
    /// # Ok(()) }
    /// ```
    pub fn durability(mut self, durability: Durability) -> Self {
        self.options.durability = durability.in_whole_millis();
        self
    }

    /// Tells this observer of what happens. Several may be added.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.options.observers.add(observer);
        self
    }

    /// What kind of locks these are, for metrics: in every [`Event`](crate::Event). Where one
    /// locker takes several kinds, each request can say its own
    /// ([`LockRequest::class`](crate::LockRequest::class)). Of few values, unlike keys, so that it
    /// can be a label. Default: empty.
    pub fn class(mut self, class: &'static str) -> Self {
        self.options.observers.class = class;
        self
    }

    /// The margin for clocks that run at different speeds, taken off each lease: a share of the TTL
    /// in 1/1,000, and a fixed part. Default: 10 (1 %) and 2 ms.
    pub fn drift(mut self, permille: u32, floor: Duration) -> Self {
        self.options.drift.permille = permille;
        self.options.drift.floor = floor;
        self
    }

    /// When to try again for a lock that is held, or without a quorum. Default:
    /// [`Retry::full_jitter`] between 50 and 200 ms, doubling to 1 s, as often as
    /// [`wait`](Self::wait) allows.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.options.retry = retry;
        self
    }

    /// Where the task runs that reads the connections. Default: [`Driver::Runtime`].
    pub fn driver(mut self, driver: Driver) -> Self {
        self.options.link.driver = driver;
        self
    }

    /// Connections to each node. Default: 1, which carries more than a server's core executes. All
    /// commands about one key use the same one.
    pub fn connections_per_node(mut self, connections: usize) -> Self {
        self.options.link.connections = connections;
        self
    }

    /// How long connecting may take, with the handshake; it happens in the background.
    /// Default: 1 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.options.link.connect_timeout = timeout;
        self
    }

    /// How TCP connections behave: Nagle's algorithm, keepalive, unacknowledged bytes. For the
    /// nodes that have no [`tcp_options`](crate::NodeOptions::tcp_options) of their own.
    pub fn tcp(mut self, tcp: TcpOptions) -> Self {
        self.options.tcp = tcp;
        self
    }

    /// Commands without a reply that one connection holds at most; a node that is full is not
    /// asked. Bounds the memory that a hung node costs. Default: 65,536.
    pub fn link_entries_max(mut self, entries: usize) -> Self {
        self.options.link.entries_max = entries;
        self
    }

    /// Bytes that one connection holds at most until the kernel takes them. Default: 8 MiB.
    pub fn link_bytes_max(mut self, bytes: usize) -> Self {
        self.options.link.bytes_max = bytes;
        self
    }

    /// Up to so many commands without a reply on a connection, a caller writes to the socket
    /// itself, which saves a hop to the driver. Beyond it, the driver writes for all callers at
    /// once, which saves system notices. Default: 2.
    pub fn direct_writes(mut self, outstanding: usize) -> Self {
        self.options.link.direct_writes = outstanding;
        self
    }

    /// The pause before a node is connected to again: it starts near `first` and grows, jittered,
    /// up to `cap`; tries go on without end. At least 1 ms. Default: 20 ms and 200 ms.
    pub fn reconnect(mut self, first: Duration, cap: Duration) -> Self {
        self.options.link.reconnect_first = first;
        self.options.link.reconnect_cap = cap.max(first);
        self
    }

    /// Whether a lock is released by `DELIFEQ` where the server has that command, as Valkey from
    /// 9.0 on, and the user may send it: the server then runs no script for it. Where a server
    /// rejects it after all, an observer is told by
    /// [`Event::NativeRejected`](crate::Event::NativeRejected), and the script is sent. Default:
    /// `true`.
    pub fn native_commands(mut self, native: bool) -> Self {
        self.options.link.native = native;
        self
    }

    /// Whom to trust, and who we are, for the nodes whose URL begins with `rediss://` or
    /// `valkeys://`. Default: what browsers trust, and no certificate of our own.
    #[cfg(feature = "tls-rustls")]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.options.tls = Some(tls);
        self
    }

    /// Builds the locker. Does no I/O but to read the files that `Tls` names: the nodes are
    /// connected to from the first use on.
    ///
    /// # Errors
    ///
    /// [`is_misuse`](Error::is_misuse) when an option is out of its range.
    pub fn build(self) -> Result<Locker, Error> {
        let owner = full_name(self.options.owner.as_deref());
        let entropy = Entropy::from_system()?;
        #[cfg(any(test, feature = "testing"))]
        if let Some(dial) = self.dial.clone() {
            return self.build_with(owner, entropy, dial);
        }
        let dial = Network::new(self.clock.clone(), self.options.link.connect_timeout);
        self.build_with(owner, entropy, Arc::new(dial))
    }

    fn build_with(
        mut self,
        owner: Arc<str>,
        entropy: Entropy,
        dial: Arc<dyn Dial>,
    ) -> Result<Locker, Error> {
        let notices = Notices::new(&owner);
        let handshake = HandshakeConfig { listener: Some(notices.clone()), ..self.prepare()? };
        let nodes = NodeSet::new(Parts {
            handshake,
            addresses: self.addresses,
            counted: self.counted,
            options: self.options.link,
            clock: self.clock,
            entropy: Arc::new(entropy),
            dial,
            observers: self.options.observers.clone(),
        });
        Ok(Locker::of(LeaseContext::new(nodes, self.options, owner, notices)))
    }

    /// How old a reply may become before its connection ends.
    #[cfg(all(test, feature = "testing"))]
    pub(crate) fn reply_age_max(mut self, age: Duration) -> Self {
        self.options.link.reply_age_max = age;
        self
    }

    /// Builds the locker on a simulated machine.
    #[cfg(all(test, feature = "testing"))]
    pub(crate) fn build_on(
        mut self,
        clock: Clock,
        entropy: Entropy,
        dial: Arc<dyn Dial>,
    ) -> Result<Locker, Error> {
        self.clock = clock;
        let owner = self.options.owner.clone().unwrap_or_default().into();
        self.build_with(owner, entropy, dial)
    }

    /// Checks the options and settles what follows from them.
    fn prepare(&mut self) -> Result<HandshakeConfig, Error> {
        self.options.check()?;
        let Options { ttl, .. } = self.options;
        self.options.link.undo_horizon = self.options.undo_horizon(ttl);
        for address in &mut self.addresses {
            address.tcp.get_or_insert(self.options.tcp);
        }
        let is_volatile = self.options.durability != Durability::Persistent;
        let mut scripts = scripts(is_volatile);
        if self.options.fenced {
            scripts.push(FENCE.text);
            scripts.extend(is_volatile.then_some(FENCE_VOTE.text));
        }
        Ok(HandshakeConfig {
            scripts,
            policy: Some(Arc::new(Epoch::new(&self.options))),
            listener: None,
            security: security(&self.addresses, self.options.tls.as_ref())?,
            native_probe_key: self.options.link.native.then(|| probe_key(&self.options.prefix)),
        })
    }
}

/// A key that a user who may touch what stands behind the prefix may touch as well. It is only
/// asked about, and names no lock.
fn probe_key(prefix: &[u8]) -> Arc<[u8]> {
    [prefix, b"quorlock:native"].concat().into()
}

/// `name@host:pid`, or `host:pid` without a name.
fn full_name(name: Option<&str>) -> Arc<str> {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .ok()
        .or_else(|| std::env::var("HOSTNAME").ok())
        .or_else(|| std::env::var("COMPUTERNAME").ok());
    let host = host.as_deref().map(str::trim).filter(|host| !host.is_empty());
    let process = format!("{}:{}", host.unwrap_or("unknown-host"), std::process::id());
    match name {
        Some(name) if !name.is_empty() => format!("{name}@{process}").into(),
        _ => process.into(),
    }
}

impl fmt::Debug for LockerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockerBuilder")
            .field("nodes", &self.addresses)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
