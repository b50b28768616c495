//! Which faults there are, and when which comes: pure, and the same for the same seed.

use std::fmt;
use std::time::Duration;

use crate::paths::{Path, Way};
use crate::random::Random;

/// A kind of fault. The names are those of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Servers are stopped by SIGSTOP, and go on later.
    FreezeServer,
    /// Servers are killed by SIGKILL, and started again.
    KillServer,
    /// Clients are stopped by SIGSTOP, and go on later.
    FreezeClient,
    /// Clients are killed by SIGKILL, and started again.
    KillClient,
    /// Servers end all their connections (`CLIENT KILL`).
    Cut,
    /// Nothing comes from some clients to some nodes.
    PartitionTo,
    /// Nothing comes from some nodes to some clients.
    PartitionFrom,
    /// Nothing comes through, either way.
    Partition,
    /// Packets are lost.
    Loss,
    /// Packets are answered by the end of their connection.
    Reset,
    /// Commands and replies come late.
    Delay,
    /// Commands are swallowed, and their connections end.
    Swallow,
    /// Servers' clocks run faster or slower, within the bound.
    ClockRate,
    /// Servers' clocks jump, within the bound ahead, and by more back.
    ClockStep,
    /// A majority's clocks jump ahead by more than any TTL, and are set right later: no lock can
    /// bear it.
    ClockLeap,
}

/// All kinds, with what is needed for them and how often they come beside one another.
const KINDS: [(Kind, &str, Need, u64); 15] = [
    (Kind::FreezeServer, "freeze-server", Need::Nothing, 4),
    (Kind::KillServer, "kill-server", Need::Nothing, 3),
    (Kind::FreezeClient, "freeze-client", Need::Nothing, 4),
    (Kind::KillClient, "kill-client", Need::Nothing, 3),
    (Kind::Cut, "cut", Need::Nothing, 3),
    (Kind::PartitionTo, "partition-to", Need::Nothing, 3),
    (Kind::PartitionFrom, "partition-from", Need::Nothing, 3),
    (Kind::Partition, "partition", Need::Nothing, 3),
    (Kind::Loss, "loss", Need::Namespaces, 3),
    (Kind::Reset, "reset", Need::Nothing, 2),
    (Kind::Delay, "delay", Need::Proxies, 3),
    (Kind::Swallow, "swallow", Need::Proxies, 2),
    (Kind::ClockRate, "clock-rate", Need::Shim, 2),
    (Kind::ClockStep, "clock-step", Need::Shim, 2),
    (Kind::ClockLeap, "clock-leap", Need::ToBeNamed, 4),
];

/// What a kind of fault needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    Nothing,
    Namespaces,
    Proxies,
    Shim,
    /// It breaks the assumptions: it comes only where it is asked for by its name.
    ToBeNamed,
}

/// What this run has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Means {
    pub(crate) namespaces: bool,
    pub(crate) shim: bool,
}

impl Kind {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        KINDS.iter().find(|(_, known, ..)| *known == name).map(|(kind, ..)| *kind)
    }

    pub(crate) fn name(self) -> &'static str {
        KINDS.iter().find(|(kind, ..)| *kind == self).map_or("?", |(_, name, ..)| name)
    }

    /// Every name, for the usage.
    pub(crate) fn names() -> String {
        KINDS.map(|(_, name, ..)| name).join(",")
    }

    /// Those that can be had without breaking the assumptions.
    pub(crate) fn usual(means: Means) -> Vec<Self> {
        let has = |need| match need {
            Need::Nothing => true,
            Need::Namespaces => means.namespaces,
            Need::Proxies => !means.namespaces,
            Need::Shim => means.shim,
            Need::ToBeNamed => false,
        };
        KINDS.iter().filter(|(_, _, need, _)| has(*need)).map(|(kind, ..)| *kind).collect()
    }

    /// Why this run cannot have it, if it cannot.
    pub(crate) fn lacks(self, means: Means) -> Option<&'static str> {
        let need = KINDS.iter().find(|(kind, ..)| *kind == self).map(|(_, _, need, _)| *need)?;
        match need {
            Need::Namespaces if !means.namespaces => Some("network namespaces"),
            Need::Proxies if means.namespaces => Some("--network proxy"),
            Need::Shim | Need::ToBeNamed if !means.shim => Some("a C compiler, for the clocks"),
            _ => None,
        }
    }

    /// Whether it stops or ends servers: one such fault at a time for each.
    pub(crate) fn is_of_servers(self) -> bool {
        matches!(self, Self::FreezeServer | Self::KillServer)
    }

    /// Whether it stops or ends clients: one such fault at a time for each.
    pub(crate) fn is_of_clients(self) -> bool {
        matches!(self, Self::FreezeClient | Self::KillClient)
    }

    /// Whether it stops, ends or cuts off servers, or moves their clocks beyond the bound.
    pub(crate) fn is_of_nodes(self) -> bool {
        self.is_of_servers() || matches!(self, Self::Cut | Self::ClockLeap)
    }

    /// What it does to the network, if it does that.
    pub(crate) fn path(self, random: &mut Random) -> Option<Path> {
        let clear = Path::default();
        Some(match self {
            Self::PartitionTo => Path { to: Way::Dead, ..clear },
            Self::PartitionFrom => Path { from: Way::Dead, ..clear },
            Self::Partition => Path { to: Way::Dead, from: Way::Dead },
            Self::Loss => {
                let lossy = Way::Lossy(random.choose(&[5, 20, 50]));
                Path { to: lossy, from: lossy }
            }
            Self::Reset => Path { to: Way::Reset, ..clear },
            Self::Delay => {
                let late = Way::Late(random.choose(&[3, 20, 45, 150, 400]));
                random.choose(&[
                    Path { to: late, ..clear },
                    Path { from: late, ..clear },
                    Path { to: late, from: late },
                ])
            }
            Self::Swallow => Path { to: Way::Void, ..clear },
            _ => return None,
        })
    }
}

