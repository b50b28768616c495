//! Interleaved rounds: everybody once per round, in random order.

use hdrhistogram::Histogram;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use crate::args::Args;
use crate::clock;
use crate::contest::{Entrant, Failure, Runtime};
use crate::servers::Servers;

/// A round opens with a run that is not counted: this part of one that is.
const WARM_UP_PART: u32 = 8;

/// The longest latency that is told apart, in nanoseconds.
const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// One contestant's figures, round by round.
pub(crate) struct Standing {
    pub(crate) name: &'static str,
    pub(crate) runtime: Runtime,
    pub(crate) rounds: Vec<Round>,
    /// The acquisitions of all rounds, in nanoseconds.
    pub(crate) acquires: Histogram<u64>,
}

/// One contestant's figures of one round.
pub(crate) struct Round {
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) cycles_per_s: f64,
    pub(crate) cpu_us: f64,
}

/// All standings with so many callers.
pub(crate) struct Heat {
    pub(crate) callers: usize,
    pub(crate) standings: Vec<Standing>,
}

/// Runs the rounds.
pub(crate) fn run(
    args: &Args,
    servers: &Servers,
    field: &mut [Entrant],
    callers: usize,
) -> Result<Heat, Failure> {
    let mut chance = StdRng::seed_from_u64(args.seed);
    let mut heat = Heat { callers, standings: Vec::new() };
    let mut order = Vec::new();
    for (index, entrant) in field.iter().enumerate() {
        if callers <= entrant.callers_max {
            order.push((index, heat.standings.len()));
            heat.standings.push(Standing::new(entrant)?);
        }
    }
    for round in 1..=args.rounds {
        order.shuffle(&mut chance);
        eprintln!("{callers} callers: round {round} of {}", args.rounds);
        for &(index, standing) in &order {
            let entrant = &mut field[index];
            let name = format!("{}/{}", entrant.name, entrant.runtime.label());
            measure(args, servers, entrant, callers, &mut heat.standings[standing])
                .map_err(|failure| format!("{name} with {callers} callers: {failure}"))?;
        }
    }
    Ok(heat)
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
    servers.expect_empty(|| contestant.settle())?;

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
        cpu_us: cpu.as_secs_f64() * 1e6 / cycles.max(1.0),
    });
    Ok(())
}

impl Standing {
    fn new(entrant: &Entrant) -> Result<Self, Failure> {
        let Entrant { name, runtime, .. } = *entrant;
        Ok(Self { name, runtime, rounds: Vec::new(), acquires: histogram()? })
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
