//! Interleaved rounds: everybody once per round, in random order.

use std::time::Duration;

use hdrhistogram::Histogram;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use crate::contest::{Contestant, Entrant, Failure, Runtime, Yield, label};
use crate::count::{self, Perf};
use crate::servers::Servers;
use crate::{clock, progress};

/// A round opens with a run that is not counted: this part of one that is.
const WARM_UP_PART: u32 = 8;

/// How many rounds may be repeated: a machine that stands still for longer than a deadline is no
/// contestant's fault, one that does so again and again is no machine to measure on.
const REPEATS_MAX: usize = 3;

/// A failure may name every node; its beginning says enough.
const FAILURE_CHARS_MAX: usize = 200;

/// How long keys may take to go after a round: a fraction of their time to live.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// The same for those who leave keys anyway.
pub(crate) const PATIENCE_FOR_LEAVERS: Duration = Duration::from_millis(20);

/// The longest latency that is told apart, in nanoseconds.
const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// How many rounds of what length, and in which order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    pub(crate) time: Duration,
    pub(crate) seed: u64,
}

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
    plan: Plan,
    servers: &Servers,
    field: &mut [Entrant],
    callers: usize,
) -> Result<Heat, Failure> {
    let mut chance = StdRng::seed_from_u64(plan.seed);
    let mut heat = Heat { callers, standings: Vec::new(), repeated: Vec::new() };
    let mut order = Vec::new();
    for (index, entrant) in field.iter().enumerate() {
        if callers <= entrant.callers_max {
            order.push((index, heat.standings.len()));
            heat.standings.push(Standing::new(entrant.name, entrant.runtime)?);
        }
    }
    for round in 1..=plan.rounds {
        order.shuffle(&mut chance);
        progress::step(&format!("round {round} of {}, callers: {callers}", plan.rounds));
        for &(index, standing) in &order {
            let (entrant, standing) = (&mut field[index], &mut heat.standings[standing]);
            while let Err(failure) = measure(plan, servers, entrant, callers, standing) {
                let failure = format!("{}, {callers} callers: {failure}", standing.label());
                let failure: String = failure.chars().take(FAILURE_CHARS_MAX).collect();
                if heat.repeated.len() == REPEATS_MAX {
                    return Err(failure.into());
                }
                progress::step(&format!("again, for {failure}"));
                heat.repeated.push(failure);
                servers.left_behind(PATIENCE, || entrant.contestant.settle())?;
            }
        }
    }
    Ok(heat)
}

/// Runs everybody once more for the counts.
pub(crate) fn count(
    plan: Plan,
    servers: &Servers,
    field: &mut [Entrant],
    heat: &mut Heat,
) -> Result<(), Failure> {
    let callers = heat.callers;
    progress::step(&format!("counting, callers: {callers}"));
    // One caller does few operations, and what is around them is not to be counted with them.
    let time = if callers == 1 { plan.time * 2 } else { plan.time };
    let taking_part = field.iter_mut().filter(|entrant| callers <= entrant.callers_max);
    for (entrant, standing) in taking_part.zip(&mut heat.standings) {
        let contestant = &mut entrant.contestant;
        contestant.run(callers, time / WARM_UP_PART)?;
        let operations = |run: Yield| (2 * run.acquires_ns.len()).max(1) as f64;
        let (run, allocations) = count::allocations(|| contestant.run(callers, time));
        standing.allocations = Some(allocations as f64 / operations(run?));
        if let Some(perf) = Perf::start() {
            let run = contestant.run(callers, plan.time);
            let calls = perf.stop();
            let operations = operations(run?);
            standing.calls = calls.map(|calls| calls as f64 / operations);
        }
        servers.left_behind(PATIENCE_FOR_LEAVERS, || contestant.settle())?;
    }
    Ok(())
}

/// Runs one contestant for one round. What it leaves behind is a failure.
fn measure(
    plan: Plan,
    servers: &Servers,
    entrant: &mut Entrant,
    callers: usize,
    standing: &mut Standing,
) -> Result<(), Failure> {
    let (mut round, acquires) = timed(&mut *entrant.contestant, callers, plan.time)?;
    let patience = if entrant.leaves_keys { PATIENCE_FOR_LEAVERS } else { PATIENCE };
    let left = servers.left_behind(patience, || entrant.contestant.settle())?;
    if left > 0 && !entrant.leaves_keys {
        return Err(format!("{left} keys are left on the nodes").into());
    }
    round.left = left as f64 * 1e3 / acquires.len().max(1) as f64;
    standing.acquires.add(&acquires)?;
    standing.rounds.push(round);
    Ok(())
}

/// Warms up, then runs for so long and takes the figures.
pub(crate) fn timed(
    contestant: &mut dyn Contestant,
    callers: usize,
    time: Duration,
) -> Result<(Round, Histogram<u64>), Failure> {
    contestant.run(callers, time / WARM_UP_PART)?;
    let (began, cpu) = (clock::now(), clock::cpu());
    let run = contestant.run(callers, time)?;
    let (elapsed, cpu) = (began.elapsed(), clock::cpu().saturating_sub(cpu));
    let acquires = histogram(&run.acquires_ns)?;
    let cycles = acquires.len() as f64;
    let round = Round {
        p50_us: acquires.value_at_quantile(0.5) as f64 / 1e3,
        p99_us: acquires.value_at_quantile(0.99) as f64 / 1e3,
        cycles_per_s: cycles / elapsed.as_secs_f64(),
        left: 0.0,
        cpu_us: cpu.as_secs_f64() * 1e6 / cycles.max(1.0),
    };
    Ok((round, acquires))
}

impl Standing {
    pub(crate) fn new(name: &'static str, runtime: Runtime) -> Result<Self, Failure> {
        Ok(Self {
            name,
            runtime,
            rounds: Vec::new(),
            acquires: histogram(&[])?,
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

/// Of nanoseconds; three digits are told apart.
pub(crate) fn histogram(samples_ns: &[u32]) -> Result<Histogram<u64>, Failure> {
    let mut histogram = Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3)?;
    for sample_ns in samples_ns {
        histogram.saturating_record(u64::from(*sample_ns));
    }
    Ok(histogram)
}
