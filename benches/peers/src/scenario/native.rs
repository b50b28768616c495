//! The server's own compare-and-delete beside the script, on the same servers.

use crate::args::Args;
use crate::contest::{self, Entrant, Failure};
use crate::results::{Kind, Results};
use crate::rounds::{self, PATIENCE_FOR_LEAVERS, Plan};
use crate::servers::{Servers, Transport};
use crate::stats::{Interval, bootstrap};
use crate::{budget, progress, table};

/// Callers on one node.
const CALLERS_ON_ONE: usize = 512;

/// How often what the servers use is measured.
const CPU_ROUNDS: usize = 5;

pub(crate) fn run(args: &Args, results: &mut Results) -> Result<String, Failure> {
    let plan = args.plan((5, 150), (20, 250));
    let mut text = String::from(
        "\n`native`: a release is `DELIFEQ key value`; without it, a script by its digest.\n",
    );
    for &callers in &args.callers {
        text += &heat(args, plan, args.nodes, callers, results)?;
    }
    text += &heat(args, plan, 1, CALLERS_ON_ONE, results)?;
    Ok(text)
}

fn heat(
    args: &Args,
    plan: Plan,
    nodes: usize,
    callers: usize,
    results: &mut Results,
) -> Result<String, Failure> {
    let servers = Servers::start(nodes)?;
    let mut field = contest::native_field(args, &servers.nodes(Transport::Tcp))?;
    let setting = budget::setting(nodes, callers);
    progress::step(&setting);
    let heat = rounds::run(plan, &servers, &mut field, callers)?;
    let mut text = table::heat_with(nodes, &heat, budget::native_promises(nodes, &heat), results);
    let mut rows = Vec::new();
    for entrant in &mut field {
        let used = server_cpu(plan, &servers, entrant, callers)?;
        let label = contest::label(entrant.name, entrant.runtime);
        results.note(Kind::Figure, format!("{setting}, {label}, server CPU µs/cycle"), used);
        rows.push([label, format!("{:.2} [{:.2}–{:.2}]", used.median, used.low, used.high)]);
    }
    text += "\nWhat all servers together use:\n\n";
    text += &table::align(&["contestant", "server CPU µs/cycle"], &rows);
    Ok(text)
}

/// What all servers together use for a cycle, in microseconds.
fn server_cpu(
    plan: Plan,
    servers: &Servers,
    entrant: &mut Entrant,
    callers: usize,
) -> Result<Interval, Failure> {
    let mut rounds = Vec::new();
    for _ in 0..CPU_ROUNDS {
        let before = used(servers);
        let cycles = entrant.contestant.run(callers, plan.time)?.acquires_ns.len().max(1);
        rounds.push((used(servers) - before) * 1e6 / cycles as f64);
        servers.left_behind(PATIENCE_FOR_LEAVERS, || entrant.contestant.settle())?;
    }
    Ok(bootstrap(&rounds))
}

/// The processor time of all servers by now, in seconds.
fn used(servers: &Servers) -> f64 {
    let seconds = |text: String| -> f64 {
        let fields = text.lines().filter_map(|line| line.split_once(':'));
        let own = fields.filter(|(name, _)| matches!(*name, "used_cpu_sys" | "used_cpu_user"));
        own.filter_map(|(_, value)| value.trim().parse::<f64>().ok()).sum()
    };
    servers.ask_each(&["INFO", "cpu"]).map(seconds).sum()
}
