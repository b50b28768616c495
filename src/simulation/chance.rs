//! Chance that can be had again: the same seed draws the same.

use crate::testing::draw;

/// Who draws from which stream of a seed. Each has one of its own, so that what one of them draws
/// does not change what another one does.
pub(super) const PLAN: u64 = 1;
pub(super) const FAULTS: u64 = 2;
pub(super) const AGENDA: u64 = 3;
pub(super) const NETWORK: u64 = 4;
pub(super) const ACTORS: u64 = 5;
pub(super) const SEVERAL: u64 = 6;
/// And the one behind it.
pub(super) const WAITS: u64 = 7;
pub(super) const HANDOVERS: u64 = 9;
pub(super) const NATIVE: u64 = 10;
pub(super) const FENCES: u64 = 11;
/// By how much wall clocks are wrong at most; and those of the nodes, and of the machines.
pub(super) const CLOCKS: u64 = 12;
pub(super) const READERS: u64 = 13;
pub(super) const SLOTS: u64 = 14;
pub(super) const DELAYS: u64 = 15;
pub(super) const FAIR: u64 = 16;
pub(super) const LATCHES: u64 = 17;
pub(super) const REVOKED: u64 = 18;
pub(super) const STRICT: u64 = 19;
pub(super) const BARRIERS: u64 = 20;
pub(super) const BARGERS: u64 = 50;
pub(super) const NODES: u64 = 100;
/// Which server each process of a node is.
pub(super) const VERSIONS: u64 = 200;
pub(super) const NODE_CLOCKS: u64 = 300;
pub(super) const WORKERS: u64 = 1_000;
/// Tasks of adopters, restarters of lockers, and the order in which tasks run.
pub(super) const ADOPTERS: u64 = 1_000_000;
pub(super) const RESTARTERS: u64 = 2_000_000;
pub(super) const ORDERS: u64 = 3_000_000;
pub(super) const PARTIES: u64 = 5_000_000;
pub(super) const REVOKERS: u64 = 6_000_000;
pub(super) const BREAKERS: u64 = 7_000_000;
/// And each hold, by its number.
pub(super) const HANDLES: u64 = 100_000_000;
pub(super) const MACHINE_CLOCKS: u64 = 4_000_000;

/// Draws choices from the same generator as the servers of `testing`.
#[derive(Clone, Debug)]
pub(super) struct Chance(u64);

impl Chance {
    /// One of many that have nothing in common, by the seed and a number of one's own.
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        let mut chance = Self(seed ^ stream.wrapping_mul(0xd6e8_feb8_6659_fd93));
        chance.next();
        chance
    }

    pub(super) fn next(&mut self) -> u64 {
        draw(&mut self.0)
    }

    /// A number from `low` to `high`, both included.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// A number below `count`.
    pub(super) fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    /// `true` so many times in a hundred.
    pub(super) fn percent(&mut self, share: u64) -> bool {
        self.next() % 100 < share
    }

    pub(super) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// A duration in milliseconds, most often short and now and then as long as `longest`.
    pub(super) fn lasting(&mut self, longest: u64) -> u64 {
        let longest = match self.below(4) {
            0 => longest,
            1 => longest / 4,
            _ => longest / 20,
        };
        self.between(1, longest.max(1))
    }
}
