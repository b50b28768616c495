//! A lock that another process waits for: from the release to the other's acquisition.

use crate::args::Args;
use crate::contest::Failure;
use crate::hand_over::{self, CONTESTANTS, Foreign, Heat};
use crate::promise::{self, Promise};
use crate::results::{Kind, Results};
use crate::servers::{Servers, Transport};
use crate::stats::{Interval, bootstrap, median, paired_ratio};
use crate::table;

/// Beside bare sockets, of ours.
const P50_MAX: f64 = 1.3;
const P99_MAX: f64 = 2.0;

/// On as many nodes as are asked for.
pub(crate) fn run(args: &Args, results: &mut Results) -> Result<String, Failure> {
    let plan = args.plan((5, 0), (20, 0));
    let servers = Servers::start(args.nodes)?;
    let mut contestants = CONTESTANTS.to_vec();
    let mut versions = String::new();
    for library in Foreign::ALL {
        let version = library.versions().unwrap_or_else(|why| {
            contestants.retain(|name| *name != library.name());
            format!("not measured: {why}")
        });
        versions += &format!(" `{}`: {version}.", library.name());
    }
    let nodes = servers.nodes(Transport::Tcp);
    let heats = hand_over::run(&nodes, &contestants, plan.rounds, plan.seed)?;
    let floor = &heats[0];
    let (mut rows, mut promises) = (Vec::new(), Vec::new());
    for heat in &heats {
        let figures = Figures::of(heat, floor);
        rows.push(figures.row(heat));
        figures.note(&format!("{} nodes, hand-over, {}", args.nodes, heat.name), results);
        if heat.name == "ours" {
            promises.extend(figures.promises());
        }
    }
    let head = [
        "contestant",
        "hand-overs",
        "p50 µs",
        "p99 µs",
        "p50 beside the floor",
        "p99 beside the floor",
    ];
    let text = format!(
        "\n## {} nodes, from a release to the next holder in another process\n\n{} rounds in \
         random order. Percentiles are those of all hand-overs; beside the floor stands the median \
         over the rounds of each round's percentile divided by the floor's of the same round. \
         `ours-polling` tries every 50 ms; the peers pause as they do by default, and try for as \
         long as it takes.{versions}\n\n{}{}",
        args.nodes,
        plan.rounds,
        table::align(&head, &rows),
        promise::tabulate(&promises)
    );
    results.promised(promises);
    Ok(text)
}

/// Of a contestant, each the p50 and the p99.
struct Figures {
    micros: [f64; 2],
    by_rounds: [Vec<f64>; 2],
    beside_floor: [Interval; 2],
}

const SHARES: [f64; 2] = [0.5, 0.99];

impl Figures {
    fn of(heat: &Heat, floor: &Heat) -> Self {
        let all = heat.rounds.concat();
        Self {
            micros: SHARES.map(|share| percentile(&all, share)),
            by_rounds: SHARES.map(|share| column(heat, share)),
            beside_floor: SHARES.map(|at| paired_ratio(&column(heat, at), &column(floor, at))),
        }
    }

    fn row(&self, heat: &Heat) -> [String; 6] {
        let hand_overs: usize = heat.rounds.iter().map(Vec::len).sum();
        let [p50, p99] = self.micros.map(|micros| format!("{micros:.1}"));
        let [half, tail] = self
            .beside_floor
            .map(|Interval { median, low, high }| format!("{median:.2} [{low:.2}–{high:.2}]"));
        [heat.name.to_owned(), hand_overs.to_string(), p50, p99, half, tail]
    }

    fn note(&self, who: &str, results: &mut Results) {
        for (at, share) in ["p50", "p99"].into_iter().enumerate() {
            let Interval { low, high, .. } = bootstrap(&self.by_rounds[at]);
            let micros = Interval { median: self.micros[at], low, high };
            results.note(Kind::Figure, format!("{who}, {share} µs"), micros);
            let what = format!("{who}, {share} against the floor");
            results.note(Kind::Ratio, what, self.beside_floor[at]);
        }
    }

    fn promises(&self) -> [Promise; 2] {
        [("p50", P50_MAX, 0), ("p99", P99_MAX, 1)].map(|(share, bound, at)| Promise {
            what: format!("to the next holder in another process, beside the floor: {share}"),
            unit: "",
            bound,
            more_is_better: false,
            measured: self.beside_floor[at],
            floor: Some(1.0),
        })
    }
}

/// Of each round the one that this share of its hand-overs does not exceed.
pub(super) fn column(heat: &Heat, share: f64) -> Vec<f64> {
    heat.rounds.iter().map(|round| percentile(round, share)).collect()
}

/// The one that this share of them does not exceed; 0 of none.
fn percentile(values: &[f64], share: f64) -> f64 {
    if share == 0.5 {
        return median(values);
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let count = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(count.saturating_sub(1)).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_a_hundred_exceeds_the_99th_percentile() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&values, 0.99), 99.0);
        assert_eq!(percentile(&values, 0.5), 50.5);
        assert_eq!(percentile(&values[..20], 0.99), 100.0);
        assert_eq!(percentile(&[], 0.99), 0.0);
    }
}
