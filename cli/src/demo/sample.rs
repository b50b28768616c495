//! Many acquisitions, one after the other, and how long they took.

use std::fmt;
use std::time::Duration;

use quorlock::Locker;

use crate::clock;
use crate::exit::Failure;
use crate::words::micros;

/// How long acquiring took, without releasing.
#[derive(Debug)]
pub(crate) struct Sample {
    sorted: Vec<Duration>,
}

impl Sample {
    pub(crate) async fn take(locker: &Locker, key: &str, count: usize) -> Result<Self, Failure> {
        let mut sorted = Vec::with_capacity(count);
        for _ in 0..count {
            let began = clock::now();
            let guard = locker.lock(key).await?;
            sorted.push(clock::now().saturating_duration_since(began));
            // Whether it was still held does not matter here.
            let _ = guard.release().await?;
        }
        sorted.sort_unstable();
        Ok(Self { sorted })
    }

    /// The duration below which `permille` of all lie.
    fn at(&self, permille: usize) -> Duration {
        let index = self.sorted.len().saturating_sub(1) * permille / 1_000;
        self.sorted.get(index).copied().unwrap_or_default()
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (best, median) = (micros(self.at(0)), micros(self.at(500)));
        write!(f, "median {median}, best {best}, 99 % within {}", micros(self.at(990)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_told_in_three_figures() {
        let sorted = (100..=300).map(Duration::from_micros).collect();
        let sample = Sample { sorted };
        assert_eq!(sample.to_string(), "median 200 µs, best 100 µs, 99 % within 298 µs");
        assert_eq!(Sample { sorted: Vec::new() }.at(500), Duration::ZERO);
    }
}
