//! Two of five nodes hang: their processes are stopped, their kernels still take bytes.

use std::time::Duration;

use crate::args::Args;
use crate::contest::{self, Entrant, Failure, Runtime};
use crate::promise::{self, Promise};
use crate::results::{Kind, Results};
use crate::rounds::{PATIENCE, Standing, timed};
use crate::servers::{Servers, Transport};
use crate::stats::{bootstrap, median, paired_difference};
use crate::{budget, progress, table};

const NODES: usize = 5;
const HUNG: usize = 2;
const CALLERS: [usize; 2] = [1, 64];

/// Microseconds above the healthy 99th percentile.
const ABOVE_US_MAX: f64 = 1_000.0;

/// Rounds that may fail: a machine that stalls is no contestant's fault, but not again and again.
const FAILURES_MAX: usize = 3;

/// One contestant, with all nodes well and with two hung.
struct Case {
    callers: usize,
    healthy: Standing,
    hung: Standing,
}

/// Measures it.
pub(crate) fn run(args: &Args, results: &mut Results) -> Result<String, Failure> {
    let plan = args.plan((3, 200), (10, 300));
    let servers = Servers::start(NODES)?;
    let nodes = servers.nodes(Transport::Tcp);
    let mut field = Vec::new();
    for runtime in [Runtime::Current, Runtime::Multi] {
        if args.wants("ours", runtime) {
            field.push(contest::enter(args, &nodes, "ours", runtime)?);
        }
    }
    let mut cases = Vec::new();
    let mut left = 0;
    let mut failures = Vec::new();
    for callers in CALLERS {
        for entrant in &mut field {
            let fresh = || Standing::new(entrant.name, entrant.runtime);
            let mut case = Case { callers, healthy: fresh()?, hung: fresh()? };
            let label = case.hung.label();
            progress::step(&format!("hung nodes: {callers} callers, {label}"));
            while case.hung.rounds.len() < plan.rounds {
                match case.round(&servers, entrant, plan.time) {
                    Ok(keys) => left += keys,
                    Err(failure) if failures.len() < FAILURES_MAX => {
                        failures.push(format!("{label}, {callers} callers: {failure}"));
                    }
                    Err(failure) => return Err(failure),
                }
            }
            cases.push(case);
        }
    }
    let mut text = report(plan.rounds, plan.time, left, &cases, results);
    for failure in failures {
        text += &format!("\nA round was repeated: {failure}\n");
    }
    Ok(text)
}

impl Case {
    /// A healthy round and one with hung nodes; returns how many keys were left once they went on.
    fn round(
        &mut self,
        servers: &Servers,
        entrant: &mut Entrant,
        time: Duration,
    ) -> Result<u64, Failure> {
        let contestant = &mut entrant.contestant;
        let (healthy, acquires) = timed(&mut **contestant, self.callers, time)?;
        servers.left_behind(PATIENCE, || contestant.settle())?;
        self.healthy.acquires.add(&acquires)?;
        servers.pause(HUNG);
        let hung = timed(&mut **contestant, self.callers, time);
        servers.resume();
        let left = servers.left_behind(PATIENCE, || contestant.settle())?;
        let (hung, acquires) = hung?;
        self.hung.acquires.add(&acquires)?;
        self.healthy.rounds.push(healthy);
        self.hung.rounds.push(hung);
        Ok(left)
    }

    fn rows(&self) -> [[String; 7]; 2] {
        [(&self.healthy, "all well"), (&self.hung, "two hung")].map(|(standing, nodes)| {
            [
                standing.label(),
                self.callers.to_string(),
                nodes.to_owned(),
                format!("{:.1}", standing.quantile_us(0.5)),
                format!("{:.1}", standing.quantile_us(0.99)),
                format!("{:.1}", standing.quantile_us(1.0)),
                format!("{:.0}", median(&standing.column(|round| round.cycles_per_s))),
            ]
        })
    }

    fn promise(&self) -> Promise {
        let [healthy, hung] = [&self.healthy, &self.hung].map(|it| it.column(|it| it.p99_us));
        let setting = budget::setting(NODES, self.callers);
        Promise {
            what: format!("{setting}, {}, two hung: acquire p99 above healthy", self.hung.label()),
            unit: " µs",
            bound: ABOVE_US_MAX,
            more_is_better: false,
            measured: paired_difference(&hung, &healthy),
            floor: None,
        }
    }
}

fn report(
    rounds: usize,
    time: Duration,
    left: u64,
    cases: &[Case],
    results: &mut Results,
) -> String {
    let mut text = format!(
        "\n## Two of five nodes hung\n\n\
         {rounds} rounds of {time:?} with all nodes well, each followed by one with two of them \
         stopped (`SIGSTOP`), of which the first eighth is not counted. Once they went on, {left} \
         keys in all were left on them after {PATIENCE:?}.\n\n"
    );
    let head = ["contestant", "callers", "nodes", "p50 µs", "p99 µs", "max µs", "cycles/s"];
    let rows: Vec<[String; 7]> = cases.iter().flat_map(Case::rows).collect();
    text += &table::align(&head, &rows);
    for case in cases {
        for (standing, nodes) in [(&case.healthy, "all well"), (&case.hung, "two hung")] {
            let setting = budget::setting(NODES, case.callers);
            let what = format!("{setting}, {nodes}, {}, p99 µs", standing.label());
            results.note(Kind::Figure, what, bootstrap(&standing.column(|round| round.p99_us)));
        }
    }
    let promises: Vec<Promise> = cases.iter().map(Case::promise).collect();
    text += &promise::tabulate(&promises);
    results.promised(promises);
    text
}
