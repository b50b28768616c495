//! The pause before the next connection attempt: decorrelated jitter.
//!
//! Each pause is drawn between the first one and three times the last one, up to a cap: clients
//! that lost a server together spread out, and throughput is back soon after the server is. The
//! scheme is from M. Brooker, "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015).
//!
//! Pure: the draw comes in as a function.

use std::time::Duration;

/// One node's schedule of attempts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    first: Duration,
    cap: Duration,
    last: Duration,
}

impl Backoff {
    pub(crate) fn new(first: Duration, cap: Duration) -> Self {
        Self { first: first.min(cap), cap, last: first.min(cap) }
    }

    /// The next pause; `between(low, high)` draws it.
    pub(crate) fn next(
        &mut self,
        between: impl FnOnce(Duration, Duration) -> Duration,
    ) -> Duration {
        self.last = between(self.first, self.last.saturating_mul(3)).min(self.cap);
        self.last
    }

    /// A connection has held for at least the first pause: the next failure starts anew.
    pub(crate) fn reset(&mut self) {
        self.last = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_millis(20);
    const CAP: Duration = Duration::from_millis(500);

    #[test]
    fn the_longest_draws_triple_up_to_the_cap() {
        let mut backoff = Backoff::new(FIRST, CAP);
        let pauses: Vec<_> = (0..5).map(|_| backoff.next(|_, high| high).as_millis()).collect();
        assert_eq!(pauses, [60, 180, 500, 500, 500]);
    }

    #[test]
    fn no_draw_is_below_the_first_and_a_reset_starts_anew() {
        let mut backoff = Backoff::new(FIRST, CAP);
        assert_eq!(backoff.next(|low, _| low), FIRST);
        backoff.next(|_, high| high);
        backoff.next(|_, high| high);
        backoff.reset();
        assert_eq!(backoff.next(|_, high| high), 3 * FIRST);
    }
}
