//! Every option, its default, and the reason for the default.
//!
//! Plain data: the public builders set it, and the other modules get the parts that they need.

mod credentials;
mod node;
mod retry;
mod tcp;
#[cfg(feature = "tls-rustls")]
mod tls;
#[cfg(not(feature = "tls-rustls"))]
#[path = "no_tls.rs"]
mod tls;

use std::time::Duration;

pub(crate) use credentials::CredentialSource;
pub use credentials::Credentials;
pub(crate) use node::{Address, Endpoint, security};
pub use node::{IntoNode, NodeOptions, Protocol};
pub(crate) use retry::Policy;
pub use retry::Retry;
pub use tcp::TcpOptions;
pub(crate) use tls::Security;
#[cfg(feature = "tls-rustls")]
pub use tls::Tls;
#[cfg(not(feature = "tls-rustls"))]
pub(crate) use tls::Tls;

use crate::clock::nanoseconds;
use crate::error::Error;
use crate::observe::Observers;
use crate::report::Humane;

/// Where a locker's driver runs: the one task that reads its connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Driver {
    /// On the tokio runtime that first uses the locker: the fastest, because a reply and its caller
    /// share a thread. When that runtime ends, the next use from another one connects anew.
    #[default]
    Runtime,
    /// On a thread of its own, which also wakes the waiting callers: for threads and executors
    /// without a tokio runtime, for one static locker that is used from many runtimes, and for an
    /// application whose runtime may be blocked for longer than a lock may wait. Costs a hop
    /// between threads for each reply.
    Thread,
}

/// How long a held lock is extended by itself, at a third of its TTL each time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Extend {
    /// Never: the lock is held for its TTL, unless it is extended by hand.
    Off,
    /// Until it has been held for this long, so that a stuck task does not hold it forever.
    For(Duration),
    /// For as long as its guard lives.
    Forever,
}

impl Default for Extend {
    /// An hour: far above the work that belongs under a lock, and an end for a task that is stuck.
    fn default() -> Self {
        Self::For(Duration::from_secs(60 * 60))
    }
}

/// What the servers of a deployment still know when they come back.
///
/// It belongs to the deployment and not to a client: all lockers that share nodes and a prefix must
/// say the same. [`choosing`](https://docs.rs/quorlock/latest/quorlock/manual/choosing) has the
/// reasons.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Durability {
    /// Everything: they run with `appendfsync always`. Locks are acquired by a plain command, and a
    /// node that was restarted votes at once.
    #[default]
    Persistent,
    /// Perhaps nothing. A node that may have forgotten what it had granted (its process is another,
    /// or it was flushed) gives no vote until the longest lock it can have forgotten has ended.
    /// Locks are acquired by a script, which needs `INFO`, `EVALSHA` or `EVAL`, `GET`, `PTTL` and
    /// `SET`, and each node keeps two keys behind the prefix: `quorlock:epoch`, without expiry, and
    /// while it gives no vote `quorlock:quarantine`.
    Volatile {
        /// The longest TTL that any lock of the deployment has. No locker takes a longer one. If it
        /// is too short for a lock that you need later, all clients have to be changed at the same
        /// time. If it is too long, a restarted node is away longer than necessary.
        longest_ttl: Duration,
    },
}

impl Durability {
    /// With the longest TTL as the servers will count it.
    pub(crate) fn in_whole_millis(self) -> Self {
        match self {
            Self::Persistent => Self::Persistent,
            Self::Volatile { longest_ttl } => {
                Self::Volatile { longest_ttl: whole_millis(longest_ttl) }
            }
        }
    }
}

