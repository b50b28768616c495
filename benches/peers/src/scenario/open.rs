//! The open loop: latency from the intended start, at a rate that all can sustain.

use std::time::Duration;

use hdrhistogram::Histogram;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use crate::args::Args;
use crate::contest::{self, Entrant, Failure, Runtime, label};
use crate::promise::{self, Promise};
use crate::results::{Kind, Results};
use crate::rounds::{self, PATIENCE, PATIENCE_FOR_LEAVERS, histogram};
use crate::servers::{Servers, Transport};
use crate::stats::{bootstrap, median};
use crate::{clock, progress, table};

const NODES: usize = 5;

/// A round opens with this part of one that is not counted.
const WARM_UP_PART: u32 = 4;

const NAMES: [&str; 6] =
    ["ours", "ours-again", "redis-all", "redis-all-delay", "redis-quorum", "redis-quorum-delay"];

/// Microseconds at the 99.9th percentile, at 20,000 cycles per second.
const P999_US_MAX: f64 = 1_000.0;
const RATE: u32 = 20_000;

/// One contestant's figures.
struct Lane {
    entrant: Entrant,
    starts: Histogram<u64>,
    acquires: Histogram<u64>,
    cycles: Histogram<u64>,
    /// Of each round: the 99.9th percentile, and the client's CPU per cycle.
    p999_us: Vec<f64>,
    cpu_us: Vec<f64>,
    failures: Vec<String>,
}

/// Measures it.
pub(crate) fn run(args: &Args, results: &mut Results) -> Result<String, Failure> {
    let plan = args.plan((3, 500), (8, 500));
    let servers = Servers::start(NODES)?;
    let nodes = servers.nodes(Transport::Tcp);
    let mut lanes = Vec::new();
    if args.wants("floor", Runtime::Thread) {
        lanes.push(Lane::new(contest::enter(args, &nodes, "floor", Runtime::Thread)?)?);
    }
    for runtime in [Runtime::Current, Runtime::Multi] {
        for name in NAMES.into_iter().filter(|name| args.wants(name, runtime)) {
            lanes.push(Lane::new(contest::enter(args, &nodes, name, runtime)?)?);
        }
    }
    let mut chance = StdRng::seed_from_u64(plan.seed);
    let mut order: Vec<usize> = (0..lanes.len()).collect();
    for round in 1..=plan.rounds {
        order.shuffle(&mut chance);
        progress::step(&format!("open loop: round {round} of {}", plan.rounds));
        for lane in &order {
            lanes[*lane].round(&servers, args.rate, plan.time)?;
        }
    }
    Ok(report(args, plan, &lanes, results))
}

impl Lane {
    fn new(entrant: Entrant) -> Result<Self, Failure> {
        Ok(Self {
            entrant,
            starts: histogram(&[])?,
            acquires: histogram(&[])?,
            cycles: histogram(&[])?,
            p999_us: Vec::new(),
            cpu_us: Vec::new(),
            failures: Vec::new(),
        })
    }

    /// One round. A contestant that does not keep up is no failure of the run's.
    fn round(&mut self, servers: &Servers, rate: u32, time: Duration) -> Result<(), Failure> {
        let Entrant { contestant, leaves_keys, .. } = &mut self.entrant;
        let warm = contestant.run_at(rate, time / WARM_UP_PART);
        let cpu = clock::cpu();
        let ran = warm.and_then(|_| contestant.run_at(rate, time));
        let cpu = clock::cpu().saturating_sub(cpu);
        let patience = if *leaves_keys { PATIENCE_FOR_LEAVERS } else { PATIENCE };
        let left = servers.left_behind(patience, || contestant.settle())?;
        let open = match ran {
            Ok(_) if left > 0 && !*leaves_keys => Err(format!("{left} keys are left").into()),
            ran => ran,
        };
        match open {
            Ok(open) => {
                let acquires = histogram(&open.acquires_ns)?;
                self.p999_us.push(acquires.value_at_quantile(0.999) as f64 / 1e3);
                self.cpu_us.push(cpu.as_secs_f64() * 1e6 / acquires.len().max(1) as f64);
                self.starts.add(&histogram(&open.starts_ns)?)?;
                self.acquires.add(&acquires)?;
                self.cycles.add(&histogram(&open.cycles_ns)?)?;
            }
            Err(failure) => self.failures.push(failure.to_string()),
        }
        Ok(())
    }

    fn label(&self) -> String {
        label(self.entrant.name, self.entrant.runtime)
    }

    fn row(&self) -> [String; 9] {
        let of = |it: &Histogram<u64>, quantile| {
            format!("{:.1}", it.value_at_quantile(quantile) as f64 / 1e3)
        };
        [
            self.label(),
            of(&self.acquires, 0.5),
            of(&self.acquires, 0.99),
            of(&self.acquires, 0.999),
            of(&self.acquires, 1.0),
            of(&self.cycles, 0.999),
            of(&self.starts, 0.999),
            format!("{:.2}", median(&self.cpu_us)),
            self.failures.len().to_string(),
        ]
    }
}

fn report(args: &Args, plan: rounds::Plan, lanes: &[Lane], results: &mut Results) -> String {
    let rate = args.rate;
    let head = [
        "contestant",
        "p50 µs",
        "p99 µs",
        "p99.9 µs",
        "max µs",
        "cycle p99.9 µs",
        "start p99.9 µs",
        "CPU µs/cycle",
        "failed rounds",
    ];
    let mut text = format!(
        "\n## Open loop: {rate} cycles/s, {NODES} nodes\n\n\
         {} rounds of {:?}. Latencies count from the intended start of the cycle: until the lock \
         was held, (`cycle`) until it was released again, and (`start`) until its task began to \
         run: what the loop, the runtime and the machine were late. They are those of all rounds \
         together; the budget takes the median of the rounds.\n\n",
        plan.rounds, plan.time
    );
    text += &table::align(&head, &lanes.iter().map(Lane::row).collect::<Vec<_>>());
    let bare = lanes.iter().find(|lane| lane.entrant.name == "floor");
    let floor = bare.map(|lane| median(&lane.p999_us));
    let mut promises = Vec::new();
    for lane in lanes {
        for failure in &lane.failures {
            text += &format!("\n{}, a round that does not count: {failure}\n", lane.label());
        }
        let p999 = bootstrap(&lane.p999_us);
        let what = format!("open loop, {rate} cycles/s, {}, p99.9", lane.label());
        results.note(Kind::Figure, format!("{what} µs"), p999);
        if lane.entrant.name == "ours" && rate == RATE && !lane.p999_us.is_empty() {
            let bound = P999_US_MAX;
            let unit = " µs";
            promises.push(Promise {
                what,
                unit,
                bound,
                more_is_better: false,
                measured: p999,
                floor,
            });
        }
    }
    text += &promise::tabulate(&promises);
    results.promised(promises);
    text
}
