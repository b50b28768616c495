//! Nodes at different distances: the verdict comes with the third one's answer, whatever the
//! others take.

use std::time::Duration;

use super::proxy::Proxies;
use crate::args::Args;
use crate::contest::{self, Entrant, Failure, Runtime};
use crate::promise::{self, Promise};
use crate::results::Results;
use crate::rounds::{self, Heat, Standing, histogram};
use crate::servers::{Endpoint, Nodes, Servers};
use crate::stats::{median, paired_difference};
use crate::{progress, table};

/// How far away each node is, there and back, in microseconds.
const DELAYS_US: [u64; 5] = [200, 300, 500, 1_000, 5_000];

/// The node that makes the majority.
const THIRD: usize = 2;

/// The third node alone, and what is compared with it.
const ALONE: &str = "third-alone";
const NAMES: [(&str, Runtime); 7] = [
    ("floor", Runtime::Thread),
    ("ours", Runtime::Current),
    ("ours", Runtime::Multi),
    ("redis-all", Runtime::Current),
    ("redis-all", Runtime::Multi),
    ("rustis-all", Runtime::Current),
    ("fred-all", Runtime::Current),
];

/// Microseconds above the third node's round trip, at the median.
const ABOVE_US_MAX: f64 = 50.0;

/// Measures it.
pub(crate) fn run(args: &Args, results: &mut Results) -> Result<String, Failure> {
    let plan = args.plan((3, 300), (8, 500));
    let servers = Servers::start(DELAYS_US.len())?;
    let delays = DELAYS_US.map(Duration::from_micros);
    let delayed: Vec<_> = servers.addrs().into_iter().zip(delays).collect();
    let proxies = Proxies::start(&delayed)?;
    let nodes = Nodes::new(proxies.addrs.iter().copied().map(Endpoint::Tcp).collect());
    let third = Nodes::new(vec![nodes.endpoints[THIRD].clone()]);

    progress::step("delayed nodes");
    let mut field = Vec::new();
    let alone = contest::enter(args, &third, "floor", Runtime::Thread)?;
    field.push(Entrant { name: ALONE, ..alone });
    for (name, runtime) in NAMES.into_iter().filter(|(name, at)| args.wants(name, *at)) {
        field.push(contest::enter(args, &nodes, name, runtime)?);
    }
    let heat = rounds::run(plan, &servers, &mut field, 1)?;
    drop(field);
    let late_ns = proxies.stop()?;
    report(&heat, plan, &late_ns, results)
}

fn report(
    heat: &Heat,
    plan: rounds::Plan,
    late_ns: &[u32],
    results: &mut Results,
) -> Result<String, Failure> {
    let late = histogram(late_ns)?;
    let us = |quantile| late.value_at_quantile(quantile) as f64 / 1e3;
    let mut text = format!(
        "\n## Nodes at 0.2, 0.3, 0.5, 1 and 5 ms, 1 caller\n\n\
         {} rounds of {:?}. A proxy holds back what goes to a node and what comes from it, each \
         for half its delay; it delivered {} times, late by {:.1} µs (median), {:.1} µs (p99), \
         {:.1} µs (p99.9), the write to the socket included. `{ALONE}` is the floor on the third \
         node only, through its proxy: that node's round trip. The others ask all five.\n\n",
        plan.rounds,
        plan.time,
        late.len(),
        us(0.5),
        us(0.99),
        us(0.999)
    );
    let row = |standing: &Standing| {
        [
            standing.label(),
            format!("{:.1}", standing.quantile_us(0.5)),
            format!("{:.1}", standing.quantile_us(0.99)),
            format!("{:.1}", standing.quantile_us(0.999)),
            format!("{:.0}", median(&standing.column(|round| round.cycles_per_s))),
            format!("{:.1}", median(&standing.column(|round| round.cpu_us))),
        ]
    };
    let head = ["contestant", "p50 µs", "p99 µs", "p99.9 µs", "cycles/s", "CPU µs/cycle"];
    text += &table::align(&head, &heat.standings.iter().map(row).collect::<Vec<_>>());
    text += "\nCPU is that of the process, which the proxy is part of here.\n";
    text += &table::repeats(heat);
    table::note(heat, "delayed nodes, 1 caller", results);
    let promises = promises(heat);
    text += &promise::tabulate(&promises);
    results.promised(promises);
    Ok(text)
}

/// Ours against the third node's round trip.
fn promises(heat: &Heat) -> Vec<Promise> {
    let Some(alone) = heat.find(ALONE, Runtime::Thread) else { return Vec::new() };
    let alone = alone.column(|round| round.p50_us);
    let above =
        |standing: &Standing| paired_difference(&standing.column(|round| round.p50_us), &alone);
    let floor = heat.find("floor", Runtime::Thread).map(|floor| above(floor).median);
    let ours = heat.standings.iter().filter(|standing| standing.name == "ours");
    let promise = |ours: &Standing| Promise {
        what: format!("delayed nodes, {}, acquire p50 above the third's", ours.label()),
        unit: " µs",
        bound: ABOVE_US_MAX,
        more_is_better: false,
        measured: above(ours),
        floor,
    };
    ours.map(promise).collect()
}
