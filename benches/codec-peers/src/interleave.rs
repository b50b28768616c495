//! Timing on a machine that others use too: everyone in turn, in rounds, compared within each.
//!
//! In a round each contestant works for some milliseconds, in an order that rotates; what counts
//! is the processor time of the thread, which does not run while others have the processor. What
//! is reported is the median over the rounds of the ratio to ours *in the same round*, with a
//! bootstrap interval. Ours runs twice under two names: where the interval of another overlaps
//! that of the second, the two are not distinguishable.

use std::hint::black_box;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Someone who does one operation each time it is called.
pub struct Contestant<'a> {
    /// For the table.
    pub name: String,
    /// The operation. What it returns is looked at, so that the work is not left out.
    pub run: Box<dyn FnMut() -> usize + 'a>,
}

impl std::fmt::Debug for Contestant<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Row {
    /// Whose.
    pub name: String,
    /// Nanoseconds for one operation: the median over the rounds.
    pub nanoseconds: f64,
    /// Time relative to the first contestant's: median, and 95 % interval.
    pub ratio: (f64, f64, f64),
}

const ROUNDS: usize = 31;
const TURN: Duration = Duration::from_millis(12);

/// Runs all contestants; the first is the one the others are compared with.
pub fn run(contestants: &mut [Contestant<'_>]) -> Vec<Row> {
    let batches: Vec<u32> = contestants.iter_mut().map(calibrate).collect();
    let mut times = vec![Vec::with_capacity(ROUNDS); contestants.len()];
    for round in 0..ROUNDS {
        for turn in 0..contestants.len() {
            let place = (turn + round) % contestants.len();
            let elapsed = time(&mut contestants[place], batches[place]);
            times[place].push(elapsed.as_secs_f64() * 1e9 / f64::from(batches[place]));
        }
    }
    let ratios = |place: usize| times[place].iter().zip(&times[0]).map(|(own, ours)| own / ours);
    let row = |place: usize| Row {
        name: contestants[place].name.clone(),
        nanoseconds: median(times[place].clone()),
        ratio: interval(&ratios(place).collect::<Vec<_>>()),
    };
    (0..contestants.len()).map(row).collect()
}

/// How many operations fill a turn.
fn calibrate(contestant: &mut Contestant<'_>) -> u32 {
    let mut batch = 1;
    while time(contestant, batch) < TURN / 2 && batch < u32::MAX / 2 {
        batch *= 2;
    }
    batch
}

fn time(contestant: &mut Contestant<'_>, batch: u32) -> Duration {
    let start = processor_time();
    for _ in 0..batch {
        black_box((contestant.run)());
    }
    processor_time().saturating_sub(start)
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The median, and where 95 of 100 medians of resampled rounds lie.
fn interval(values: &[f64]) -> (f64, f64, f64) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        values[usize::try_from(state % values.len() as u64).unwrap_or(0)]
    };
    let mut medians: Vec<f64> =
        (0..1000).map(|_| median((0..values.len()).map(|_| draw()).collect())).collect();
    medians.sort_by(f64::total_cmp);
    (median(values.to_vec()), medians[25], medians[974])
}
