//! What a seed stands for: how many nodes and clients, of which kind, and with which faults.

use super::chance::{self, Chance};

/// Which of the lock's assumptions the world keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Regime {
    /// All.
    Kept,
    /// A majority of the nodes have their clocks set ahead.
    Stepped,
    /// One node alone, always the first, has its clock set ahead, by more than any TTL.
    OneStepped,
    /// Nodes come back without their keys, and the clients believe that they never do.
    Amnesia,
    /// As `Stepped`, and the locks are fenced.
    SteppedFenced,
    /// As `Amnesia`, and the locks are fenced. No clocks are set but those of machines, and these
    /// back; nodes are away for at least as long as fences are ahead of their clocks.
    AmnesiaFenced,
    /// The same, and a majority of the nodes have their clocks set back meanwhile, which is further
    /// than fences are made for.
    BeyondFenced,
}

impl Regime {
    pub(super) const ALL: [Self; 7] = [
        Self::Kept,
        Self::Stepped,
        Self::OneStepped,
        Self::Amnesia,
        Self::SteppedFenced,
        Self::AmnesiaFenced,
        Self::BeyondFenced,
    ];

    pub(super) const fn is_fenced(self) -> bool {
        matches!(self, Self::SteppedFenced | Self::AmnesiaFenced | Self::BeyondFenced)
    }

    /// Whether a majority's clocks are set ahead.
    pub(super) const fn steps(self) -> bool {
        matches!(self, Self::Stepped | Self::SteppedFenced)
    }

    /// Whether nodes come back without their keys, and no client expects it.
    pub(super) const fn forgets(self) -> bool {
        matches!(self, Self::Amnesia | Self::AmnesiaFenced | Self::BeyondFenced)
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Stepped => "stepped",
            Self::OneStepped => "one-stepped",
            Self::Amnesia => "amnesia",
            Self::SteppedFenced => "stepped-fenced",
            Self::AmnesiaFenced => "amnesia-fenced",
            Self::BeyondFenced => "beyond-fenced",
        }
    }
}

/// How long those wait that are to be served: a queue is worth most where it is long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Waits {
    /// For about a second at most.
    Short,
    /// For some seconds. Some give up meanwhile, and clients of other libraries take locks, too.
    Long,
    /// As `Long`, but one task waits alone, for a client of another library or for one other task.
    /// There are no faults: it is known when it must have the lock.
    Alone,
}

impl Waits {
    fn new(seed: u64, (may_be_long, forgets): (bool, bool)) -> Self {
        let share = Chance::new(seed, chance::WAITS).below(100);
        match share {
            _ if !may_be_long => Self::Short,
            0..14 if !forgets => Self::Alone,
            0..28 => Self::Long,
            _ => Self::Short,
        }
    }
}

