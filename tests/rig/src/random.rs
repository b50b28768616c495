//! Chance that is the same for the same seed, in every version of every library.

use std::time::Duration;

/// SplitMix64: small, and good enough to choose faults by.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Chance of its own for each `stream` of one seed.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut random = Self(seed ^ stream.wrapping_mul(0xd6e8_feb8_6659_fd93));
        random.next();
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One of `0..end`; 0 where there is none.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// One of the items, which must not be none.
    pub(crate) fn choose<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize]
    }

    /// True in so many of a hundred.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A duration between two, in microseconds.
    pub(crate) fn between(&mut self, low: Duration, high: Duration) -> Duration {
        let span = high.saturating_sub(low).as_micros() as u64;
        low + Duration::from_micros(self.below(span + 1))
    }

    /// `count` different numbers below `end`, as a mask.
    pub(crate) fn subset(&mut self, count: usize, end: usize) -> u32 {
        let mut mask = 0_u32;
        while mask.count_ones() < count.min(end) as u32 {
            mask |= 1 << self.below(end as u64);
        }
        mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_chance_and_each_stream_its_own() {
        let draw = |seed, stream| {
            let mut random = Random::new(seed, stream);
            (0..8).map(|_| random.next()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1, 1), draw(1, 1));
        assert_ne!(draw(1, 1), draw(1, 2));
        assert_ne!(draw(1, 1), draw(2, 1));
        assert_eq!(Random::new(1, 1).subset(3, 5).count_ones(), 3);
        assert_eq!(Random::new(1, 1).subset(9, 5), 0b11111);
    }
}