/// How a locker behaves. The setters and their documentation are on
/// [`LockerBuilder`](crate::LockerBuilder).
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Put before every key, verbatim.
    pub(crate) prefix: Vec<u8>,
    /// 10 s is in the 10–30 s of common use, and two to three times the longest usual critical
    /// section.
    pub(crate) ttl: Duration,
    /// How long `.await` waits for the lock; `None` is forever. 10 s: no call should wait forever
    /// without having asked for it.
    pub(crate) wait: Option<Duration>,
    /// How much of that may pass without a quorum. 1 s: longer than a lost connection takes to come
    /// back, and an outage is reported while the caller can still do something else.
    pub(crate) unavailable_wait: Duration,
    /// For how long a lock may go from hand to hand in this process; zero is not at all.
    pub(crate) local_handover: Duration,
    /// Whether locks get a fence.
    pub(crate) fenced: bool,
    /// What a node's clock may gain on ours within a TTL: 1 % and 2 ms, the figure of the Redlock
    /// specification's implementations.
    pub(crate) drift: Drift,
    /// How long one node may take for one command; `None` derives it from the TTL.
    pub(crate) node_timeout: Option<Duration>,
    pub(crate) extend: Extend,
    /// How many extensions are in flight at most: so many commands wait on each link because of
    /// them. 1,024 carry 20,000 locks with a TTL of 10 s where a node answers within 100 ms.
    pub(crate) extensions_max: usize,
    /// What the servers still know when they come back: everything, because the default is the
    /// fastest; the manual says when it is not enough.
    pub(crate) durability: Durability,
    /// When to try again. 50–200 ms, doubling to 1 s: soon enough for people, and no storm.
    pub(crate) retry: Retry,
    pub(crate) link: LinkOptions,
    /// For the nodes that have none of their own.
    pub(crate) tcp: TcpOptions,
    pub(crate) observers: Observers,
    /// The holder's name; the host and the process are added to it.
    pub(crate) owner: Option<Box<str>>,
    /// For the nodes whose URL asks for it; `None` is what browsers trust.
    pub(crate) tls: Option<Tls>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            prefix: Vec::new(),
            ttl: Duration::from_secs(10),
            wait: Some(Duration::from_secs(10)),
            unavailable_wait: Duration::from_secs(1),
            local_handover: Duration::ZERO,
            fenced: false,
            drift: Drift::default(),
            node_timeout: None,
            extend: Extend::default(),
            extensions_max: 1_024,
            durability: Durability::default(),
            retry: Retry::default(),
            link: LinkOptions::default(),
            tcp: TcpOptions::default(),
            observers: Observers::default(),
            owner: None,
            tls: None,
        }
    }
}

impl Options {
    /// Refuses options with which no lock can be held.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if let Durability::Volatile { longest_ttl } = self.durability {
            check_ttl(longest_ttl, self.drift)?;
        }
        self.check_ttl(self.ttl)?;
        self.retry.check()?;
        self.tcp.check()?;
        let link = &self.link;
        if link.connections == 0 {
            return Err(Error::misuse("connections_per_node is 0; a node needs at least 1"));
        }
        if link.entries_max == 0 || link.bytes_max == 0 {
            return Err(Error::misuse("a link's bound is 0; nothing could ever be sent"));
        }
        if self.extensions_max == 0 {
            return Err(Error::misuse("extensions_max is 0; no lock could be extended"));
        }
        if link.reconnect_first < RECONNECT_MIN {
            return Err(Error::misuse(format!(
                "the first pause before a reconnection is {:?}; that would try without end. Choose \
                 at least 1 ms",
                link.reconnect_first
            )));
        }
        if link.connect_timeout.is_zero() || self.node_timeout.is_some_and(|d| d.is_zero()) {
            return Err(Error::misuse("a timeout is 0; no node could ever answer in time"));
        }
        let owner = self.owner.as_deref().unwrap_or_default();
        if owner.len() > OWNER_LENGTH_MAX || owner.chars().any(char::is_control) {
            return Err(Error::misuse(format!(
                "the owner's name must have at most {OWNER_LENGTH_MAX} bytes and no control \
                 characters"
            )));
        }
        Ok(())
    }

    /// Refuses a TTL that no lock of this locker can have.
    pub(crate) fn check_ttl(&self, ttl: Duration) -> Result<(), Error> {
        check_ttl(ttl, self.drift)?;
        match self.durability {
            Durability::Volatile { longest_ttl } if ttl > longest_ttl => {
                Err(Error::misuse(format!(
                    "the TTL is {}, and the deployment's longest TTL is {} (see `durability`): a \
                     restarted node would vote before this lock has ended",
                    Humane(ttl),
                    Humane(longest_ttl)
                )))
            }
            _ => Ok(()),
        }
    }

    /// 1 % of the TTL, at least 50 ms (a busy server's pauses), at most 500 ms: far below the TTL,
    /// so that a hung node costs a small part of what it may cost.
    pub(crate) fn node_timeout(&self, ttl: Duration) -> Duration {
        self.node_timeout.unwrap_or_else(|| {
            // In nanoseconds: each command asks for it.
            Duration::from_nanos((nanoseconds(ttl) / 100).clamp(50_000_000, 500_000_000))
        })
    }

    /// For how long the undo of a key with this TTL may still matter: a node's timeout, by which
    /// the key was set or never is, and two TTLs, for one that comes as late as another has ended.
    pub(crate) fn undo_horizon(&self, ttl: Duration) -> Duration {
        self.node_timeout(ttl).saturating_add(ttl.saturating_mul(2))
    }
}