/// One run. Times are in milliseconds, rates in millionths.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) regime: Regime,
    pub(super) nodes: usize,
    pub(super) clients: usize,
    /// Tasks that acquire, for each client.
    pub(super) workers: usize,
    pub(super) keys: usize,
    /// Tasks of each client that take locks of several keys, beside those that take one.
    pub(super) several: usize,
    pub(super) connections: usize,
    /// The longest TTL of servers that may forget; none where they do not.
    pub(super) longest_ttl: Option<u64>,
    pub(super) ttls: Vec<u64>,
    /// How long the clients work; then all faults end, and everything must come to rest.
    pub(super) length: u64,
    /// The pause between two faults, at most; 0 is none at all.
    pub(super) fault_pause: u64,
    /// A fault lasts so long at most.
    pub(super) fault_longest: u64,
    /// The latency of two bytes on the same path differs so much at most, and that of two paths
    /// as much again.
    pub(super) latency: u64,
    /// How long a node may take; the default where it is none.
    pub(super) node_timeout: Option<u64>,
    /// Many tasks stand in a queue for one key, and about half of them wait forever.
    pub(super) queues: bool,
    pub(super) waits: Waits,
    /// Clients of other libraries, which know of no queue.
    pub(super) bargers: usize,
    /// For so long a lock is handed on inside its process; 0 is not at all.
    pub(super) local_handover: u64,
    /// Of a hundred locks of one key, how many are a reader's.
    pub(super) readers: u64,
    /// How many slots a key has, for those that ask for one; none where it is 0.
    pub(super) slots: u16,
    /// Of a hundred locks of one key, how many are slots.
    pub(super) slotted: u64,
    /// Of a hundred locks, how many have a lock-delay, and how many are asked for as fair.
    pub(super) delayed: u64,
    pub(super) fair: u64,
    /// Of a hundred locks of one key that are no reader's and no slots, how many are asked for in
    /// strict order.
    pub(super) strict: u64,
    /// Tasks of each client that arrive at latches, and look at them.
    pub(super) parties: usize,
    /// Tasks of each client that meet at barriers, and break them where there is one node.
    pub(super) breakers: usize,
    /// Holders are asked to let go of their locks.
    pub(super) revoked: bool,
    /// Whether the locks are fenced.
    pub(super) fenced: bool,
    /// The largest error from the start of a machine's wall clock that is behind.
    pub(super) machine_behind_ms_max: u64,
    /// That of one that is ahead, and of a node's wall clock, either way.
    pub(super) clock_error_ms_max: u64,
    /// Of a hundred processes of nodes, how many know `DELIFEQ`. A node's processes differ.
    pub(super) native: u64,
    /// Between two locks a task pauses so long at most.
    pub(super) think: u64,
    pub(super) actors: Actors,
}

/// What clients do beside taking locks and letting go of them. Shares are in a hundred.
#[derive(Clone, Debug, Default)]
pub(super) struct Actors {
    /// Holds that end by handing their token to other machines.
    pub(super) handed: u64,
    /// Tokens that go to two machines at once.
    pub(super) handed_twice: u64,
    /// Looks at a guard that hand its token to others while it lives.
    pub(super) handed_alive: u64,
    /// Adoptions that begin with a locker of another durability.
    pub(super) misfits: u64,
    /// Futures that are dropped before they are done.
    pub(super) dropped: u64,
    /// Locks that are taken by `run`, and holds that work under `protect`.
    pub(super) guarded: u64,
    /// The pause between two shutdowns of a machine's locker, at most; 0 is none at all.
    pub(super) shutdown_pause: u64,
    /// Faults that end a machine's runtime.
    pub(super) runtimes_ended: u64,
    /// Polls of a task that let the others that are ready go first.
    pub(super) reordered: u64,
    /// Polls of the library's tasks that come some milliseconds late.
    pub(super) delayed: u64,
}

impl Actors {
    fn new(seed: u64) -> Self {
        let mut chance = Chance::new(seed, chance::ACTORS);
        if chance.percent(15) {
            return Self::default();
        }
        let mut actors = Self {
            handed: chance.pick(&[0, 15, 40, 70]),
            handed_twice: chance.pick(&[0, 30]),
            handed_alive: chance.pick(&[0, 0, 2, 6]),
            misfits: chance.pick(&[0, 25]),
            dropped: chance.pick(&[0, 10, 30]),
            guarded: chance.pick(&[0, 20, 40]),
            shutdown_pause: chance.pick(&[0, 0, 1_000, 4_000]),
            runtimes_ended: chance.pick(&[0, 5, 20]),
            reordered: chance.pick(&[0, 0, 5, 25]),
            delayed: chance.pick(&[0, 0, 0, 2]),
        };
        without().split(',').for_each(|name| actors.leave_out(name));
        actors
    }

    fn leave_out(&mut self, name: &str) {
        let left_out = match name {
            // They are looked at where the plan is made.
            "" | "several" | "readers" | "slots" | "delays" | "fair" | "strict" | "latches"
            | "barriers" | "revoked" => return,
            "handed" => &mut self.handed,
            "handed-twice" => &mut self.handed_twice,
            "handed-alive" => &mut self.handed_alive,
            "misfits" => &mut self.misfits,
            "dropped" => &mut self.dropped,
            "guarded" => &mut self.guarded,
            "shutdowns" => &mut self.shutdown_pause,
            "runtimes-ended" => &mut self.runtimes_ended,
            "reordered" => &mut self.reordered,
            "delayed" => &mut self.delayed,
            _ => panic!("QUORLOCK_WITHOUT names `{name}`, which is no field of `Actors`"),
        };
        *left_out = 0;
    }
}

