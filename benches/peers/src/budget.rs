//! What was promised of the figures, and whether they keep it.

use crate::contest::Runtime::{self, Current, Multi, Thread};
use crate::rounds::{Heat, Round, Standing};
use crate::stats::{Interval, median, paired_ratio};

/// One promise: ours against the best of some others, as a paired ratio.
struct Budget {
    nodes: usize,
    callers: usize,
    ours: &'static str,
    runtime: Runtime,
    /// By the beginnings of their names.
    others: &'static str,
    figure: Figure,
    bound: f64,
}

/// What is compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Figure {
    P50,
    P99,
    Cycles,
    Cpu,
}

impl Figure {
    fn of(self) -> fn(&Round) -> f64 {
        match self {
            Self::P50 => |round| round.p50_us,
            Self::P99 => |round| round.p99_us,
            Self::Cycles => |round| round.cycles_per_s,
            Self::Cpu => |round| round.cpu_us,
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::P50 => "acquire p50",
            Self::P99 => "acquire p99",
            Self::Cycles => "cycles/s",
            Self::Cpu => "client CPU per cycle",
        }
    }

    /// Of cycles there should be many, of all else little.
    fn more_is_better(self) -> bool {
        self == Self::Cycles
    }
}

/// One node and five: the callers, whose figure, against whom, how much.
const BUDGETS: [Budget; 23] = [
    five(1, "ours", Current, "floor/", Figure::P50, 1.10),
    five(1, "ours", Multi, "floor/", Figure::P50, 1.10),
    five(1, "ours", Current, "floor/", Figure::P99, 1.25),
    five(1, "ours", Multi, "floor/", Figure::P99, 1.25),
    five(1, "ours", Current, "redis-all", Figure::P50, 0.65),
    five(1, "ours", Multi, "redis-all", Figure::P50, 0.65),
    five(1, "ours", Current, "redis-quorum", Figure::P50, 0.90),
    five(1, "ours", Multi, "redis-quorum", Figure::P50, 0.90),
    five(1, "ours-body", Multi, "floor/", Figure::P50, 1.60),
    five(64, "ours", Current, "redis", Figure::Cycles, 1.6),
    five(64, "ours", Multi, "redis", Figure::Cycles, 2.2),
    five(64, "ours", Current, "redis", Figure::Cpu, 0.3),
    five(64, "ours", Multi, "redis", Figure::Cpu, 0.2),
    five(64, "ours", Current, "rslock", Figure::Cycles, 2.2),
    five(64, "ours", Multi, "rslock", Figure::Cycles, 2.2),
    five(512, "ours", Current, "redis", Figure::Cycles, 2.2),
    five(512, "ours", Multi, "redis", Figure::Cycles, 2.8),
    five(512, "ours", Current, "rslock", Figure::Cycles, 3.5),
    five(512, "ours", Multi, "rslock", Figure::Cycles, 3.5),
    one(512, Current, "floor-all/", 0.8),
    one(512, Multi, "floor-all/", 0.8),
    one(512, Current, "redis", 1.5),
    one(512, Multi, "redis", 1.5),
];

const fn five(
    callers: usize,
    ours: &'static str,
    runtime: Runtime,
    others: &'static str,
    figure: Figure,
    bound: f64,
) -> Budget {
    Budget { nodes: 5, callers, ours, runtime, others, figure, bound }
}

const fn one(callers: usize, runtime: Runtime, others: &'static str, bound: f64) -> Budget {
    let (nodes, ours, figure) = (1, "ours", Figure::Cycles);
    Budget { nodes, callers, ours, runtime, others, figure, bound }
}

/// The promises that these figures can answer, each in a row: what, the bound, the
/// ratio, what it would be for the floor, the word.
pub(crate) fn rows(nodes: usize, heat: &Heat) -> Vec<[String; 5]> {
    let due = BUDGETS.iter().filter(|it| it.nodes == nodes && it.callers == heat.callers);
    let mut rows: Vec<[String; 5]> = due.filter_map(|budget| budget.row(heat)).collect();
    if nodes == 5 && heat.callers == 1 {
        rows.extend(counted(heat));
    }
    rows
}

