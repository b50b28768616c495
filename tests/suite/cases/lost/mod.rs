//! `lost()` resolves before the validity ends, whatever befalls the lock.
//!
//! Many locks of random ages and TTLs are held on five nodes, then one blow hits them all. For each
//! lock that is one run: its `lost()` must have resolved while its last deadline was still ahead.
//! `QUORLOCK_LOSS_RUNS` says how many runs of each blow are made, `QUORLOCK_SEED` repeats one.

mod blow;
mod pulse;
mod round;

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use blow::{Blow, World};
use round::Round;

use crate::support::{Watchdog, need_server, tools};

/// Runs of each blow, unless the environment says otherwise, and locks that are held at a time.
const RUNS: [usize; 2] = [1_000, 250];

/// The same on nodes inside this process: unoptimised, they compete with the holders for the
/// processor, and a holder that is always at work is told late.
const RUNS_INSIDE: [usize; 2] = [200, 40];

/// Far above what the runs take: only a machine that hardly runs us comes near it.
const PATIENCE: Duration = Duration::from_secs(180);

/// The test of one blow.
macro_rules! case {
    ($name:ident, $blow:expr) => {
        #[test]
        fn $name() {
            need_server!();
            strike_many($blow);
        }
    };
}

case!(case_12_lost_resolves_in_time_when_the_key_is_deleted, Blow::Delete);
case!(case_12_lost_resolves_in_time_when_the_nodes_are_flushed, Blow::Flush);
case!(case_12_lost_resolves_in_time_when_another_takes_the_key, Blow::Steal);
case!(case_12_lost_resolves_in_time_when_a_majority_is_killed, Blow::KillMajority);
case!(case_12_lost_resolves_in_time_when_a_majority_hangs, Blow::HangMajority);
case!(case_12_lost_resolves_in_time_when_every_node_hangs, Blow::HangAll);
case!(case_12_lost_resolves_in_time_when_we_are_cut_off, Blow::CutOff);

fn strike_many(blow: Blow) {
    let [runs, batch] = match tools::find_kind() {
        Ok(tools::Kind::InProcess) => RUNS_INSIDE,
        _ => RUNS,
    };
    let runs = from_environment("QUORLOCK_LOSS_RUNS").unwrap_or(runs as u64);
    assert!(runs > 0, "QUORLOCK_LOSS_RUNS takes a number from 1 on");
    let seed = from_environment("QUORLOCK_SEED").unwrap_or_else(|| RandomState::new().hash_one(0));
    let mut random = Random(seed);
    let world = Arc::new(World::start(5));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let watchdog = Watchdog::with_patience(format!("{runs} runs that count"), PATIENCE);
    let (mut counted, mut uncounted, mut by_nodes, mut least) = (0, 0, 0, Duration::MAX);
    while counted < runs {
        let batch = batch.min(usize::try_from(runs - counted).unwrap());
        let Round { margins, gone, late, stalled } =
            runtime.block_on(round::play(&world, blow, &mut random, batch));
        assert!(late.is_empty(), "{blow:?}, seed {seed}: {} too late: {late:#?}", late.len());
        counted += margins.len() as u64;
        uncounted += stalled;
        by_nodes += gone;
        least = margins.into_iter().fold(least, Duration::min);
        world.recover(blow);
        watchdog.check();
    }
    // What the nodes can tell is not waited for until the end; only a machine that hardly lets us
    // run makes some locks end before they were asked.
    let told = 2 * by_nodes > counted;
    assert!(!blow.is_told_by_nodes() || told, "{blow:?}, seed {seed}: the nodes told {by_nodes}");
    println!(
        "{blow:?}, seed {seed}: {counted} runs in {:.1?}, the closest {least:.1?} before the end; \
         {uncounted} not counted, in which the machine did not let us run",
        watchdog.elapsed()
    );
}

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("a number"))
}

/// Numbers that a seed repeats (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A time of so many milliseconds, the last one included.
    fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.next() % (to - from + 1))
    }
}
