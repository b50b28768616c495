//! The retry policy.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;

/// When to try again, and how often.
///
/// A policy says how long to pause after each try that failed. It does not limit the caller's time:
/// [`wait`](crate::LockRequest::wait) ends the tries whatever the policy says. No pause is longer
/// than the holder's key still lives, where that is known.
///
/// ```
/// # fn example() -> Result<(), quorlock::Error> {
/// use std::time::Duration;
/// use quorlock::{Locker, Retry};
///
/// let policy = Retry::exponential(Duration::from_millis(20), Duration::from_secs(2));
/// let locker = Locker::single("redis://localhost")?.retry(policy.tries_max(8)).build()?;
/// # Ok(()) }
/// # example().unwrap();
/// ```
///
/// *Shorter pauses:* a free lock is noticed sooner, and each waiter costs every node a command that
/// much oftener. *Longer:* the lock stays free.
#[derive(Clone, Debug)]
#[must_use = "a policy does nothing until it is given to a locker or a request"]
pub struct Retry {
    pub(crate) policy: Policy,
    /// How many tries in all; `None` is as many as the time allows.
    pub(crate) tries_max: Option<u32>,
}

/// How the pauses are computed.
#[derive(Clone)]
pub(crate) enum Policy {
    FullJitter { low: Duration, high: Duration, cap: Duration },
    Exponential { first: Duration, cap: Duration },
    Fixed(Duration),
    Custom(Custom),
}

/// A custom policy: from the number of failed tries to the pause before the next one.
type Custom = Arc<dyn Fn(u32) -> Option<Duration> + Send + Sync>;

impl Default for Retry {
    /// Between 50 ms and 200 ms, doubling to 1 s: see [`full_jitter`](Self::full_jitter).
    fn default() -> Self {
        let ms = Duration::from_millis;
        Self::full_jitter(ms(50), ms(200), ms(1_000))
    }
}

impl Retry {
    /// Each pause is drawn between `low` and a ceiling, so that callers refused together do not
    /// retry together. The ceiling is `high` at first, and doubles with each try up to `cap`.
    pub fn full_jitter(low: Duration, high: Duration, cap: Duration) -> Self {
        Self::of(Policy::FullJitter { low, high, cap })
    }

    /// `first` at first, doubling with each try up to `cap`. The second half of each pause is
    /// random: no two tries come at once, and none before half of it.
    pub fn exponential(first: Duration, cap: Duration) -> Self {
        Self::of(Policy::Exponential { first, cap })
    }

    /// Always the same pause. Callers refused together retry together, and are refused together
    /// again: for one waiter, or for tests.
    pub fn fixed(pause: Duration) -> Self {
        Self::of(Policy::Fixed(pause))
    }

    /// Your own: is told how many tries have failed, from 1, and says how long to pause before the
    /// next; `None` gives up. It must not block. A pause below 1 ms counts as 1 ms.
    pub fn custom(pause: impl Fn(u32) -> Option<Duration> + Send + Sync + 'static) -> Self {
        Self::of(Policy::Custom(Arc::new(pause)))
    }

    /// Gives up after so many tries in all, the first one counted, if the caller's time has not run
    /// out before. Default: no limit.
    pub fn tries_max(mut self, tries: u32) -> Self {
        self.tries_max = Some(tries);
        self
    }

    fn of(policy: Policy) -> Self {
        Self { policy, tries_max: None }
    }

    /// Whether it says when to try, and neither how often nor by a function of its own.
    pub(crate) fn is_open_ended(&self) -> bool {
        self.tries_max.is_none() && !matches!(self.policy, Policy::Custom(_))
    }

    /// Refuses a policy that would try without end, or contradicts itself.
    pub(crate) fn check(&self) -> Result<(), Error> {
        const STORM: &str = "the pause between two tries is 0; that would ask the nodes without \
                             end. Choose some milliseconds";
        if self.tries_max == Some(0) {
            return Err(Error::misuse("tries_max is 0; the first try counts, so at least 1"));
        }
        let (pause, cap) = match self.policy {
            Policy::FullJitter { low, high, .. } if low > high => {
                return Err(Error::misuse(format!(
                    "the pause between two tries is drawn between {low:?} and {high:?}, which is \
                     less; give the lower one first"
                )));
            }
            Policy::FullJitter { high, cap, .. } => (high, cap),
            Policy::Exponential { first, cap } => (first, cap),
            Policy::Fixed(pause) => (pause, pause),
            Policy::Custom(_) => return Ok(()),
        };
        if pause.is_zero() {
            return Err(Error::misuse(STORM));
        }
        if cap < pause {
            return Err(Error::misuse(format!(
                "the pause between two tries starts at {pause:?}, above its cap of {cap:?}"
            )));
        }
        Ok(())
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FullJitter { low, high, cap } => write!(f, "{low:?} to {high:?}, up to {cap:?}"),
            Self::Exponential { first, cap } => write!(f, "{first:?}, doubling up to {cap:?}"),
            Self::Fixed(pause) => write!(f, "{pause:?}"),
            Self::Custom(_) => f.write_str("custom"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_a_reason() {
        let zero = Duration::ZERO;
        let cases = [
            (Retry::fixed(zero), "without end"),
            (Retry::exponential(zero, ms(5)), "without end"),
            (Retry::full_jitter(zero, zero, ms(5)), "without end"),
            (Retry::full_jitter(ms(9), ms(5), ms(50)), "give the lower one first"),
            (Retry::full_jitter(ms(1), ms(5), ms(4)), "above its cap of 4ms"),
            (Retry::exponential(ms(5), zero), "above its cap of 0ns"),
            (Retry::default().tries_max(0), "at least 1"),
        ];
        for (retry, words) in cases {
            let error = retry.check().unwrap_err();
            assert!(error.is_misuse());
            assert!(error.to_string().contains(words), "{retry:?}: {error}");
        }
    }

    #[test]
    fn what_can_be_meant_is_taken() {
        let policies = [
            Retry::default(),
            Retry::full_jitter(Duration::ZERO, ms(1), ms(1)),
            Retry::exponential(ms(5), ms(5)).tries_max(1),
            Retry::fixed(ms(1)),
            Retry::custom(|_| None),
        ];
        for retry in policies {
            assert!(retry.check().is_ok(), "{retry:?}");
        }
    }
}
