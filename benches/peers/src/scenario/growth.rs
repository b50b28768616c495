//! What becomes of throughput and latency as the work grows.

use std::time::Duration;

use super::Part;
use super::chart::{self, Panel, Series};
use crate::args::Args;
use crate::contest::{self, Failure, Runtime, label};
use crate::results::Results;
use crate::rounds::{self, Plan, Standing};
use crate::servers::{Servers, Transport};
use crate::stats::median;
use crate::{budget, progress, table};

const NODES: [usize; 5] = [1, 3, 5, 7, 9];
const CALLERS: [usize; 5] = [1, 8, 64, 512, 4_096];
const TRANSPORTS: [(Transport, &str); 2] = [(Transport::Tcp, "TCP"), (Transport::Unix, "Unix")];

/// The floor, and ourselves on both runtimes.
const NAMES: [(&str, Runtime); 3] =
    [("floor", Runtime::Thread), ("ours", Runtime::Current), ("ours", Runtime::Multi)];

/// One contestant with so many nodes and callers; medians of the rounds.
struct Point {
    transport: &'static str,
    nodes: usize,
    callers: usize,
    who: String,
    cycles_per_s: f64,
    p50_us: f64,
    p99_us: f64,
    cpu_us: f64,
}

/// Thousands of callers on a few cores wait for each other longer than our default allows a node
/// to be silent: here it is the queue that is to be seen.
const NODE_TIMEOUT: Duration = Duration::from_secs(1);

/// Measures it.
pub(crate) fn run(args: &Args, results: &mut Results) -> Result<Part, Failure> {
    let args = &args.clone().node_timeout(NODE_TIMEOUT);
    let plan = args.plan((2, 50), (3, 150));
    let mut points = Vec::new();
    let mut notes = String::new();
    for (transport, name) in TRANSPORTS {
        for nodes in NODES {
            let servers = Servers::start(nodes)?;
            let to = servers.nodes(transport);
            let mut field = Vec::new();
            for (who, runtime) in NAMES.into_iter().filter(|(who, at)| args.wants(who, *at)) {
                field.push(contest::enter(args, &to, who, runtime)?);
            }
            for callers in CALLERS {
                let setting = format!("{name}, {}", budget::setting(nodes, callers));
                progress::step(&format!("growth: {setting}"));
                match rounds::run(plan, &servers, &mut field, callers) {
                    Ok(heat) => {
                        table::note(&heat, &setting, results);
                        notes += &table::repeats(&heat);
                        let standings = heat.standings.iter();
                        points.extend(standings.map(|it| Point::of(it, name, nodes, callers)));
                    }
                    Err(failure) => notes += &format!("\nNot measured: {setting}: {failure}\n"),
                }
            }
        }
    }
    let svg = Some(chart::draw("Cycles per second, by callers and nodes", &panels(&points)));
    Ok(Part { text: report(plan, &points) + &notes, svg })
}

impl Point {
    fn of(standing: &Standing, transport: &'static str, nodes: usize, callers: usize) -> Self {
        let middle = |figure| median(&standing.column(figure));
        Self {
            transport,
            nodes,
            callers,
            who: standing.label(),
            cycles_per_s: middle(|round| round.cycles_per_s),
            p50_us: middle(|round| round.p50_us),
            p99_us: middle(|round| round.p99_us),
            cpu_us: middle(|round| round.cpu_us),
        }
    }

    /// How many cores the client keeps busy.
    fn cores(&self) -> f64 {
        self.cpu_us * self.cycles_per_s / 1e6
    }
}

fn find<'a>(
    points: &'a [Point],
    transport: &str,
    nodes: usize,
    callers: usize,
    who: &str,
) -> Option<&'a Point> {
    let here = |it: &&Point| (it.transport, it.nodes, it.callers) == (transport, nodes, callers);
    points.iter().filter(here).find(|it| it.who == who)
}

fn report(plan: Plan, points: &[Point]) -> String {
    let mut text = format!(
        "\n## Growth: nodes, callers, transports\n\n{} rounds of {:?} each. Under each contestant: \
         cycles/s, and an acquisition's p50 and p99 in µs. Ours has a `node_timeout` of \
         {NODE_TIMEOUT:?}: thousands of callers on one machine wait for each other longer than \
         the default allows a node to be silent.\n\n",
        plan.rounds, plan.time
    );
    let who = NAMES.map(|(name, runtime)| label(name, runtime));
    let head = [
        "transport",
        "nodes",
        "callers",
        &*who[0],
        "p50",
        "p99",
        &*who[1],
        "p50",
        "p99",
        &*who[2],
        "p50",
        "p99",
    ];
    let mut rows = Vec::new();
    for (_, transport) in TRANSPORTS {
        for nodes in NODES {
            for callers in CALLERS {
                let mut row = [const { String::new() }; 12];
                row[0] = transport.to_owned();
                (row[1], row[2]) = (nodes.to_string(), callers.to_string());
                for (number, who) in who.iter().enumerate() {
                    let Some(point) = find(points, transport, nodes, callers, who) else {
                        continue;
                    };
                    row[3 + 3 * number] = format!("{:.0}", point.cycles_per_s);
                    row[4 + 3 * number] = format!("{:.1}", point.p50_us);
                    row[5 + 3 * number] = format!("{:.1}", point.p99_us);
                }
                rows.push(row);
            }
        }
    }
    text += &table::align(&head, &rows);
    text += &bounds(points).unwrap_or_default();
    text
}

/// What bounds each end, from the figures.
fn bounds(points: &[Point]) -> Option<String> {
    let [floor, ours, _] = NAMES.map(|(name, runtime)| label(name, runtime));
    let [few, many] = [CALLERS[0], CALLERS[CALLERS.len() - 1]];
    let one = find(points, "TCP", 5, few, &ours)?;
    let bare = find(points, "TCP", 5, few, &floor)?;
    let unix = find(points, "Unix", 5, few, &ours)?;
    let full = find(points, "TCP", 5, many, &ours)?;
    let bare_full = find(points, "TCP", 5, many, &floor)?;
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let client = full.cores();
    let word = if client < cores as f64 / 2.0 { "the servers" } else { "the client" };
    Some(format!(
        "\nWith one caller the round trip is the bound: an acquisition on five nodes takes {:.0} \
         µs where bare sockets take {:.0} µs, and {:.0} µs over Unix sockets. With {many} callers \
         it is the CPU: of {cores} cores {ours} keeps {client:.2} busy for {:.0} cycles/s ({:.0} \
         commands/s over the five servers, bare sockets: {:.0}), so most of the machine works for \
         {word}.\n",
        one.p50_us,
        bare.p50_us,
        unix.p50_us,
        full.cycles_per_s,
        full.cycles_per_s * 10.0,
        bare_full.cycles_per_s * 10.0,
    ))
}

/// A panel for each transport and contestant, a line in it for each number of nodes.
fn panels(points: &[Point]) -> Vec<Panel> {
    let mut panels = Vec::new();
    for (_, transport) in TRANSPORTS {
        for who in NAMES.map(|(name, runtime)| label(name, runtime)) {
            let line = |nodes: usize| Series {
                name: budget::setting(nodes, 1).split(',').next().unwrap_or_default().to_owned(),
                points: CALLERS
                    .iter()
                    .filter_map(|callers| find(points, transport, nodes, *callers, &who))
                    .map(|point| (point.callers as f64, point.cycles_per_s))
                    .collect(),
            };
            let title = format!("{who}, {transport}");
            panels.push(Panel { title, series: NODES.map(line).to_vec() });
        }
    }
    panels
}
