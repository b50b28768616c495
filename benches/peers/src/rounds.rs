//! Interleaved rounds: everybody once per round, in random order.

use std::time::Duration;

use hdrhistogram::Histogram;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use crate::args::Args;
use crate::clock;
use crate::contest::{Entrant, Failure, Runtime, Yield, label};
use crate::count::{self, Perf};
use crate::servers::Servers;

/// A round opens with a run that is not counted: this part of one that is.
const WARM_UP_PART: u32 = 8;

/// How many rounds may be repeated: a machine that stands still for longer than a deadline is no
/// contestant's fault, one that does so again and again is no machine to measure on.
const REPEATS_MAX: usize = 3;

/// How long keys may take to go after a round: a fraction of their time to live.
const PATIENCE: Duration = Duration::from_secs(2);

/// The same for those who leave keys anyway.
const PATIENCE_FOR_LEAVERS: Duration = Duration::from_millis(20);

/// The longest latency that is told apart, in nanoseconds.
const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// One contestant's figures, round by round.
pub(crate) struct Standing {
    pub(crate) name: &'static str,
    pub(crate) runtime: Runtime,
    pub(crate) rounds: Vec<Round>,
    /// The acquisitions of all rounds, in nanoseconds.
    pub(crate) acquires: Histogram<u64>,
    /// Heap allocations per operation.
    pub(crate) allocations: Option<f64>,
    /// System calls per operation.
    pub(crate) calls: Option<f64>,
}

/// One contestant's figures of one round.
pub(crate) struct Round {
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) cycles_per_s: f64,
    pub(crate) cpu_us: f64,
    /// Keys left on all nodes together, per 1,000 cycles.
    pub(crate) left: f64,
}

/// All standings with so many callers.
pub(crate) struct Heat {
    pub(crate) callers: usize,
    pub(crate) standings: Vec<Standing>,
    /// Rounds that had to be repeated, and why.
    pub(crate) repeated: Vec<String>,
}

impl Heat {
    /// A contestant's standing, if it took part.
    pub(crate) fn find(&self, name: &str, runtime: Runtime) -> Option<&Standing> {
        self.standings.iter().find(|it| it.name == name && it.runtime == runtime)
    }
}

/// Runs the rounds.
pub(crate) fn run(
    args: &Args,
    servers: &Servers,
    field: &mut [Entrant],
    callers: usize,
) -> Result<Heat, Failure> {
    let mut chance = StdRng::seed_from_u64(args.seed);
    let mut heat = Heat { callers, standings: Vec::new(), repeated: Vec::new() };
    let mut order = Vec::new();
    for (index, entrant) in field.iter().enumerate() {
        if callers <= entrant.callers_max {
            order.push((index, heat.standings.len()));
            heat.standings.push(Standing::new(entrant)?);
        }
    }
    let mut repeats = 0;
    for round in 1..=args.rounds {
        order.shuffle(&mut chance);
        eprintln!("{callers} callers: round {round} of {}", args.rounds);
        for &(index, standing) in &order {
            let (entrant, standing) = (&mut field[index], &mut heat.standings[standing]);
            while let Err(failure) = measure(args, servers, entrant, callers, standing) {
                let failure = format!("{}, {callers} callers: {failure}", standing.label());
                repeats += 1;
                if repeats > REPEATS_MAX {
                    return Err(failure.into());
                }
                eprintln!("again, for {failure}");
                heat.repeated.push(failure);
                servers.left_behind(PATIENCE, || entrant.contestant.settle())?;
            }
        }
    }
    eprintln!("{callers} callers: counting");
    for &(index, standing) in &order {
        count(args, servers, &mut field[index], callers, &mut heat.standings[standing])?;
    }
    Ok(heat)
}

/// Runs one contestant for its counts.
fn count(
    args: &Args,
    servers: &Servers,
    entrant: &mut Entrant,
    callers: usize,
    standing: &mut Standing,
) -> Result<(), Failure> {
    let contestant = &mut entrant.contestant;
    contestant.run(callers, args.round / WARM_UP_PART)?;
    let operations = |run: Yield| (2 * run.acquires_ns.len()).max(1) as f64;
    let (run, allocations) = count::allocations(|| contestant.run(callers, args.round));
    standing.allocations = Some(allocations as f64 / operations(run?));
    if let Some(perf) = Perf::start() {
        let run = contestant.run(callers, args.round);
        let calls = perf.stop();
        let operations = operations(run?);
        standing.calls = calls.map(|calls| calls as f64 / operations);
    }
    servers.left_behind(PATIENCE_FOR_LEAVERS, || contestant.settle())?;
    Ok(())
}

/// Runs one contestant for one round. What it leaves behind is a failure.
fn measure(
    args: &Args,
    servers: &Servers,
    entrant: &mut Entrant,
    callers: usize,
    standing: &mut Standing,
) -> Result<(), Failure> {
    let contestant = &mut entrant.contestant;
    contestant.run(callers, args.round / WARM_UP_PART)?;
    let (began, cpu) = (clock::now(), clock::cpu());
    let run = contestant.run(callers, args.round)?;
    let (elapsed, cpu) = (began.elapsed(), clock::cpu().saturating_sub(cpu));
    let patience = if entrant.leaves_keys { PATIENCE_FOR_LEAVERS } else { PATIENCE };
    let left = servers.left_behind(patience, || contestant.settle())?;
    if left > 0 && !entrant.leaves_keys {
        return Err(format!("{left} keys are left on the nodes").into());
    }

    let cycles = run.acquires_ns.len() as f64;
    let mut acquires = histogram()?;
    for acquire_ns in run.acquires_ns {
        acquires.saturating_record(u64::from(acquire_ns));
    }
    standing.acquires.add(&acquires)?;
    standing.rounds.push(Round {
        p50_us: acquires.value_at_quantile(0.5) as f64 / 1e3,
        p99_us: acquires.value_at_quantile(0.99) as f64 / 1e3,
        cycles_per_s: cycles / elapsed.as_secs_f64(),
        left: left as f64 * 1e3 / cycles.max(1.0),
        cpu_us: cpu.as_secs_f64() * 1e6 / cycles.max(1.0),
    });
    Ok(())
}

impl Standing {
    fn new(entrant: &Entrant) -> Result<Self, Failure> {
        let Entrant { name, runtime, .. } = *entrant;
        Ok(Self {
            name,
            runtime,
            rounds: Vec::new(),
            acquires: histogram()?,
            allocations: None,
            calls: None,
        })
    }

    /// Name and runtime.
    pub(crate) fn label(&self) -> String {
        label(self.name, self.runtime)
    }

    /// One figure of each round.
    pub(crate) fn column(&self, figure: fn(&Round) -> f64) -> Vec<f64> {
        self.rounds.iter().map(figure).collect()
    }

    /// One quantile of all acquisitions, in microseconds.
    pub(crate) fn quantile_us(&self, quantile: f64) -> f64 {
        self.acquires.value_at_quantile(quantile) as f64 / 1e3
    }
}

/// Three digits are told apart.
fn histogram() -> Result<Histogram<u64>, Failure> {
    Ok(Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3)?)
}
