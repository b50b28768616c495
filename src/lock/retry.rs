//! The pause between two tries.
//!
//! Full jitter: drawn between a floor and a ceiling, so that clients that were refused together do
//! not come back together; the ceiling doubles up to a cap. Never longer than the holder's key
//! lives, when that is known, nor than the caller wants to wait.

use std::time::Duration;

use crate::options::RetryOptions;

/// One caller's schedule of tries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retry {
    options: RetryOptions,
    ceiling: Duration,
}

impl Retry {
    pub(crate) fn new(options: RetryOptions) -> Self {
        Self { options, ceiling: options.high }
    }

    /// The next pause; `between(low, high)` draws it. `holder` is how long the key that is in the
    /// way still lives, `left` how long the caller still waits.
    pub(crate) fn next(
        &mut self,
        holder: Option<Duration>,
        left: Duration,
        between: impl FnOnce(Duration, Duration) -> Duration,
    ) -> Duration {
        let drawn = between(self.options.low, self.ceiling);
        self.ceiling = self.ceiling.saturating_mul(2).min(self.options.cap);
        // One more millisecond: servers expire keys by the millisecond.
        let expiry = holder.map_or(Duration::MAX, |left| left + Duration::from_millis(1));
        drawn.min(expiry).min(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_ceiling_doubles_to_the_cap() {
        let mut retry = Retry::new(RetryOptions { low: ms(50), high: ms(200), cap: ms(1_000) });
        let draws: Vec<_> =
            (0..5).map(|_| retry.next(None, Duration::MAX, |_, high| high)).collect();
        assert_eq!(draws, [ms(200), ms(400), ms(800), ms(1_000), ms(1_000)]);
    }

    #[test]
    fn neither_the_holders_time_nor_ours_is_slept_through() {
        let mut retry = Retry::new(RetryOptions { low: ms(50), high: ms(200), cap: ms(1_000) });
        assert_eq!(retry.next(Some(ms(20)), ms(500), |_, high| high), ms(21));
        assert_eq!(retry.next(Some(ms(900)), ms(30), |_, high| high), ms(30));
    }
}
