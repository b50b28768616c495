//! Assertions about a run: `p99<1ms`, `cycles>=50000`.

use super::figures::{Figures, Metric};
use crate::duration;
use crate::exit::{Cause, Failure};
use crate::words::counted;

/// The syntax, shown for each malformed assertion.
const HINT: &str = "write p50, p90, p99, p99.9 or max with < or <= and a time, as in 'p99<1ms', or \
                    cycles with > or >= and a number, as in 'cycles>50000'";

/// One assertion about our own lock. It has to hold with every number of callers.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Assertion {
    /// As it was given.
    pub(crate) text: String,
    metric: Metric,
    /// Nanoseconds, or cycles a second.
    bound: f64,
    /// Whether the bound itself is allowed.
    inclusive: bool,
}

impl Assertion {
    /// Reads one assertion of the command line.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let text = text.trim();
        Self::read(text).ok_or_else(|| {
            Failure::new(Cause::Usage, format!("cannot read the assertion {text:?}; {HINT}"))
        })
    }

    fn read(text: &str) -> Option<Self> {
        let at = text.find(['<', '>'])?;
        let (name, rest) = text.split_at(at);
        let metric = Metric::named(name.trim_end())?;
        let (sign, bound) = rest.split_at(1);
        let (inclusive, bound) = match bound.strip_prefix('=') {
            Some(bound) => (true, bound.trim()),
            None => (false, bound.trim()),
        };
        let bound = match (metric, sign) {
            (Metric::Cycles, ">") => bound.parse::<u32>().ok().map(f64::from)?,
            (Metric::Cycles, _) | (_, ">") => return None,
            // A bare number would be seconds elsewhere; here the user may have meant another unit.
            _ if bound.ends_with(|last: char| last.is_ascii_digit()) => return None,
            _ => duration::parse(bound).ok()?.as_secs_f64() * 1e9,
        };
        Some(Self { text: text.into(), metric, bound, inclusive })
    }

    /// Whether it holds for these figures.
    pub(crate) fn holds(&self, figures: &Figures) -> bool {
        let value = self.metric.of(figures);
        let beyond =
            if self.metric == Metric::Cycles { value > self.bound } else { value < self.bound };
        beyond || (self.inclusive && value == self.bound)
    }

    /// The error line: the assertion and what was measured instead.
    pub(crate) fn refute(&self, figures: &Figures, callers: usize) -> String {
        let found = self.metric.show(figures);
        format!("{} failed: {found} with {}", self.text, counted(callers, "caller"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::figures::Sample;

    #[test]
    fn what_people_write_is_taken() {
        let cases = [
            ("p99<1ms", Metric::P99, 1e6, false),
            ("p99.9 <= 250us", Metric::P999, 250e3, true),
            ("max<2s", Metric::Max, 2e9, false),
            ("cycles>=50000", Metric::Cycles, 5e4, true),
        ];
        for (text, metric, bound, inclusive) in cases {
            let expected = Assertion { text: text.into(), metric, bound, inclusive };
            assert_eq!(Assertion::read(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_says_nothing_is_refused() {
        for text in [
            "",
            "p99",
            "p99<",
            "p99>1ms",
            "p98<1ms",
            "p99<1",
            "p99<1xs",
            "p99=1ms",
            "<1ms",
            "cycles<5",
            "cycles>x",
            "cycles>1ms",
            "p99<1ms<2ms",
            "p99<<1ms",
            "p99<-1ms",
        ] {
            let failure = Assertion::parse(text).unwrap_err();
            assert!(failure.what.contains(HINT) && failure.cause == Cause::Usage, "{text}");
        }
    }

    #[test]
    fn a_bound_is_kept_or_not() {
        let mut figures = Figures::default();
        figures.add(Sample::of(&[(100, 50); 10], 1_000_000));
        let holds = |text: &str| Assertion::parse(text).unwrap().holds(&figures);
        assert!(holds("p50<101us") && holds("max<=1ms") && holds("cycles>9999"));
        assert!(!holds("p50<99us") && !holds("cycles>10001") && !holds("cycles>10000"));
        assert!(holds("cycles>=10000"));
        let told = Assertion::parse("p50<99us").unwrap().refute(&figures, 1);
        assert_eq!(told, "p50<99us failed: 100.0 µs with 1 caller");
    }
}
