//! A lock that many processes want all the time: how often it changes hands, at which cost, and
//! whether each comes by it.

use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::handover::column;
use crate::args::Args;
use crate::contest::Failure;
use crate::crowd::{self, Round, Work};
use crate::hand_over;
use crate::promise::{self, Promise};
use crate::results::{Kind, Results};
use crate::servers::{Servers, Transport};
use crate::stats::{Interval, bootstrap, median};
use crate::{progress, table};

/// Who takes part, and what they do with the lock. Ours stands twice: what differs between the two
/// is chance.
const NAMES: [(&str, Work); 7] = [
    ("floor", AT_ONCE),
    ("ours", AT_ONCE),
    ("ours-again", AT_ONCE),
    ("ours-fair", AT_ONCE),
    ("ours-strict", AT_ONCE),
    ("ours-polling", AT_ONCE),
    ("ours", EXTENDING),
];

/// Released as soon as it is held.
const AT_ONCE: Work = Work { hold: Duration::ZERO, extensions: 0 };

/// Held for longer than a waiter leaves its holder alone, and extended again and again.
const EXTENDING: Work = Work { hold: Duration::from_millis(20), extensions: 4 };

/// Of what a hand-over between two costs bare sockets, a crowd's acquisition may cost so much more.
const RATE_MIN: f64 = 0.5;
const COMMANDS_MAX: f64 = 14.0;
const PUSHES_MAX: f64 = 2.0;
const SPREAD_MAX: f64 = 1.5;
const FAIR_MAX: f64 = 1.2;

/// From so many processes on, each is to come by the lock as often as the others; and with so many
/// it counts how often servers have to push.
const SPREAD_FROM: usize = 8;
const PUSHES_FROM: usize = 256;

/// How many rounds of the hand-over between two say what the floor is.
const FLOOR_ROUNDS: usize = 5;

/// What is executed for each acquisition, by name, if it is as often as this.
const NAMED_FROM: f64 = 0.05;

/// One contestant.
struct Standing {
    name: &'static str,
    work: Work,
    rounds: Vec<Round>,
}

/// Measures all sizes.
pub(crate) fn run(args: &Args, results: &mut Results) -> Result<String, Failure> {
    let plan = args.plan((1, 5_000), (3, 10_000));
    let floor = floor(args)?;
    let mut text = format!(
        "\n## {} nodes, many processes that want one lock\n\nEach takes the lock, releases it at \
         once (or holds it {:?} and extends it {} times), and takes it again: {} rounds of {:?}. \
         Between two processes bare sockets hand the lock over in {floor:.0} µs (p50): \
         {:.0} acquisitions/s.\n",
        args.nodes,
        EXTENDING.hold,
        EXTENDING.extensions,
        plan.rounds,
        plan.time,
        1e6 / floor
    );
    let mut chance = StdRng::seed_from_u64(plan.seed);
    for processes in args.processes.iter().copied() {
        let takes_part = |(_, work): &(&str, Work)| *work == AT_ONCE || processes >= PUSHES_FROM;
        let standing = |(name, work)| Standing { name, work, rounds: Vec::new() };
        let mut standings: Vec<_> = NAMES.into_iter().filter(takes_part).map(standing).collect();
        let mut failed = String::new();
        for _ in 0..plan.rounds {
            let mut order: Vec<usize> = (0..standings.len()).collect();
            order.shuffle(&mut chance);
            for at in order {
                let standing = &mut standings[at];
                progress::step(&format!("crowd: {processes} processes, {}", standing.label()));
                // On servers of its own: what one leaves behind is in no other's way.
                let servers = Servers::start(args.nodes)?;
                match crowd::run(&servers, standing.name, processes, plan.time, standing.work) {
                    Ok(round) => standing.rounds.push(round),
                    Err(failure) => {
                        failed += &format!("\nA round failed: {}: {failure}\n", standing.label());
                    }
                }
            }
        }
        text += &report(processes, &standings, floor, results);
        text += &failed;
    }
    Ok(text)
}

/// What a hand-over costs bare sockets, in microseconds.
fn floor(args: &Args) -> Result<f64, Failure> {
    let servers = Servers::start(args.nodes)?;
    let nodes = servers.nodes(Transport::Tcp);
    let heats = hand_over::run(&nodes, &["floor"], FLOOR_ROUNDS, args.seed)?;
    Ok(heats.first().map_or(0.0, |heat| median(&column(heat, 0.5))))
}

impl Standing {
    fn label(&self) -> String {
        match self.work == AT_ONCE {
            true => self.name.to_owned(),
            false => format!("{}, extending", self.name),
        }
    }

    /// How often too few nodes answered in time, in all rounds.
    fn failures(&self) -> u64 {
        let tallies = self.rounds.iter().flat_map(|round| &round.tallies);
        tallies.map(|tally| tally.failures).sum()
    }

    fn column(&self, figure: impl Fn(&Round) -> f64) -> Vec<f64> {
        self.rounds.iter().map(figure).collect()
    }

