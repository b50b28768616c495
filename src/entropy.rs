//! The one source of randomness: the random part of a lock's value, and jitter.
//!
//! A generator per locker (ChaCha, seeded by the operating system once), so that an attempt costs
//! no system call. A process that forks copies the generator's state: build lockers after the
//! fork.

use std::fmt;
use std::time::Duration;

use rand::rngs::{StdRng, SysRng};
use rand::{Rng, RngExt, SeedableRng};

use crate::error::Error;
use crate::sync::{Mutex, lock};

/// 160 random bits: what tells one attempt's key from every other's, on every client.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nonce(pub(crate) [u8; Self::BYTES]);

impl Nonce {
    pub(crate) const BYTES: usize = 20;
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nonce(…)") // who knows it can release the lock
    }
}

/// A cryptographic generator that can be shared.
pub(crate) struct Entropy(Mutex<StdRng>);

impl Entropy {
    /// Seeded by the operating system; an error where it gives no randomness.
    pub(crate) fn from_system() -> Result<Self, Error> {
        let none = |_| Error::closed("the operating system gives no random numbers");
        StdRng::try_from_rng(&mut SysRng).map(|rng| Self(Mutex::new(rng))).map_err(none)
    }

    /// The same seed gives the same sequence: for simulations and tests.
    #[cfg(test)]
    pub(crate) fn from_seed(seed: u64) -> Self {
        Self(Mutex::new(StdRng::seed_from_u64(seed)))
    }

    pub(crate) fn nonce(&self) -> Nonce {
        let mut bytes = [0; Nonce::BYTES];
        lock(&self.0).fill_bytes(&mut bytes);
        Nonce(bytes)
    }

    /// A number below `count`, each as likely as any other; 0 where there is none.
    pub(crate) fn below(&self, count: u16) -> u16 {
        if count == 0 { 0 } else { lock(&self.0).random_range(0..count) }
    }

    /// A duration between `low` and `high`, both included, each as likely as any other.
    pub(crate) fn between(&self, low: Duration, high: Duration) -> Duration {
        if high <= low {
            return low;
        }
        let span = u64::try_from((high - low).as_nanos()).unwrap_or(u64::MAX);
        low + Duration::from_nanos(lock(&self.0).random_range(0..=span))
    }
}

impl fmt::Debug for Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entropy(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_nonces_are_alike_and_none_shows_in_debug() {
        let entropy = Entropy::from_system().unwrap();
        let (a, b) = (entropy.nonce(), entropy.nonce());
        assert_ne!(a.0, b.0);
        assert_eq!(format!("{a:?}"), "Nonce(…)");
    }

    #[test]
    fn below_reaches_each_number_and_bears_none() {
        let entropy = Entropy::from_seed(7);
        let drawn: std::collections::BTreeSet<u16> = (0..200).map(|_| entropy.below(4)).collect();
        assert!(drawn.into_iter().eq(0..4));
        assert_eq!((entropy.below(1), entropy.below(0)), (0, 0));
    }

    #[test]
    fn between_stays_between_and_bears_an_empty_range() {
        let entropy = Entropy::from_seed(7);
        let (low, high) = (Duration::from_millis(50), Duration::from_millis(200));
        for _ in 0..1_000 {
            let drawn = entropy.between(low, high);
            assert!((low..=high).contains(&drawn), "{drawn:?}");
        }
        assert_eq!(entropy.between(high, low), high);
    }
}