/// The actors that `QUORLOCK_WITHOUT` leaves out, by their names between commas: to see which of
/// them a violation needs.
pub(super) fn without() -> String {
    std::env::var("QUORLOCK_WITHOUT").unwrap_or_default()
}

/// How long a node may take where the plan leaves it to the library, at least.
const NODE_TIMEOUT: u64 = 50;

/// How long connecting may take, with the handshake.
pub(super) const CONNECT_TIMEOUT: u64 = 400;

/// How many keys the locks of several keys are drawn from, at least: enough for them to overlap in
/// a circle.
const SEVERAL_KEYS: usize = 4;

/// How many nodes there are, where so many were drawn: `QUORLOCK_NODES` is another number.
pub(super) fn nodes(drawn: usize) -> usize {
    let named = std::env::var("QUORLOCK_NODES").ok();
    named.map_or(drawn, |text| {
        text.parse().unwrap_or_else(|_| panic!("QUORLOCK_NODES is `{text}`; give a number"))
    })
}

fn several(seed: u64) -> usize {
    if without().split(',').any(|name| name == "several") {
        return 0;
    }
    Chance::new(seed, chance::SEVERAL).pick(&[0, 1, 1, 2])
}

fn local_handover(seed: u64) -> u64 {
    Chance::new(seed, chance::HANDOVERS).pick(&[0, 0, 0, 0, 100, 1_000])
}

fn readers(seed: u64) -> u64 {
    if without().split(',').any(|name| name == "readers") {
        return 0;
    }
    Chance::new(seed, chance::READERS).pick(&[0, 0, 30, 60, 90])
}

/// Of a hundred locks, how many have a lock-delay: where no token goes to others, who may end it.
fn delayed(seed: u64, actors: &Actors) -> u64 {
    let is_left_out = without().split(',').any(|name| name == "delays");
    if is_left_out || actors.handed + actors.handed_alive > 0 {
        return 0;
    }
    Chance::new(seed, chance::DELAYS).pick(&[0, 40, 100])
}

fn fair(seed: u64) -> u64 {
    if without().split(',').any(|name| name == "fair") {
        return 0;
    }
    Chance::new(seed, chance::FAIR).pick(&[0, 0, 50, 100])
}

fn strict(seed: u64) -> u64 {
    if without().split(',').any(|name| name == "strict") {
        return 0;
    }
    Chance::new(seed, chance::STRICT).pick(&[0, 0, 0, 60, 100])
}

fn revoked(seed: u64) -> bool {
    let are_left_out = without().split(',').any(|name| name == "revoked");
    !are_left_out && Chance::new(seed, chance::REVOKED).percent(30)
}

fn parties(seed: u64) -> usize {
    if without().split(',').any(|name| name == "latches") {
        return 0;
    }
    Chance::new(seed, chance::LATCHES).pick(&[0, 0, 0, 1, 2])
}

fn breakers(seed: u64, nodes: usize) -> usize {
    if without().split(',').any(|name| name == "barriers") {
        return 0;
    }
    let choices: &[usize] = if nodes == 1 { &[0, 1, 2] } else { &[0, 0, 1, 2] };
    Chance::new(seed, chance::BARRIERS).pick(choices)
}

/// Draws `(slots, slotted)`.
fn slots(seed: u64) -> (u16, u64) {
    if without().split(',').any(|name| name == "slots") {
        return (0, 0);
    }
    let mut chance = Chance::new(seed, chance::SLOTS);
    match chance.pick(&[0, 0, 0, 1, 2, 3]) {
        0 => (0, 0),
        slots => (slots, chance.pick(&[30, 60, 100])),
    }
}

fn native(seed: u64) -> u64 {
    Chance::new(seed, chance::NATIVE).pick(&[0, 0, 0, 50, 50, 100])
}

