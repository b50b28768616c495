//! The results as a table.

use std::fmt::{self, Write};

use super::figures::{Figures, Metric, Outcome, Row};
use crate::args::BenchArgs;
use crate::nodes::majority;
use crate::words::{Humane, counted, grouped};

const NAME_WIDTH: usize = 16;
const FIGURE_WIDTH: usize = 14;

/// A table for each number of callers.
pub(crate) fn text(args: &BenchArgs, outcome: &Outcome) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = show(&mut text, args, outcome);
    text
}

fn show(text: &mut String, args: &BenchArgs, outcome: &Outcome) -> fmt::Result {
    writeln!(text, "{}", heading(args, outcome))?;
    if let Some(why) = &outcome.no_floor {
        writeln!(text, "no floor: {why}")?;
    }
    for row in &outcome.rows {
        writeln!(text)?;
        table(text, row)?;
    }
    Ok(())
}

/// `5 nodes, 3 needed; current runtime; closed loop; 10.0 s`.
fn heading(args: &BenchArgs, outcome: &Outcome) -> String {
    let nodes = outcome.nodes.len();
    let kind = match args.rate {
        Some(rate) => format!("open loop, {} cycles/s", grouped(rate.get())),
        None => "closed loop".into(),
    };
    let (needed, runtime, time) = (majority(nodes), args.runtime.name(), Humane(args.duration));
    let nodes = counted(nodes, "node");
    format!("{nodes}, {needed} needed; {runtime} runtime; {kind}; {time}")
}

fn table(text: &mut String, row: &Row) -> fmt::Result {
    let title = counted(row.callers, "caller");
    let heads = if row.floor.is_some() { ["ours", "floor", "ratio"] } else { ["ours", "", ""] };
    columns(text, &title, heads)?;
    for metric in Metric::ALL {
        let floor = row.floor.as_ref();
        let ratio = floor.and_then(|floor| metric.ratio(&row.ours, floor));
        let ratio = ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
        let floor = floor.map(|floor| metric.show(floor)).unwrap_or_default();
        columns(text, &format!("  {}", metric.title()), [&metric.show(&row.ours), &floor, &ratio])?;
    }
    let both = |count: fn(&Figures) -> u64| {
        let floor = row.floor.as_ref().map(|floor| grouped(count(floor))).unwrap_or_default();
        (grouped(count(&row.ours)), floor)
    };
    let (ours, floor) = both(|figures| figures.errors);
    columns(text, "  errors", [&ours, &floor, ""])?;
    if let Some(trouble) = &row.ours.trouble {
        writeln!(text, "    first: {}", trouble.what)?;
    }
    let (ours, floor) = both(|figures| figures.missed);
    if row.ours.missed + row.floor.as_ref().map_or(0, |floor| floor.missed) > 0 {
        columns(text, "  never started", [&ours, &floor, ""])?;
        writeln!(
            text,
            "    the nodes do not keep up with this rate: the latencies look better than they are"
        )?;
    }
    Ok(())
}

fn columns(text: &mut String, name: &str, [ours, floor, ratio]: [&str; 3]) -> fmt::Result {
    let (width, ratio_width) = (FIGURE_WIDTH, FIGURE_WIDTH / 2);
    let columns = format!("{name:NAME_WIDTH$}{ours:>width$}{floor:>width$}{ratio:>ratio_width$}");
    writeln!(text, "{}", columns.trim_end())
}
