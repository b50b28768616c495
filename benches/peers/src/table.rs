//! The figures as tables, for the terminal and for the record alike.

use crate::budget;
use crate::contest::Runtime;
use crate::rounds::{Heat, Standing};
use crate::stats::{Interval, median, paired_ratio};

/// All tables of one number of callers.
pub(crate) fn heat(nodes: usize, heat: &Heat) -> String {
    let mut text = format!("\n## {nodes} nodes, {}\n\n", budget::callers(heat.callers));
    text += &figures(heat);
    text += "\nOurs divided by theirs, in the same round: median [95 %]. A ≈ says that the \
             interval meets that of ourselves against ourselves: not distinguishable.\n\n";
    text += &ratios(heat);
    for failure in &heat.repeated {
        text += &format!("\nA round was repeated: {failure}\n");
    }
    let rows = budget::rows(nodes, heat);
    if !rows.is_empty() {
        text += "\n";
        text += &align(&["budget", "bound", "measured", "the floor", ""], &rows);
    }
    text
}

/// What each did.
fn figures(heat: &Heat) -> String {
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
fn ratios(heat: &Heat) -> String {
    let mut rows = Vec::new();
    for name in ["ours", "ours-body"] {
        for ours in heat.standings.iter().filter(|standing| standing.name == name) {
            let again = heat.find(&format!("{name}-again"), ours.runtime);
            for theirs in &heat.standings {
                let comparable = [ours.runtime, Runtime::Thread].contains(&theirs.runtime);
                if comparable && !std::ptr::eq(ours, theirs) {
                    rows.push(against(ours, theirs, again));
                }
            }
        }
    }
    align(&["ours", "theirs", "p50", "p99", "cycles/s", "CPU per cycle"], &rows)
}

fn against(ours: &Standing, theirs: &Standing, again: Option<&Standing>) -> [String; 6] {
    let show = |figure| {
        let ratio = paired_ratio(&ours.column(figure), &theirs.column(figure));
        let chance = again.map(|again| paired_ratio(&ours.column(figure), &again.column(figure)));
        let Interval { median, low, high } = ratio;
        let mark = if chance.is_some_and(|chance| chance.meets(ratio)) { " ≈" } else { "" };
        format!("{median:.2} [{low:.2}–{high:.2}]{mark}")
    };
    [
        ours.label(),
        theirs.label(),
        show(|round| round.p50_us),
        show(|round| round.p99_us),
        show(|round| round.cycles_per_s),
        show(|round| round.cpu_us),
    ]
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
