//! Runs the fuzz targets on any toolchain: first the corpus, then generated input.
//!
//! `run [all|TARGET] [SECONDS] [SEED]`: all targets, 10 s each, a seed of the day by default.

use std::env;
use std::panic;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use quorlock_fuzz::{Generator, TARGETS, Target, corpus};

fn main() -> ExitCode {
    let mut args = env::args().skip(1);
    let wanted = args.next().unwrap_or_else(|| "all".to_owned());
    let seconds = args.next().map_or(Ok(10), |text| text.parse());
    let seed = args.next().map_or_else(|| Ok(today()), |text| text.parse());
    let (Ok(seconds), Ok(seed)) = (seconds, seed) else {
        eprintln!("usage: run [all|TARGET] [SECONDS] [SEED]");
        return ExitCode::from(64);
    };
    let targets = TARGETS.iter().filter(|(name, _)| wanted == "all" || wanted == *name);
    let mut ran = 0;
    for &target in targets {
        if !run(target, Duration::from_secs(seconds), seed) {
            return ExitCode::FAILURE;
        }
        ran += 1;
    }
    if ran == 0 {
        let names: Vec<_> = TARGETS.iter().map(|(name, _)| *name).collect();
        eprintln!("no target {wanted}; this build has {}", names.join(", "));
        return ExitCode::from(64);
    }
    ExitCode::SUCCESS
}

fn run((name, body): Target, time: Duration, seed: u64) -> bool {
    let corpus = corpus();
    let inputs = corpus.len();
    if !corpus.iter().all(|input| survives(name, body, input)) {
        return false;
    }
    let mut generator = Generator::new(seed, corpus);
    let mut generated = 0_u64;
    let end = now() + time;
    while now() < end {
        for _ in 0..64 {
            if !survives(name, body, &generator.input()) {
                return false;
            }
        }
        generated += 64;
    }
    println!("{name}: {inputs} of the corpus, {generated} generated in {time:?}, seed {seed}: ok");
    true
}

/// Runs one input. A panic is printed with it, ready to become a line of the data files.
fn survives(name: &str, body: fn(&[u8]), input: &[u8]) -> bool {
    let survived = panic::catch_unwind(|| body(input)).is_ok();
    if !survived {
        eprintln!("{name} failed on {} bytes: {}", input.len(), input.escape_ascii());
    }
    survived
}

fn today() -> u64 {
    now().as_secs() / 86_400
}

/// Time since 1970: coarse, and all that a bound in seconds needs.
#[expect(clippy::disallowed_methods, reason = "no lease hangs on how long a fuzzer runs")]
fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}