/// The timers' resolution. A shorter pause would be none, and the driver would keep a core busy
/// with connecting to a node that is down.
const RECONNECT_MIN: Duration = Duration::from_millis(1);

/// An owner's name travels in every acquisition.
const OWNER_LENGTH_MAX: usize = 128;

/// The share of a lease that is given up for clocks that run at different speeds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Drift {
    /// Of the TTL, in 1/1,000.
    pub(crate) permille: u32,
    pub(crate) floor: Duration,
}

impl Default for Drift {
    fn default() -> Self {
        Self { permille: 10, floor: Duration::from_millis(2) }
    }
}

impl Drift {
    pub(crate) fn of(self, ttl: Duration) -> Duration {
        Duration::from_nanos(self.nanoseconds_of(nanoseconds(ttl)))
    }

    /// The same in nanoseconds, for the hot path.
    pub(crate) fn nanoseconds_of(self, ttl: u64) -> u64 {
        let share = (ttl / 1_000).saturating_mul(u64::from(self.permille));
        share.saturating_add(nanoseconds(self.floor))
    }
}

/// What a connection may hold and how long it may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkOptions {
    pub(crate) driver: Driver,
    /// One connection carries more commands than a server's core executes.
    pub(crate) connections: usize,
    /// Connecting and the whole handshake: one second, far above a round trip between continents.
    pub(crate) connect_timeout: Duration,
    /// Commands without a reply, per connection. A hung node must not grow our memory without end.
    pub(crate) entries_max: usize,
    /// Bytes not yet taken by the kernel, per connection.
    pub(crate) bytes_max: usize,
    /// Up to so many replies outstanding, a caller writes to the socket itself, which saves a hop
    /// to the driver; beyond, the driver writes for all callers at once.
    pub(crate) direct_writes: usize,
    /// A reply that is older has not been lost, for the stream keeps order: the node hangs. The
    /// connection ends, and the node's vote costs no more waiting until it answers a new one. While
    /// a command that was sent has a later deadline, that deadline is waited for.
    pub(crate) reply_age_max: Duration,
    /// How long an undo may still matter if the server refuses it, or if its command may still
    /// arrive because the server does not let us end the connection that sent it: see
    /// [`Options::undo_horizon`].
    pub(crate) undo_horizon: Duration,
    /// The first pause before a reconnection, and the longest.
    pub(crate) reconnect_first: Duration,
    pub(crate) reconnect_cap: Duration,
    /// Whether `DELIFEQ` takes the place of the script, where the server has it.
    pub(crate) native: bool,
}

impl Default for LinkOptions {
    fn default() -> Self {
        Self {
            driver: Driver::Runtime,
            connections: 1,
            connect_timeout: Duration::from_secs(1),
            entries_max: 65_536,
            bytes_max: 8 << 20,
            direct_writes: 2,
            reply_age_max: Duration::from_secs(5),
            undo_horizon: Duration::from_secs(21),
            reconnect_first: Duration::from_millis(20),
            reconnect_cap: Duration::from_millis(200),
            native: true,
        }
    }
}

/// The TTL as the servers will count it: a lease must not outlive its keys by a fraction.
pub(crate) fn whole_millis(ttl: Duration) -> Duration {
    ttl - Duration::from_nanos(u64::from(ttl.subsec_nanos() % 1_000_000))
}

