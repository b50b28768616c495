//! What was promised of the closed loop, and what came of it.

use crate::contest::Runtime::{self, Current, Multi, Thread};
use crate::promise::Promise;
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
const BUDGETS: [Budget; 27] = [
    five(1, "ours", Current, "floor/", Figure::P50, 1.10),
    five(1, "ours", Multi, "floor/", Figure::P50, 1.10),
    five(1, "ours", Current, "floor/", Figure::P99, 1.25),
    five(1, "ours", Multi, "floor/", Figure::P99, 1.25),
    five(1, "ours", Current, "redis-all", Figure::P50, 0.65),
    five(1, "ours", Multi, "redis-all", Figure::P50, 0.65),
    five(1, "ours", Current, "redis-quorum", Figure::P50, 0.90),
    five(1, "ours", Multi, "redis-quorum", Figure::P50, 0.90),
    five(1, "ours-body", Multi, "floor/", Figure::P50, 1.60),
    five(64, "ours", Current, "floor/", Figure::Cycles, 0.95),
    five(64, "ours", Multi, "floor/", Figure::Cycles, 0.88),
    five(512, "ours", Current, "floor/", Figure::Cycles, 0.95),
    five(512, "ours", Multi, "floor/", Figure::Cycles, 0.85),
    five(64, "ours", Current, "redis", Figure::Cycles, 1.6),
    five(64, "ours", Multi, "redis", Figure::Cycles, 2.2),
    five(64, "ours", Current, "redis", Figure::Cpu, 0.28),
    five(64, "ours", Multi, "redis", Figure::Cpu, 0.25),
    five(64, "ours", Current, "rslock", Figure::Cycles, 2.2),
    five(64, "ours", Multi, "rslock", Figure::Cycles, 2.2),
    five(512, "ours", Current, "redis", Figure::Cycles, 2.2),
    five(512, "ours", Multi, "redis", Figure::Cycles, 2.8),
    five(512, "ours", Current, "rslock", Figure::Cycles, 3.5),
    five(512, "ours", Multi, "rslock", Figure::Cycles, 3.5),
    one(512, Current, "ceiling/", 0.8),
    one(512, Multi, "ceiling/", 0.8),
    one(512, Current, "redis", 1.5),
    one(512, Multi, "redis", 1.5),
];

/// With the native command, beside the script on the same servers.
const NATIVE: [Budget; 16] = [
    five(1, "native-ours", Current, "ours/", Figure::P50, 1.05),
    five(1, "native-ours", Multi, "ours/", Figure::P50, 1.05),
    five(64, "native-ours", Current, "ours/", Figure::Cycles, 1.35),
    five(64, "native-ours", Multi, "ours/", Figure::Cycles, 1.35),
    five(512, "native-ours", Current, "ours/", Figure::Cycles, 1.6),
    five(512, "native-ours", Multi, "ours/", Figure::Cycles, 1.6),
    five(64, "native-ours", Current, "redis", Figure::Cycles, 2.1),
    five(512, "native-ours", Current, "redis", Figure::Cycles, 2.8),
    five(64, "native-ours", Multi, "redis", Figure::Cycles, 2.8),
    five(512, "native-ours", Multi, "redis", Figure::Cycles, 3.5),
    five(64, "native-ours", Current, "native-redis", Figure::Cycles, 1.75),
    five(512, "native-ours", Current, "native-redis", Figure::Cycles, 2.2),
    five(64, "native-ours", Multi, "native-redis", Figure::Cycles, 2.3),
    five(512, "native-ours", Multi, "native-redis", Figure::Cycles, 2.9),
    native_one(Current),
    native_one(Multi),
];

const fn native_one(runtime: Runtime) -> Budget {
    Budget { ours: "native-ours", ..one(512, runtime, "native-ceiling/", 0.8) }
}

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

/// The promises that these figures can answer.
pub(crate) fn promises(nodes: usize, heat: &Heat) -> Vec<Promise> {
    let due = BUDGETS.iter().filter(|it| it.nodes == nodes && it.callers == heat.callers);
    let mut promises: Vec<Promise> = due.filter_map(|budget| budget.promise(heat)).collect();
    if nodes == 5 && heat.callers == 1 {
        promises.extend(counted(heat));
    }
    promises
}

/// The same, of the native command.
pub(crate) fn native_promises(nodes: usize, heat: &Heat) -> Vec<Promise> {
    let due = NATIVE.iter().filter(|it| it.nodes == nodes && it.callers == heat.callers);
    due.filter_map(|budget| budget.promise(heat)).collect()
}

impl Budget {
    fn promise(&self, heat: &Heat) -> Option<Promise> {
        let ours = heat.find(self.ours, self.runtime)?;
        let other = self.best_other(heat)?;
        let figure = self.figure.of();
        let measured = paired_ratio(&ours.column(figure), &other.column(figure));
        let floor = if self.ours.starts_with("native-") { "native-floor" } else { "floor" };
        let floor = heat.find(floor, Thread).filter(|floor| !std::ptr::eq(*floor, other));
        let floor = floor.map(|it| paired_ratio(&it.column(figure), &other.column(figure)).median);
        let what = format!(
            "{}, {}, {} against {}",
            setting(self.nodes, self.callers),
            ours.label(),
            self.figure.label(),
            other.label()
        );
        let (bound, more_is_better) = (self.bound, self.figure.more_is_better());
        Some(Promise { what, unit: " ×", bound, more_is_better, measured, floor })
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

/// So many nodes and callers, in words.
pub(crate) fn setting(nodes: usize, callers: usize) -> String {
    let many = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    };
    format!("{}, {}", many(nodes, "node"), many(callers, "caller"))
}

/// The promises about counts.
fn counted(heat: &Heat) -> Vec<Promise> {
    let mut promises = Vec::new();
    let floor = heat.find("floor", Thread).and_then(|floor| floor.calls);
    for (runtime, bound) in [(Current, 11.5), (Multi, 12.0)] {
        let Some(ours) = heat.find("ours", runtime) else { continue };
        let mut promise = |what: &str, count: Option<f64>, bound: f64, floor: Option<f64>| {
            let Some(count) = count else { return };
            promises.push(Promise {
                what: format!("{}, {}, {what} per operation", setting(5, 1), ours.label()),
                unit: "",
                bound,
                more_is_better: false,
                measured: Interval { median: count, low: count, high: count },
                floor,
            });
        };
        promise("system calls", ours.calls, bound, floor);
        // Less than one in a hundred operations comes from the program around them.
        promise("allocations", ours.allocations, 0.01, None);
    }
    promises
}