    /// Of all rounds.
    fn interval(&self, figure: impl Fn(&Round) -> f64) -> Interval {
        bootstrap(&self.column(figure))
    }
}

/// Per acquisition.
fn per(round: &Round, count: u64) -> f64 {
    count as f64 / round.acquisitions() as f64
}

fn rate(round: &Round) -> f64 {
    round.acquisitions() as f64 / round.time.as_secs_f64()
}

fn commands(round: &Round) -> f64 {
    per(round, round.counts.sent())
}

/// At most: each publication is for one process, and each tracked read is told of one change.
fn pushes(round: &Round) -> f64 {
    per(round, round.counts.calls("publish") + round.counts.calls("client|caching"))
}

fn report(processes: usize, standings: &[Standing], floor: f64, results: &mut Results) -> String {
    let head = [
        "contestant",
        "acquisitions/s",
        "commands each",
        "pushes each ≤",
        "longest wait ms",
        "luckiest / unluckiest",
        "handed over",
        "changed",
        "by time",
        "failures",
        "server µs each",
    ];
    let mut rows = Vec::new();
    let mut executed = String::new();
    for standing in standings.iter().filter(|standing| !standing.rounds.is_empty()) {
        let figure = |figure: fn(&Round) -> f64| median(&standing.column(figure));
        let woken = |of: fn(&crowd::Tally) -> u64| {
            let each = |round: &Round| per(round, round.tallies.iter().map(of).sum());
            format!("{:.3}", median(&standing.column(each)))
        };
        rows.push([
            standing.label(),
            format!("{:.0}", figure(rate)),
            format!("{:.2}", figure(commands)),
            format!("{:.2}", figure(pushes)),
            format!("{:.1}", figure(|round| round.longest_wait().as_secs_f64() * 1e3)),
            format!("{:.2}", figure(Round::spread)),
            woken(|tally| tally.handed_over),
            woken(|tally| tally.changed),
            woken(|tally| tally.by_time),
            standing.failures().to_string(),
            format!("{:.1}", figure(|round| per(round, round.counts.micros(&TOP)))),
        ]);
        executed += &format!("\nExecuted for each acquisition, {}: ", standing.label());
        executed += &names(&standing.rounds[0]);
        executed += ".\n";
        let what = |figure: &str| format!("crowd of {processes}, {}, {figure}", standing.label());
        results.note(Kind::Figure, what("acquisitions/s"), standing.interval(rate));
        results.note(Kind::Figure, what("commands each"), standing.interval(commands));
    }
    let promises = promises(processes, standings, floor);
    let text = format!(
        "\n### {processes} processes\n\n{}{executed}{}",
        table::align(&head, &rows),
        promise::tabulate(&promises)
    );
    results.promised(promises);
    text
}

/// What is not called by a script here.
const TOP: [&str; 2] = ["evalsha", "eval"];

/// What is executed for each acquisition, and how often.
fn names(round: &Round) -> String {
    let all = round.counts.all().into_iter();
    let each = all.map(|(name, calls)| (name, per(round, calls)));
    let mut each: Vec<_> = each.filter(|(_, each)| *each >= NAMED_FROM).collect();
    each.sort_unstable_by(|a, b| b.1.total_cmp(&a.1));
    each.iter().map(|(name, each)| format!("{name} {each:.2}")).collect::<Vec<_>>().join(", ")
}

fn promises(processes: usize, standings: &[Standing], floor: f64) -> Vec<Promise> {
    let Some(ours) = standings.iter().find(|it| it.name == "ours" && it.work == AT_ONCE) else {
        return Vec::new();
    };
    let bare = standings.iter().find(|it| it.name == "floor");
    let promise =
        |what: &str, bound, more_is_better, standing: &Standing, figure: Figure| Promise {
            what: format!("{processes} processes, {}: {what}", standing.label()),
            unit: "",
            bound,
            more_is_better,
            measured: standing.interval(&figure),
            floor: bare.filter(|it| !it.rounds.is_empty()).map(|it| median(&it.column(&figure))),
        };
    let beside_two: Figure = Box::new(move |round| rate(round) * floor / 1e6);
    let mut promises = vec![
        promise("acquisitions per hand-over of two", RATE_MIN, true, ours, beside_two),
        promise("commands each", COMMANDS_MAX, false, ours, Box::new(commands)),
    ];
    if processes >= SPREAD_FROM {
        let spread = Box::new(Round::spread);
        promises.push(promise("luckiest to unluckiest", SPREAD_MAX, false, ours, spread));
        for fair in standings.iter().filter(|it| matches!(it.name, "ours-fair" | "ours-strict")) {
            let spread = Box::new(Round::spread);
            promises.push(promise("luckiest to unluckiest", FAIR_MAX, false, fair, spread));
        }
    }
    if processes >= PUSHES_FROM {
        for standing in standings.iter().filter(|it| it.name == "ours") {
            let pushes = Box::new(pushes);
            promises.push(promise("pushes each", PUSHES_MAX, false, standing, pushes));
        }
    }
    promises
}

type Figure = Box<dyn Fn(&Round) -> f64>;
