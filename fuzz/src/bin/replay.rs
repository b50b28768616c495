//! Runs the fuzz targets on any toolchain: first the corpus, then generated input.
//!
//! `replay [--target NAME] [--seconds N] [--seed N]`: by default all targets, 10 s each, with a
//! seed of the day.

use std::env;
use std::panic;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use quorlock_fuzz::{Generator, TARGETS, Target, corpus};

const USAGE: &str = "usage: replay [--target NAME] [--seconds N] [--seed N]";

fn main() -> ExitCode {
    let Some(options) = Options::read(env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(64);
    };
    let wanted = |name: &str| options.target.as_deref().is_none_or(|target| target == name);
    let targets: Vec<Target> = TARGETS.iter().copied().filter(|(name, _)| wanted(name)).collect();
    if targets.is_empty() {
        let names: Vec<_> = TARGETS.iter().map(|(name, _)| *name).collect();
        eprintln!("no such target; this build has {}", names.join(", "));
        return ExitCode::from(64);
    }
    for target in targets {
        if !run(target, Duration::from_secs(options.seconds), options.seed) {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

struct Options {
    target: Option<String>,
    seconds: u64,
    seed: u64,
}

impl Options {
    fn read(mut args: impl Iterator<Item = String>) -> Option<Self> {
        let mut options = Self { target: None, seconds: 10, seed: today() };
        while let Some(name) = args.next() {
            let value = args.next()?;
            match name.as_str() {
                "--target" => options.target = Some(value),
                "--seconds" => options.seconds = value.parse().ok()?,
                "--seed" => options.seed = value.parse().ok()?,
                _ => return None,
            }
        }
        Some(options)
    }
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