/// Draws `(clock_error_ms_max, machine_behind_ms_max)`. Where nodes forget, the first is at most
/// 50: they have to be away until their clocks are past all fences, or refuse tokens that are
/// further ahead than the longest TTL. Machines may be behind by more: their tokens are too low
/// then, and never too high.
fn clock_errors(seed: u64, forgets: bool) -> (u64, u64) {
    let behind = Chance::new(seed, chance::CLOCKS).pick(&[0, 0, 50, 2_000]);
    (if forgets { behind.min(50) } else { behind }, behind)
}

impl Plan {
    /// By how much the wall clock of this machine is ahead from the start.
    pub(super) fn machine_ahead(&self, machine: usize) -> i64 {
        let mut chance = Chance::new(self.seed, chance::MACHINE_CLOCKS + machine as u64);
        let drawn = chance.between(0, self.machine_behind_ms_max + self.clock_error_ms_max);
        drawn as i64 - self.machine_behind_ms_max as i64
    }

    /// The same of a node.
    pub(super) fn node_ahead(&self, node: usize) -> i64 {
        let mut chance = Chance::new(self.seed, chance::NODE_CLOCKS + node as u64);
        chance.between(0, 2 * self.clock_error_ms_max) as i64 - self.clock_error_ms_max as i64
    }

    /// How far fences may be ahead of a node's clock; a node that forgets is away for as long. A
    /// token is 10 ms ahead of its machine's clock, or follows a missing fence 10 ms ahead of
    /// another node's: the clocks are two errors apart. Twice the errors, to be on the safe side.
    /// And it is ahead by what would have been enough before, of a command that was answered late:
    /// just in time at most.
    pub(super) fn fences_ahead_ms_max(&self) -> u64 {
        20 + 4 * self.clock_error_ms_max + self.node_timeout.unwrap_or(NODE_TIMEOUT)
    }

    /// How far the clocks of nodes are set back altogether, at most: where they are further apart
    /// than half of what tokens may be ahead of them, with all else that drives them apart, no
    /// majority may take a token.
    pub(super) fn set_back_ms_max(&self) -> u64 {
        const AHEAD_MS_MAX: u64 = 10_000;
        /// By 12,000 millionths, in the half minute that a run takes at most.
        const DRIFT_MS_MAX: u64 = 360;
        let apart = self.longest_ttl.unwrap_or(AHEAD_MS_MAX) / 2;
        let else_apart = DRIFT_MS_MAX + 2 * self.clock_error_ms_max;
        if self.fenced { apart.saturating_sub(else_apart) } else { u64::MAX }
    }

    /// The keys that a task takes at once: some neighbours of a ring.
    pub(super) fn draw_keys(&self, chance: &mut Chance, takes_several: bool) -> Vec<String> {
        let (ring, count) = match takes_several {
            true => (self.keys.max(SEVERAL_KEYS), chance.pick(&[1, 2, 2, 3])),
            false => (self.keys, 1),
        };
        let first = chance.below(ring);
        (first..first + count).map(|key| format!("k{}", key % ring)).collect()
    }

    /// Whether many wait, or for long: when all is over they are served soon.
    pub(super) fn is_patient(&self) -> bool {
        self.queues || self.waits != Waits::Short
    }

    /// Whether nodes without a fault answer before their deadline: there and back, each way twice
    /// the latency at most. Connecting takes three round trips.
    pub(super) fn is_quick(&self) -> bool {
        let round_trip = 4 * self.latency;
        self.actors.delayed == 0
            && round_trip < self.node_timeout.unwrap_or(NODE_TIMEOUT)
            && 3 * round_trip < CONNECT_TIMEOUT
    }

    /// Whether the shortest lease, less its margins, outlasts so many commands: each is sent behind
    /// the answers to the one before.
    pub(super) fn outlasts(&self, commands: u64) -> bool {
        let shortest = self.ttls.iter().min().copied().unwrap_or_default();
        4 * self.latency * commands < shortest * 9 / 10
    }

