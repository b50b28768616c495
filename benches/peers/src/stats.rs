//! Medians, paired ratios, bootstrap intervals. Pure.
//!
//! A round's figures are compared with those of the same round, so that what disturbs the machine
//! for seconds disturbs both sides. The median of these ratios stands for the whole; its interval
//! comes from resampling the rounds.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Resamples behind an interval.
const RESAMPLES: usize = 4_000;

/// A figure and where it may well lie: 95 of 100 resamples.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Interval {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Interval {
    /// Whether the two have a value in common.
    pub(crate) fn meets(self, other: Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// The middle one, or the mean of the two middle ones; 0 of none.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        count if count % 2 == 1 => sorted[half],
        _ => f64::midpoint(sorted[half - 1], sorted[half]),
    }
}

/// The median of `ours[i] / theirs[i]`, with its interval. Always the same for the same rounds.
pub(crate) fn paired_ratio(ours: &[f64], theirs: &[f64]) -> Interval {
    let ratios: Vec<f64> =
        ours.iter().zip(theirs).filter(|(_, b)| **b > 0.0).map(|(a, b)| a / b).collect();
    bootstrap(&ratios)
}

/// The median of `ours[i] - theirs[i]`, with its interval.
pub(crate) fn paired_difference(ours: &[f64], theirs: &[f64]) -> Interval {
    bootstrap(&ours.iter().zip(theirs).map(|(a, b)| a - b).collect::<Vec<_>>())
}

/// The median with its interval: the 2.5th and 97.5th percentile of the medians of resamples.
pub(crate) fn bootstrap(values: &[f64]) -> Interval {
    let middle = median(values);
    if values.is_empty() {
        return Interval { median: middle, low: middle, high: middle };
    }
    let mut chance = StdRng::seed_from_u64(0x51_0b_5e_ed);
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let draw = || values[chance.random_range(0..values.len())];
            median(&std::iter::repeat_with(draw).take(values.len()).collect::<Vec<_>>())
        })
        .collect();
    medians.sort_unstable_by(f64::total_cmp);
    let tail = RESAMPLES / 40;
    Interval { median: middle, low: medians[tail], high: medians[RESAMPLES - 1 - tail] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_in_the_middle() {
        assert_eq!(median(&[]), 0.0);
        assert_eq!(median(&[3.0]), 3.0);
        assert_eq!(median(&[9.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), 3.0);
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        // The machine was ten times slower in the second round; neither gains by it.
        let ratio = paired_ratio(&[2.0, 20.0, 2.0], &[1.0, 10.0, 1.0]);
        assert_eq!(ratio, Interval { median: 2.0, low: 2.0, high: 2.0 });
        // A round in which the other did nothing says nothing.
        assert_eq!(paired_ratio(&[2.0, 5.0], &[1.0, 0.0]).median, 2.0);
    }

    #[test]
    fn differences_are_taken_within_a_round() {
        let difference = paired_difference(&[2.0, 20.0, 3.0], &[1.0, 19.0, 2.0]);
        assert_eq!(difference, Interval { median: 1.0, low: 1.0, high: 1.0 });
    }

    #[test]
    fn an_interval_holds_its_median_and_narrows_with_the_noise() {
        let wide = bootstrap(&[0.5, 0.8, 1.0, 1.1, 1.6, 0.7, 1.2]);
        let narrow = bootstrap(&[0.99, 1.0, 1.01, 1.0, 0.99, 1.01, 1.0]);
        for interval in [wide, narrow] {
            assert!(interval.low <= interval.median && interval.median <= interval.high);
        }
        assert!(narrow.high - narrow.low < wide.high - wide.low);
        assert_eq!(bootstrap(&[0.5, 2.0, 1.0]), bootstrap(&[0.5, 2.0, 1.0]));
    }

    #[test]
    fn intervals_meet_or_do_not() {
        let interval = |low, high| Interval { median: low, low, high };
        assert!(interval(0.9, 1.1).meets(interval(1.05, 1.3)));
        assert!(interval(0.9, 1.1).meets(interval(1.0, 1.0)));
        assert!(!interval(0.9, 1.1).meets(interval(1.2, 1.3)));
    }
}
