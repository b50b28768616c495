//! Whether two records agree within their intervals. Pure.

use crate::results::{Kind, Line, Results};
use crate::stats::Interval;
use crate::table;

/// Of so many comparisons one may miss by chance: intervals of 95 in 100 leave out five.
const MISSES_IN: usize = 20;

/// What comes of comparing.
pub(crate) struct Agreement {
    pub(crate) text: String,
    pub(crate) agrees: bool,
}

/// Compares ratios and promises one by one, and tells how far the bare figures moved.
pub(crate) fn compare(old: &Results, new: &Results) -> Agreement {
    let mut rows = Vec::new();
    let mut misses = 0;
    let mut shifts = Vec::new();
    for line in &old.lines {
        let same = |it: &&Line| it.kind == line.kind && it.what == line.what;
        let Some(other) = new.lines.iter().find(same) else { continue };
        if line.kind == Kind::Figure {
            shifts.extend(shift(line.interval, other.interval));
            continue;
        }
        let meets = line.interval.meets(other.interval);
        misses += usize::from(!meets);
        let word = if meets { "yes" } else { "**no**" };
        rows.push([line.what.clone(), show(line.interval), show(other.interval), word.to_owned()]);
    }
    let agrees = !rows.is_empty() && misses * MISSES_IN <= rows.len();
    let mut text = table::align(&["what", "old", "new", "overlap"], &rows);
    text += &format!(
        "\n{} of {} intervals overlap: the records {}.\n",
        rows.len() - misses,
        rows.len(),
        if agrees { "agree" } else { "do not agree" },
    );
    if !shifts.is_empty() {
        let Interval { median, low, high } = crate::stats::bootstrap(&shifts);
        text += &format!(
            "The machine: new figures are {median:.2} [{low:.2}–{high:.2}] times the old ones \
             (median of {}); ratios within a run do not move with it.\n",
            shifts.len()
        );
    }
    Agreement { text, agrees }
}

fn shift(old: Interval, new: Interval) -> Option<f64> {
    (old.median > 0.0 && new.median > 0.0).then(|| new.median / old.median)
}

fn show(Interval { median, low, high }: Interval) -> String {
    format!("{median:.2} [{low:.2}–{high:.2}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(ratios: impl IntoIterator<Item = (usize, f64)>) -> Results {
        let mut results = Results::default();
        for (number, low) in ratios {
            let interval = Interval { median: low + 0.05, low, high: low + 0.1 };
            results.note(Kind::Ratio, format!("ratio {number}"), interval);
        }
        results
    }

    #[test]
    fn one_miss_in_twenty_is_chance_and_two_are_not() {
        let old = results((0..20).map(|number| (number, 1.0)));
        let moved = |count| results((0..20).map(|it| (it, if it < count { 2.0 } else { 1.05 })));
        assert!(compare(&old, &moved(0)).agrees);
        assert!(compare(&old, &moved(1)).agrees);
        assert!(!compare(&old, &moved(2)).agrees);
        assert!(compare(&old, &moved(2)).text.contains("18 of 20 intervals overlap"));
    }

    #[test]
    fn records_with_nothing_in_common_do_not_agree() {
        assert!(!compare(&results([(1, 1.0)]), &results([(2, 1.0)])).agrees);
    }

    #[test]
    fn figures_are_no_disagreement() {
        let mut old = results([(1, 1.0)]);
        let mut new = results([(1, 1.0)]);
        let exactly = |value| Interval { median: value, low: value, high: value };
        old.note(Kind::Figure, "p50".to_owned(), exactly(1.0));
        new.note(Kind::Figure, "p50".to_owned(), exactly(2.0));
        let agreement = compare(&old, &new);
        assert!(agreement.agrees && agreement.text.contains("2.00 [2.00–2.00] times"));
    }
}