    pub(super) fn new(seed: u64, regime: Regime) -> Self {
        let mut chance = Chance::new(seed, chance::PLAN);
        let forgets = regime == Regime::Kept && chance.percent(30);
        let long = !forgets && chance.percent(40);
        let ttls = match (forgets, long) {
            (true, _) => vec![150, 300, 900],
            (_, true) => vec![300, 20_000],
            _ => vec![150, 400, 1_500],
        };
        let kept = regime == Regime::Kept;
        let queues = kept && !long && chance.percent(15);
        let waits = Waits::new(seed, (kept && !long && !queues, forgets));
        let (clock_error_ms_max, machine_behind_ms_max) =
            clock_errors(seed, forgets || regime.forgets());
        let nodes = nodes(chance.pick(&[1, 2, 3, 3, 3, 4, 5, 5]).max(if kept { 1 } else { 3 }));
        let plan = Self {
            seed,
            regime,
            nodes,
            clients: if queues { 4 } else { chance.pick(&[2, 2, 3, 4]) },
            workers: if queues { 2 } else { chance.pick(&[1, 1, 2]) },
            keys: if queues { 1 } else { chance.pick(&[1, 1, 2, 3]) },
            several: if kept { several(seed) } else { 0 },
            connections: chance.pick(&[1, 1, 2]),
            longest_ttl: forgets.then_some(900),
            ttls,
            length: chance.pick(&[3_000, 5_000, 8_000]),
            fault_pause: chance.pick(&[0, 80, 300, 600, 1_500]),
            fault_longest: chance.pick(&[300, 1_000, 2_500]),
            // A task that waits forever must be able to get an answer before the node's deadline.
            latency: chance.pick(&[0, 1, 3, 10, 40]).min(if queues { 10 } else { 40 }),
            node_timeout: chance.pick(&[None, None, Some(250)]),
            queues,
            waits,
            bargers: 0,
            local_handover: if kept { local_handover(seed) } else { 0 },
            readers: if kept { readers(seed) } else { 0 },
            slots: if kept { slots(seed).0 } else { 0 },
            slotted: slots(seed).1,
            delayed: 0,
            fair: if kept { fair(seed) } else { 0 },
            strict: if kept { strict(seed) } else { 0 },
            parties: if kept { parties(seed) } else { 0 },
            breakers: if kept { breakers(seed, nodes) } else { 0 },
            revoked: kept && revoked(seed),
            fenced: regime.is_fenced() || kept && Chance::new(seed, chance::FENCES).percent(15),
            machine_behind_ms_max,
            clock_error_ms_max,
            native: native(seed),
            think: chance.pick(&[0, 20, 100]),
            actors: if kept { Actors::new(seed) } else { Actors::default() },
        };
        plan.wait_longer()
    }

    /// What it takes for waits to be long: few keys, and answers that come in time.
    fn wait_longer(mut self) -> Self {
        if self.waits == Waits::Short {
            // Those who wait for long expect to be served when a lease is over.
            let is_hasty = self.regime == Regime::Kept && !self.queues;
            self.delayed = if is_hasty { delayed(self.seed, &self.actors) } else { 0 };
            return self;
        }
        let mut chance = Chance::new(self.seed, chance::WAITS + 1);
        self.latency = self.latency.min(10);
        self.keys = self.keys.min(2);
        // Where nodes forget, others would take locks from those that are in quarantine.
        self.bargers = if self.longest_ttl.is_some() { 0 } else { chance.pick(&[0, 1, 1, 2]) };
        if self.waits == Waits::Alone {
            (self.workers, self.several, self.keys, self.parties) = (1, 0, 1, 0);
            (self.breakers, self.revoked) = (0, false);
            (self.fault_pause, self.actors) = (0, Actors::default());
            // For a client of another library, or for one that may read or ask for a slot, as it
            // itself may.
            let may_be_one = self.readers > 0 || self.slots > 0;
            (self.clients, self.bargers) = if may_be_one { (2, 0) } else { (1, 1) };
            if self.slots > 0 {
                (self.slots, self.slotted, self.readers) = (1, 100, 0);
            }
        }
        self
    }
}
