//! What was measured, for people.

use std::fmt::Write;

use super::figures::{Figures, Metric, Outcome, Row, callers};
use crate::args::BenchArgs;
use crate::words::{Humane, grouped};

const NAME_WIDTH: usize = 16;
const FIGURE_WIDTH: usize = 14;

/// A table for each number of callers.
pub(crate) fn text(args: &BenchArgs, outcome: &Outcome) -> String {
    let mut text = format!("{}\n", heading(args, outcome));
    if let Some(why) = &outcome.no_floor {
        line(&mut text, format_args!("no floor: {why}"));
    }
    for row in &outcome.rows {
        line(&mut text, "");
        table(&mut text, row);
    }
    text
}

/// `5 nodes, 3 needed; current runtime; closed loop; 10.0 s`.
fn heading(args: &BenchArgs, outcome: &Outcome) -> String {
    let nodes = outcome.nodes.len();
    let plural = if nodes == 1 { "" } else { "s" };
    let kind = match args.rate {
        Some(rate) => format!("open loop, {} cycles/s", grouped(rate.get())),
        None => "closed loop".into(),
    };
    let (needed, runtime) = (nodes / 2 + 1, args.runtime.name());
    let time = Humane(args.duration);
    format!("{nodes} node{plural}, {needed} needed; {runtime} runtime; {kind}; {time}")
}

fn table(text: &mut String, row: &Row) {
    let title = callers(row.callers);
    let heads = if row.floor.is_some() { ["ours", "floor", "ratio"] } else { ["ours", "", ""] };
    columns(text, &title, heads);
    for metric in Metric::ALL {
        let floor = row.floor.as_ref();
        let ratio = floor.and_then(|floor| metric.ratio(&row.ours, floor));
        let ratio = ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
        let floor = floor.map(|floor| metric.show(floor)).unwrap_or_default();
        columns(text, &format!("  {}", metric.title()), [&metric.show(&row.ours), &floor, &ratio]);
    }
    let counted = |count: fn(&Figures) -> u64| {
        let floor = row.floor.as_ref().map(|floor| grouped(count(floor))).unwrap_or_default();
        (grouped(count(&row.ours)), floor)
    };
    let (ours, floor) = counted(|figures| figures.errors);
    columns(text, "  errors", [&ours, &floor, ""]);
    if let Some(trouble) = &row.ours.trouble {
        line(text, format_args!("    first: {}", trouble.what));
    }
    let (ours, floor) = counted(|figures| figures.missed);
    if row.ours.missed + row.floor.as_ref().map_or(0, |floor| floor.missed) > 0 {
        columns(text, "  never started", [&ours, &floor, ""]);
        line(text, "    the nodes do not keep up with this rate, and the latencies flatter");
    }
}

fn columns(text: &mut String, name: &str, [ours, floor, ratio]: [&str; 3]) {
    let (width, ratio_width) = (FIGURE_WIDTH, FIGURE_WIDTH / 2);
    let columns = format!("{name:NAME_WIDTH$}{ours:>width$}{floor:>width$}{ratio:>ratio_width$}");
    line(text, columns.trim_end());
}

fn line(text: &mut String, what: impl std::fmt::Display) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{what}");
}
