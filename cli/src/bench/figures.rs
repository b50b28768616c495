//! Samples of rounds, and the percentiles, rates and ratios made from them.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::exit::Failure;
use crate::latency::histogram;
use crate::words;

/// The results of one round.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    /// Of each cycle: acquiring and releasing, in nanoseconds.
    pub(crate) cycles_ns: Vec<(u64, u64)>,
    pub(crate) elapsed: Duration,
    pub(crate) errors: u64,
    /// The first of the errors.
    pub(crate) trouble: Option<Failure>,
    /// Starts of an open loop that never happened: no caller was free before the end.
    pub(crate) missed: u64,
}

#[cfg(test)]
impl Sample {
    /// Cycles in microseconds, in nanoseconds of time.
    pub(crate) fn of(cycles_us: &[(u64, u64)], elapsed_ns: u64) -> Self {
        let cycles_ns = cycles_us.iter().map(|(a, r)| (a * 1_000, r * 1_000)).collect();
        let elapsed = Duration::from_nanos(elapsed_ns);
        Self { cycles_ns, elapsed, ..Self::default() }
    }
}

/// The results of all rounds with one number of callers.
#[derive(Debug)]
pub(crate) struct Figures {
    acquire: Histogram<u64>,
    release: Histogram<u64>,
    pub(crate) elapsed: Duration,
    pub(crate) errors: u64,
    pub(crate) trouble: Option<Failure>,
    pub(crate) missed: u64,
}

impl Default for Figures {
    fn default() -> Self {
        Self {
            acquire: histogram(),
            release: histogram(),
            elapsed: Duration::ZERO,
            errors: 0,
            trouble: None,
            missed: 0,
        }
    }
}

impl Figures {
    pub(crate) fn add(&mut self, sample: Sample) {
        for (acquire, release) in sample.cycles_ns {
            self.acquire.saturating_record(acquire);
            self.release.saturating_record(release);
        }
        self.elapsed += sample.elapsed;
        self.errors += sample.errors;
        self.missed += sample.missed;
        self.trouble = self.trouble.take().or(sample.trouble);
    }

    /// Whole cycles: an acquisition and its release.
    pub(crate) fn cycles(&self) -> u64 {
        self.acquire.len()
    }
}

/// A figure that is shown; most of them can be asserted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Metric {
    P50,
    P90,
    P99,
    P999,
    Max,
    ReleaseP50,
    ReleaseP99,
    Cycles,
}

impl Metric {
    pub(crate) const ALL: [Self; 8] = [
        Self::P50,
        Self::P90,
        Self::P99,
        Self::P999,
        Self::Max,
        Self::ReleaseP50,
        Self::ReleaseP99,
        Self::Cycles,
    ];

    /// The percentiles of acquiring, in order.
    pub(crate) const ACQUIRE: [Self; 5] = [Self::P50, Self::P90, Self::P99, Self::P999, Self::Max];

    /// The metric with this name, if it can be asserted.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ACQUIRE.into_iter().chain([Self::Cycles]).find(|metric| metric.name() == name)
    }

    /// In an assertion and in the chart.
    pub(crate) const fn name(self) -> &'static str {
        self.words().0
    }

    /// In the table.
    pub(crate) const fn title(self) -> &'static str {
        self.words().1
    }

    /// In the JSON object, without a unit.
    pub(crate) const fn stem(self) -> &'static str {
        self.words().2
    }

    /// Name, title and stem.
    const fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::P50 => ("p50", "acquire p50", "acquire_p50"),
            Self::P90 => ("p90", "acquire p90", "acquire_p90"),
            Self::P99 => ("p99", "acquire p99", "acquire_p99"),
            Self::P999 => ("p99.9", "acquire p99.9", "acquire_p99_9"),
            Self::Max => ("max", "acquire max", "acquire_max"),
            Self::ReleaseP50 => ("p50", "release p50", "release_p50"),
            Self::ReleaseP99 => ("p99", "release p99", "release_p99"),
            Self::Cycles => ("cycles", "cycles/s", "cycles_per_second"),
        }
    }

    /// In the JSON object.
    pub(crate) fn member(self) -> String {
        match self {
            Self::Cycles => self.stem().into(),
            _ => format!("{}_ns", self.stem()),
        }
    }

    /// Nanoseconds, or cycles a second.
    pub(crate) fn of(self, figures: &Figures) -> f64 {
        let acquire = |quantile| figures.acquire.value_at_quantile(quantile) as f64;
        let release = |quantile| figures.release.value_at_quantile(quantile) as f64;
        match self {
            Self::P50 => acquire(0.5),
            Self::P90 => acquire(0.9),
            Self::P99 => acquire(0.99),
            Self::P999 => acquire(0.999),
            Self::Max => figures.acquire.max() as f64,
            Self::ReleaseP50 => release(0.5),
            Self::ReleaseP99 => release(0.99),
            // Avoids a division by zero: without elapsed time there are no cycles either.
            Self::Cycles => {
                figures.cycles() as f64 / figures.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
            }
        }
    }

    /// As people read it, with its unit.
    pub(crate) fn show(self, figures: &Figures) -> String {
        let value = self.of(figures);
        match self {
            Self::Cycles => words::grouped(value.round() as u64),
            _ => {
                let tenths = (value / 100.0).round() as u64;
                format!("{}.{} µs", words::grouped(tenths / 10), tenths % 10)
            }
        }
    }

    /// Our figure divided by the floor's; `None` if one of them is zero.
    pub(crate) fn ratio(self, ours: &Figures, floor: &Figures) -> Option<f64> {
        let (ours, floor) = (self.of(ours), self.of(floor));
        (ours > 0.0 && floor > 0.0).then(|| ours / floor)
    }
}

/// The figures for one number of callers.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) callers: usize,
    pub(crate) ours: Figures,
    /// `None` if the floor cannot be measured.
    pub(crate) floor: Option<Figures>,
}

/// All that was measured, and on which nodes.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) nodes: Vec<String>,
    pub(crate) rows: Vec<Row>,
    /// Why the floor was not measured.
    pub(crate) no_floor: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_add_up() {
        let mut figures = Figures::default();
        figures.add(Sample::of(&[(100, 50); 98], 5_000_000));
        figures.add(Sample { errors: 2, missed: 3, ..Sample::of(&[(9_000, 60); 2], 5_000_000) });
        assert_eq!((figures.cycles(), figures.errors, figures.missed), (100, 2, 3));
        let shown = |metric: Metric| metric.show(&figures);
        assert_eq!(shown(Metric::P50), "100.0 µs");
        assert_eq!(shown(Metric::ReleaseP50), "50.0 µs");
        assert_eq!(shown(Metric::Cycles), "10,000");
        assert!(shown(Metric::Max).starts_with("9,00"), "{}", shown(Metric::Max));
        assert!(Metric::P99.of(&figures) > 8e6 && Metric::P90.of(&figures) < 2e5);
    }

    #[test]
    fn a_ratio_needs_two_figures() {
        let (mut ours, mut floor) = (Figures::default(), Figures::default());
        ours.add(Sample::of(&[(200, 50)], 1_000));
        assert_eq!(Metric::P50.ratio(&ours, &floor), None);
        floor.add(Sample::of(&[(100, 50)], 1_000));
        let ratio = Metric::P50.ratio(&ours, &floor).unwrap();
        assert!((ratio - 2.0).abs() < 0.01, "{ratio}");
    }
}
