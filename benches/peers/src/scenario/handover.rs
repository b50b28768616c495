//! A lock that another process waits for: from the release to the other's acquisition.

use crate::args::Args;
use crate::contest::Failure;
use crate::hand_over::{self, Heat};
use crate::results::{Kind, Results};
use crate::servers::{Servers, Transport};
use crate::stats::{bootstrap, median, paired_ratio};

/// On as many nodes as are asked for.
pub(crate) fn run(args: &Args, results: &mut Results) -> Result<String, Failure> {
    let plan = args.plan((5, 0), (20, 0));
    let servers = Servers::start(args.nodes)?;
    let heats = hand_over::run(&servers.nodes(Transport::Tcp), plan.rounds, plan.seed)?;
    let mut text = format!(
        "\n## {} nodes, from a release to the next holder in another process\n\n| contestant | p50 \
         µs | p99 µs | p50 beside the floor | p99 beside the floor |\n|---|---:|---:|---:|---:|\n",
        args.nodes
    );
    let floor = &heats[0];
    for heat in &heats {
        let [p50, p99] = [0.5, 0.99].map(|share| column(heat, share));
        let ratios = [(0.5, &p50), (0.99, &p99)]
            .map(|(share, own)| paired_ratio(own, &column(floor, share)));
        let [half, tail] = ratios;
        text += &format!(
            "| {} | {:.1} | {:.1} | {:.2} [{:.2}–{:.2}] | {:.2} [{:.2}–{:.2}] |\n",
            heat.name,
            median(&p50),
            median(&p99),
            half.median,
            half.low,
            half.high,
            tail.median,
            tail.low,
            tail.high
        );
        let what =
            |figure: &str| format!("{} nodes, hand-over, {}, {figure}", args.nodes, heat.name);
        results.note(Kind::Figure, what("p50 µs"), bootstrap(&p50));
        results.note(Kind::Figure, what("p99 µs"), bootstrap(&p99));
        results.note(Kind::Ratio, what("p50 against the floor"), half);
        results.note(Kind::Ratio, what("p99 against the floor"), tail);
    }
    Ok(text)
}

/// Of each round the one that this share of its hand-overs does not exceed.
fn column(heat: &Heat, share: f64) -> Vec<f64> {
    let of = |round: &Vec<f64>| {
        let mut sorted = round.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let at = ((sorted.len() as f64 * share) as usize).min(sorted.len() - 1);
        sorted[at]
    };
    heat.rounds.iter().map(of).collect()
}