impl Budget {
    fn row(&self, heat: &Heat) -> Option<[String; 5]> {
        let ours = heat.find(self.ours, self.runtime)?;
        let other = self.best_other(heat)?;
        let figure = self.figure.of();
        let ratio = paired_ratio(&ours.column(figure), &other.column(figure));
        let Interval { median, low, high } = ratio;
        // What bare sockets make of the same comparison: a bound beyond it is out of reach.
        let floor = heat.find("floor", Thread).filter(|floor| !std::ptr::eq(*floor, other));
        let floor = floor.map(|it| paired_ratio(&it.column(figure), &other.column(figure)).median);
        let more = self.figure.more_is_better();
        let sign = if more { "≥" } else { "≤" };
        Some([
            format!(
                "{}, {}, {} against {}",
                callers(heat.callers),
                ours.label(),
                self.figure.label(),
                other.label()
            ),
            format!("{sign} {:.2}", self.bound),
            format!("{median:.2} [{low:.2}–{high:.2}]"),
            floor.map_or_else(|| "–".to_owned(), |floor| format!("{floor:.2}")),
            verdict(ratio, self.bound, more).to_owned(),
        ])
    }

    /// The best of the others, on the same runtime or on none.
    fn best_other<'a>(&self, heat: &'a Heat) -> Option<&'a Standing> {
        let comparable = |other: &&Standing| {
            other.label().starts_with(self.others)
                && [self.runtime, Thread].contains(&other.runtime)
        };
        let middle = |other: &Standing| median(&other.column(self.figure.of()));
        let others = heat.standings.iter().filter(comparable);
        others.max_by(|a, b| {
            let order = middle(a).total_cmp(&middle(b));
            if self.figure.more_is_better() { order } else { order.reverse() }
        })
    }
}

/// Whether a ratio keeps its bound, by its median; and whether its interval leaves that open.
fn verdict(ratio: Interval, bound: f64, more_is_better: bool) -> &'static str {
    let open = ratio.low <= bound && bound <= ratio.high;
    let kept = if more_is_better { ratio.median >= bound } else { ratio.median <= bound };
    match (kept, open) {
        (true, false) => "met",
        (true, true) => "met; the interval holds the bound",
        (false, true) => "not met; the interval holds the bound",
        (false, false) => "**not met**",
    }
}

/// So many callers, in words.
pub(crate) fn callers(count: usize) -> String {
    if count == 1 { "1 caller".to_owned() } else { format!("{count} callers") }
}

/// The promises about counts.
fn counted(heat: &Heat) -> Vec<[String; 5]> {
    let mut rows = Vec::new();
    let floor = heat.find("floor", Thread).and_then(|floor| floor.calls);
    let floor = floor.map_or_else(|| "–".to_owned(), |calls| format!("{calls:.2}"));
    for (runtime, bound) in [(Current, 11.5), (Multi, 12.0)] {
        let Some(ours) = heat.find("ours", runtime) else { continue };
        let mut row = |what: &str, count: Option<f64>, bound: f64| {
            let Some(count) = count else { return };
            rows.push([
                format!("1 caller, {}, {what} per operation", ours.label()),
                format!("≤ {bound:.2}"),
                format!("{count:.2}"),
                if what == "system calls" { floor.clone() } else { "–".to_owned() },
                if count <= bound { "met" } else { "**not met**" }.to_owned(),
            ]);
        };
        row("system calls", ours.calls, bound);
        // Less than one in a hundred operations comes from the program around them.
        row("allocations", ours.allocations, 0.01);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_kept_by_the_median() {
        let ratio = |median, low, high| Interval { median, low, high };
        assert_eq!(verdict(ratio(1.0, 0.9, 1.05), 1.1, false), "met");
        assert_eq!(verdict(ratio(1.0, 0.9, 1.2), 1.1, false), "met; the interval holds the bound");
        assert_eq!(verdict(ratio(1.3, 1.2, 1.4), 1.1, false), "**not met**");
        assert_eq!(verdict(ratio(2.0, 1.8, 2.1), 1.6, true), "met");
        assert_eq!(
            verdict(ratio(1.5, 1.4, 1.7), 1.6, true),
            "not met; the interval holds the bound"
        );
    }
}
