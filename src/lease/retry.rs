//! The pause between two tries: what the policy draws, within what is known.
//!
//! Pure: the draw comes in as a function.

use std::time::Duration;

use crate::options::{Policy, Retry};

/// Timers have this grain, and a pause below it would be none.
const PAUSE_MIN: Duration = Duration::from_millis(1);

/// Bounds on when a retry can succeed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known {
    /// How long the key that is in the way still lives unless it is extended. An upper bound: its
    /// holder may release it sooner.
    pub(crate) holder: Option<Duration>,
    /// How long too many nodes will refuse all clients, as in a quarantine. A lower bound.
    pub(crate) refusing: Option<Duration>,
}

/// What the policy says after `tries` tries; `between(low, high)` draws it. `None` gives up.
pub(crate) fn draw(
    retry: &Retry,
    tries: u32,
    between: impl FnOnce(Duration, Duration) -> Duration,
) -> Option<Duration> {
    if retry.tries_max.is_some_and(|most| tries >= most) {
        return None;
    }
    let doubled = |first: Duration, cap: Duration| {
        let factor = 2_u32.saturating_pow(tries.saturating_sub(1));
        first.saturating_mul(factor).min(cap)
    };
    match &retry.policy {
        Policy::FullJitter { low, high, cap } => Some(between(*low, doubled(*high, *cap))),
        Policy::Exponential { first, cap } => {
            let whole = doubled(*first, *cap);
            Some(between(whole / 2, whole))
        }
        Policy::Fixed(pause) => Some(*pause),
        Policy::Custom(pause) => pause(tries),
    }
}

/// The pause: what was drawn, but no longer than the holder's key lives. It comes after the time in
/// which the nodes refuse all clients, so that those who waited for its end do not come back
/// together. The whole is never longer than the caller still waits.
pub(crate) fn within(drawn: Duration, known: Known, left: Duration) -> Duration {
    // One more millisecond: servers expire keys by the millisecond.
    let expiry = known.holder.map_or(Duration::MAX, |holder| holder.saturating_add(PAUSE_MIN));
    let pause = drawn.max(PAUSE_MIN).min(expiry);
    known.refusing.unwrap_or_default().saturating_add(pause).min(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// The lowest and the highest pause after each of the first tries.
    fn ranges(retry: &Retry, tries: u32) -> Vec<(u128, u128)> {
        let drawn = |tries, high: bool| {
            let pick = |low, ceiling| if high { ceiling } else { low };
            draw(retry, tries, pick).unwrap().as_millis()
        };
        (1..=tries).map(|tries| (drawn(tries, false), drawn(tries, true))).collect()
    }

    #[test]
    fn the_default_draws_from_50_ms_to_a_ceiling_that_doubles_to_a_second() {
        let expected = [(50, 200), (50, 400), (50, 800), (50, 1_000), (50, 1_000)];
        assert_eq!(ranges(&Retry::default(), 5), expected);
    }

    #[test]
    fn an_exponential_pause_doubles_and_leaves_its_second_half_to_chance() {
        let retry = Retry::exponential(ms(20), ms(100));
        assert_eq!(ranges(&retry, 4), [(10, 20), (20, 40), (40, 80), (50, 100)]);
    }

    #[test]
    fn a_fixed_pause_stays_and_a_custom_one_is_asked_by_the_number_of_tries() {
        assert_eq!(ranges(&Retry::fixed(ms(7)), 3), [(7, 7), (7, 7), (7, 7)]);
        let retry = Retry::custom(|tries| (tries < 3).then(|| ms(u64::from(tries) * 10)));
        assert_eq!(ranges(&retry, 2), [(10, 10), (20, 20)]);
        assert_eq!(draw(&retry, 3, |low, _| low), None);
    }

    #[test]
    fn the_last_try_is_followed_by_none() {
        let retry = Retry::fixed(ms(7)).tries_max(3);
        let drawn = |tries| draw(&retry, tries, |low, _| low);
        assert_eq!(
            [drawn(1), drawn(2), drawn(3), drawn(4)],
            [Some(ms(7)), Some(ms(7)), None, None]
        );
    }

    #[test]
    fn after_billions_of_tries_the_pause_is_the_cap() {
        assert_eq!(draw(&Retry::default(), u32::MAX, |_, high| high), Some(ms(1_000)));
        let endless = Retry::exponential(Duration::MAX, Duration::MAX);
        assert_eq!(draw(&endless, u32::MAX, |_, high| high), Some(Duration::MAX));
    }

    #[test]
    fn neither_the_holders_time_nor_ours_is_slept_through() {
        let holder = |left| Known { holder: Some(left), ..Known::default() };
        assert_eq!(within(ms(200), holder(ms(20)), ms(500)), ms(21));
        assert_eq!(within(ms(200), holder(Duration::MAX), ms(500)), ms(200));
        assert_eq!(within(ms(200), holder(ms(900)), ms(30)), ms(30));
    }

    #[test]
    fn nodes_that_refuse_everybody_are_not_asked_before_they_may_answer() {
        let refusing = |left| Known { refusing: Some(left), ..Known::default() };
        assert_eq!(within(ms(200), refusing(ms(300)), ms(900)), ms(500), "and not all together");
        assert_eq!(within(ms(200), refusing(ms(300)), ms(100)), ms(100), "our time ends before");
        assert_eq!(within(ms(200), refusing(Duration::MAX), Duration::MAX), Duration::MAX);
    }

    #[test]
    fn a_pause_is_never_none() {
        assert_eq!(within(Duration::ZERO, Known::default(), ms(500)), PAUSE_MIN);
    }
}
