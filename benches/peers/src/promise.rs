//! One promise and what became of it. Pure.

use crate::stats::Interval;
use crate::table;

/// A bound, and what was measured.
#[derive(Clone, Debug)]
pub(crate) struct Promise {
    pub(crate) what: String,
    /// What the figures count: nothing for a ratio, or ` µs`.
    pub(crate) unit: &'static str,
    pub(crate) bound: f64,
    pub(crate) more_is_better: bool,
    pub(crate) measured: Interval,
    /// What it would be for bare sockets: a bound beyond that is out of reach.
    pub(crate) floor: Option<f64>,
}

impl Promise {
    /// What, the bound, the figure, what it would be for the floor, the word.
    fn row(&self) -> [String; 5] {
        let Interval { median, low, high } = self.measured;
        let sign = if self.more_is_better { "≥" } else { "≤" };
        let measured = match low < high {
            true => format!("{median:.2} [{low:.2}–{high:.2}]"),
            false => format!("{median:.2}"),
        };
        [
            self.what.clone(),
            format!("{sign} {:.2}{}", self.bound, self.unit),
            measured,
            self.floor.map_or_else(|| "–".to_owned(), |floor| format!("{floor:.2}")),
            self.verdict().to_owned(),
        ]
    }

    /// Whether the median keeps the bound; and whether the interval leaves that open.
    fn verdict(&self) -> &'static str {
        let Self { measured, bound, .. } = self;
        let open = measured.low <= *bound && *bound <= measured.high;
        let exact = measured.low >= measured.high;
        match (self.kept(), open && !exact) {
            (true, false) => "met",
            (true, true) => "met; the interval holds the bound",
            (false, true) => "not met; the interval holds the bound",
            (false, false) => "**not met**",
        }
    }

    /// Whether the median keeps the bound.
    pub(crate) fn kept(&self) -> bool {
        let median = self.measured.median;
        if self.more_is_better { median >= self.bound } else { median <= self.bound }
    }
}

/// Promises as a table, with an empty line above; nothing of none.
pub(crate) fn tabulate(promises: &[Promise]) -> String {
    if promises.is_empty() {
        return String::new();
    }
    let rows: Vec<[String; 5]> = promises.iter().map(Promise::row).collect();
    format!("\n{}", table::align(&["budget", "bound", "measured", "the floor", ""], &rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_kept_by_the_median() {
        let verdict = |median, low, high, bound, more_is_better| {
            let measured = Interval { median, low, high };
            let what = String::new();
            Promise { what, unit: "", bound, more_is_better, measured, floor: None }.verdict()
        };
        assert_eq!(verdict(1.0, 0.9, 1.05, 1.1, false), "met");
        assert_eq!(verdict(1.0, 0.9, 1.2, 1.1, false), "met; the interval holds the bound");
        assert_eq!(verdict(1.3, 1.2, 1.4, 1.1, false), "**not met**");
        assert_eq!(verdict(2.0, 1.8, 2.1, 1.6, true), "met");
        assert_eq!(verdict(1.5, 1.4, 1.7, 1.6, true), "not met; the interval holds the bound");
        assert_eq!(verdict(0.0, 0.0, 0.0, 0.0, false), "met");
    }
}