/// Refuses a TTL that the servers would refuse, or that the drift margin would use up.
pub(crate) fn check_ttl(ttl: Duration, drift: Drift) -> Result<(), Error> {
    /// Servers add the TTL in milliseconds to the time of day in 64 bits.
    const TTL_MS_MAX: u128 = i64::MAX as u128 / 4;
    if ttl < Duration::from_millis(1) {
        return Err(Error::misuse(format!("the TTL is {ttl:?}; it must be at least 1 ms")));
    }
    if ttl.as_millis() > TTL_MS_MAX {
        return Err(Error::misuse(format!(
            "the TTL is {} s; servers take at most {} s",
            ttl.as_secs(),
            TTL_MS_MAX / 1_000
        )));
    }
    if drift.of(ttl) >= ttl {
        return Err(Error::misuse(format!(
            "the TTL is {ttl:?}, and the margin for clock drift takes {:?} of it; choose a longer \
             TTL",
            drift.of(ttl)
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ttl_out_of_range_is_refused_with_a_reason() {
        let cases = [
            (Duration::ZERO, "at least 1 ms"),
            (Duration::from_micros(999), "at least 1 ms"),
            (Duration::from_millis(1), "clock drift"),
            (Duration::MAX, "servers take at most"),
        ];
        for (ttl, words) in cases {
            let error = check_ttl(ttl, Drift::default()).unwrap_err();
            assert!(error.is_misuse());
            assert!(error.to_string().contains(words), "{error}");
        }
        assert!(check_ttl(Duration::from_millis(3), Drift::default()).is_ok());
    }

    #[test]
    fn no_ttl_is_above_the_deployments_longest() {
        let durability = Durability::Volatile { longest_ttl: Duration::from_secs(30) };
        let options = Options { durability, ttl: Duration::from_secs(30), ..Options::default() };
        assert!(options.check().is_ok());
        let error = options.check_ttl(Duration::from_millis(30_001)).unwrap_err();
        assert!(error.is_misuse());
        assert!(error.to_string().contains("longest TTL is 30.0 s"), "{error}");
        let short = Durability::Volatile { longest_ttl: Duration::from_secs(9) };
        assert!(Options { durability: short, ..Options::default() }.check().is_err());
        let none = Durability::Volatile { longest_ttl: Duration::ZERO };
        assert!(Options { durability: none, ..Options::default() }.check().is_err());
    }

    #[test]
    fn no_option_makes_a_node_that_is_away_be_tried_without_end() {
        let check = |first: Duration, cap| {
            let mut options = Options::default();
            (options.link.reconnect_first, options.link.reconnect_cap) = (first, cap);
            options.check()
        };
        let ms = Duration::from_millis;
        // A pause that starts at nothing never grows, whatever its cap is.
        for (first, cap) in [(ms(0), ms(0)), (ms(0), ms(500)), (Duration::from_micros(999), ms(1))]
        {
            let error = check(first, cap).unwrap_err();
            assert!(error.is_misuse() && error.to_string().contains("without end"), "{error}");
        }
        assert!(check(ms(1), ms(1)).is_ok());
    }

    #[test]
    fn a_ttl_has_whole_milliseconds() {
        assert_eq!(whole_millis(Duration::from_micros(1_999)), Duration::from_millis(1));
        assert_eq!(whole_millis(Duration::from_nanos(10_000_000_001)), Duration::from_secs(10));
    }

    #[test]
    fn the_node_timeout_is_a_hundredth_within_bounds() {
        let options = Options::default();
        assert_eq!(options.node_timeout(Duration::from_secs(10)), Duration::from_millis(100));
        assert_eq!(options.node_timeout(Duration::from_millis(100)), Duration::from_millis(50));
        assert_eq!(options.node_timeout(Duration::from_secs(3_600)), Duration::from_millis(500));
    }

    #[test]
    fn drift_is_one_percent_and_two_milliseconds() {
        assert_eq!(Drift::default().of(Duration::from_secs(10)), Duration::from_millis(102));
    }
}
