//! The figures as tables, for the terminal and for the record alike.

use crate::contest::Runtime;
use crate::promise::Promise;
use crate::results::{Kind, Results};
use crate::rounds::{Heat, Round, Standing};
use crate::stats::{Interval, bootstrap, median, paired_ratio};
use crate::{budget, promise};

/// All tables of one number of callers; the figures go to the results too.
pub(crate) fn heat(nodes: usize, heat: &Heat, results: &mut Results) -> String {
    heat_with(nodes, heat, budget::promises(nodes, heat), results)
}

/// As [`heat`], with these promises.
pub(crate) fn heat_with(
    nodes: usize,
    heat: &Heat,
    promises: Vec<Promise>,
    results: &mut Results,
) -> String {
    let setting = budget::setting(nodes, heat.callers);
    let mut text = format!("\n## {setting}\n\n{}", figures(heat));
    text += "\nOurs divided by theirs, in the same round: median [95 %]. A ≈ says that the \
             interval meets that of ourselves against ourselves: not distinguishable.\n\n";
    text += &ratios(heat, &setting, results);
    text += &repeats(heat);
    note(heat, &setting, results);
    text += &promise::tabulate(&promises);
    results.promised(promises);
    text
}

/// The rounds that had to be repeated.
pub(crate) fn repeats(heat: &Heat) -> String {
    heat.repeated.iter().map(|failure| format!("\nA round was repeated: {failure}\n")).collect()
}

/// What each contestant did goes to the results.
pub(crate) fn note(heat: &Heat, setting: &str, results: &mut Results) {
    for standing in &heat.standings {
        for (name, figure) in FIGURES {
            let what = format!("{setting}, {}, {name}", standing.label());
            results.note(Kind::Figure, what, bootstrap(&standing.column(figure)));
        }
    }
}

type Figure = fn(&Round) -> f64;

/// The figures that have intervals, by their names.
const FIGURES: [(&str, Figure); 4] = [
    ("p50 µs", |round| round.p50_us),
    ("p99 µs", |round| round.p99_us),
    ("cycles/s", |round| round.cycles_per_s),
    ("CPU µs/cycle", |round| round.cpu_us),
];

/// What each did.
pub(crate) fn figures(heat: &Heat) -> String {
    let head = [
        "contestant",
        "p50 µs",
        "p90 µs",
        "p99 µs",
        "p99.9 µs",
        "max µs",
        "cycles/s",
        "CPU µs/cycle",
        "allocs/op",
        "calls/op",
        "left/1,000",
    ];
    let count =
        |count: Option<f64>| count.map_or_else(|| "–".to_owned(), |count| format!("{count:.2}"));
    let row = |standing: &Standing| {
        let quantile = |quantile| format!("{:.1}", standing.quantile_us(quantile));
        [
            standing.label(),
            quantile(0.5),
            quantile(0.9),
            quantile(0.99),
            quantile(0.999),
            quantile(1.0),
            format!("{:.0}", median(&standing.column(|round| round.cycles_per_s))),
            format!("{:.2}", median(&standing.column(|round| round.cpu_us))),
            count(standing.allocations),
            count(standing.calls),
            format!("{:.2}", median(&standing.column(|round| round.left))),
        ]
    };
    align(&head, &heat.standings.iter().map(row).collect::<Vec<_>>())
}

/// Ours against each other that runs where ours does, and against the threads.
fn ratios(heat: &Heat, setting: &str, results: &mut Results) -> String {
    let mut rows = Vec::new();
    for name in ["ours", "ours-body", "native-ours"] {
        for ours in heat.standings.iter().filter(|standing| standing.name == name) {
            let again = heat.find(&format!("{name}-again"), ours.runtime);
            for theirs in &heat.standings {
                let comparable = [ours.runtime, Runtime::Thread].contains(&theirs.runtime);
                if comparable && !std::ptr::eq(ours, theirs) {
                    rows.push(against(ours, theirs, again, setting, results));
                }
            }
        }
    }
    align(&["ours", "theirs", "p50", "p99", "cycles/s", "CPU per cycle"], &rows)
}

/// These of the same runtime against each other.
pub(crate) fn pairs(
    heat: &Heat,
    pairs: &[(&str, &str)],
    setting: &str,
    results: &mut Results,
) -> String {
    let mut rows = Vec::new();
    for runtime in [Runtime::Current, Runtime::Multi] {
        for (one, other) in pairs {
            if let (Some(one), Some(other)) = (heat.find(one, runtime), heat.find(other, runtime)) {
                rows.push(against(one, other, None, setting, results));
            }
        }
    }
    align(&["this", "to that", "p50", "p99", "cycles/s", "CPU per cycle"], &rows)
}

fn against(
    ours: &Standing,
    theirs: &Standing,
    again: Option<&Standing>,
    setting: &str,
    results: &mut Results,
) -> [String; 6] {
    let [p50, p99, cycles, cpu] = FIGURES.map(|(name, figure)| {
        let ratio = paired_ratio(&ours.column(figure), &theirs.column(figure));
        let chance = again.map(|again| paired_ratio(&ours.column(figure), &again.column(figure)));
        let what = format!("{setting}, {} to {}, {name}", ours.label(), theirs.label());
        results.note(Kind::Ratio, what, ratio);
        let Interval { median, low, high } = ratio;
        let mark = if chance.is_some_and(|chance| chance.meets(ratio)) { " ≈" } else { "" };
        format!("{median:.2} [{low:.2}–{high:.2}]{mark}")
    });
    [ours.label(), theirs.label(), p50, p99, cycles, cpu]
}

/// A markdown table whose columns stand below one another.
pub(crate) fn align<const N: usize>(head: &[&str; N], rows: &[[String; N]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0).max(head[column].chars().count())
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |cells: [&str; N]| {
        let cells =
            cells.iter().zip(widths).enumerate().map(|(column, (cell, width))| match column {
                0 => format!(" {cell:<width$} |"),
                _ => format!(" {cell:>width$} |"),
            });
        format!("|{}\n", cells.collect::<String>())
    };
    let rule = widths.iter().enumerate().map(|(column, width)| match column {
        0 => format!("{}|", "-".repeat(width + 2)),
        _ => format!("{}:|", "-".repeat(width + 1)),
    });
    let mut text = line(*head) + "|" + &rule.collect::<String>() + "\n";
    for row in rows {
        text += &line(std::array::from_fn(|column| row[column].as_str()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_one_another() {
        let rows = [["floor".to_owned(), "1.0".to_owned()], ["µ".to_owned(), "23.0".to_owned()]];
        let expected = "| who   |  p50 |\n|-------|-----:|\n| floor |  1.0 |\n| µ     | 23.0 |\n";
        assert_eq!(align(&["who", "p50"], &rows), expected);
    }
}