/// A fault that comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: Kind,
    /// Which of the run's faults it is.
    pub(crate) number: u64,
    /// When, from the start of the run.
    pub(crate) at: Duration,
    pub(crate) lasts: Duration,
    /// Whom it meets, as masks.
    pub(crate) clients: u32,
    pub(crate) nodes: u32,
    pub(crate) path: Option<Path>,
    /// For a clock: how far or how fast, in microseconds or millionths.
    pub(crate) amount: i64,
}

/// Draws the faults one after the other.
#[derive(Debug)]
pub(crate) struct Schedule {
    random: Random,
    /// Each as often as it weighs.
    kinds: Vec<Kind>,
    per_second: f64,
    at: Duration,
    /// How many have been drawn.
    drawn: u64,
    clients: usize,
    nodes: usize,
    ttl: Duration,
}

impl Schedule {
    pub(crate) fn new(
        seed: u64,
        kinds: &[Kind],
        per_second: f64,
        (clients, nodes): (usize, usize),
        ttl: Duration,
    ) -> Self {
        let weight = |kind: Kind| KINDS.iter().find(|(k, ..)| *k == kind).map_or(1, |it| it.3);
        let weighed = kinds.iter().flat_map(|&kind| (0..weight(kind)).map(move |_| kind));
        Self {
            random: Random::new(seed, 7),
            kinds: weighed.collect(),
            per_second,
            at: Duration::from_millis(500),
            drawn: 0,
            clients,
            nodes,
            ttl,
        }
    }
}

impl Iterator for Schedule {
    type Item = Fault;

    fn next(&mut self) -> Option<Fault> {
        if self.kinds.is_empty() || self.per_second <= 0.0 {
            return None;
        }
        let (random, ttl) = (&mut self.random, self.ttl);
        let mean = Duration::from_secs_f64(1.0 / self.per_second);
        self.at += random.between(Duration::ZERO, mean * 2);
        let kind = random.choose(&self.kinds);
        // Mostly about as long as a lease, for there it matters.
        let lasts = match random.below(8) {
            0..=2 => random.between(Duration::from_millis(20), ttl / 4),
            3..=6 => random.between(ttl / 4, ttl * 3 / 2),
            _ => random.between(ttl * 3 / 2, ttl * 3),
        };
        let majority = self.nodes / 2 + 1;
        let some = match kind {
            // One clock alone takes no lock away, and needs its time.
            Kind::ClockRate => random.choose(&[1, majority, self.nodes, self.nodes]),
            _ => random.choose(&[1, 1, 1, 2, 2, majority, self.nodes]),
        };
        let lasts = if kind == Kind::ClockRate { lasts + ttl * 2 } else { lasts };
        let nodes = match kind {
            Kind::ClockLeap => random.subset(majority, self.nodes),
            // Connections between all of them would seldom be whole.
            Kind::KillServer => random.subset(some.min(majority), self.nodes),
            _ => random.subset(some, self.nodes),
        };
        let clients = match random.percent(30) {
            true => random.subset(self.clients, self.clients),
            false => random.subset(1, self.clients),
        };
        let path = kind.path(random);
        let amount = match kind {
            // A clock may gain 1 % and 2 ms within a TTL. Its pace, a few steps, and the
            // millisecond in which servers count stay below that together.
            Kind::ClockRate => random.choose(&[-20_000, 3_000, 7_000, 7_000]),
            Kind::ClockStep => random.choose(&[500, 500, -500, -5_000, -200_000]),
            Kind::ClockLeap => i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX / 4) * 2,
            _ => 0,
        };
        self.drawn += 1;
        let number = self.drawn;
        Some(Fault { kind, number, at: self.at, lasts, clients, nodes, path, amount })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, number: _, at, lasts, clients, nodes, path, amount } = self;
        write!(f, "{:9.3} s {:<15}", at.as_secs_f64(), kind.name())?;
        write!(f, " for {:5} ms, nodes {nodes:05b}, clients {clients:05b}", lasts.as_millis())?;
        if let Some(path) = path {
            write!(f, ", to {:?}, from {:?}", path.to, path.from)?;
        }
        if *amount != 0 {
            write!(f, ", by {amount}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Means = Means { namespaces: true, shim: true };
    const TTL: Duration = Duration::from_secs(1);

    fn schedule(seed: u64) -> Vec<Fault> {
        Schedule::new(seed, &Kind::usual(ALL), 2.0, (4, 5), TTL).take(500).collect()
    }

    #[test]
    fn a_seed_is_a_schedule() {
        assert_eq!(schedule(1), schedule(1));
        assert_ne!(schedule(1), schedule(2));
    }

    #[test]
    fn every_usual_kind_comes_and_no_other() {
        let faults = schedule(3);
        for kind in Kind::usual(ALL) {
            assert!(faults.iter().any(|fault| fault.kind == kind), "{kind:?}");
        }
        assert!(faults.iter().all(|fault| fault.kind != Kind::ClockLeap));
        assert!(faults.iter().all(|fault| fault.kind != Kind::Delay), "there are no proxies");
        let seconds = faults.last().map_or(0.0, |fault| fault.at.as_secs_f64());
        assert!((200.0..300.0).contains(&seconds), "two each second: {seconds}");
    }

    #[test]
    fn every_kind_goes_by_its_name() {
        for (kind, name, ..) in KINDS {
            assert_eq!(Kind::parse(name), Some(kind));
            assert_eq!(kind.name(), name);
        }
        assert_eq!(Kind::parse("meteor"), None);
    }
}
