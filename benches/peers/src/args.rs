//! What the command line asks for.

use std::time::Duration;

use crate::contest::{Failure, Runtime, label};

const USAGE: &str = "\
usage: quorlock-peers [quick|record] [options]

  quick                 a look: 6 rounds of 200 ms (the default)
  record                20 rounds of 300 ms

  --callers N,…         how many callers at once (1,64,512)
  --nodes N             how many servers (5)
  --rounds N            how many rounds each contestant runs
  --round-ms N          how long a round is
  --only NAME,…         only the contestants whose names begin so (ours/multi)
  --direct-writes D     the option of that name, for ours
  --seed N              the order of the rounds (chance)";

/// Whether to look or to keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    Quick,
    Record,
}

/// The arguments, with their defaults.
#[derive(Clone, Debug)]
pub(crate) struct Args {
    pub(crate) mode: Mode,
    pub(crate) callers: Vec<usize>,
    pub(crate) nodes: usize,
    pub(crate) rounds: usize,
    pub(crate) round: Duration,
    pub(crate) only: Vec<String>,
    pub(crate) direct_writes: Option<usize>,
    pub(crate) seed: u64,
}

impl Args {
    /// Reads the arguments behind the program's name.
    pub(crate) fn parse(args: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut args = args.peekable();
        let mode = match args.next_if(|arg| !arg.starts_with('-')).as_deref() {
            None | Some("quick") => Mode::Quick,
            Some("record") => Mode::Record,
            Some(other) => return Err(format!("what is `{other}`?\n{USAGE}").into()),
        };
        let (rounds, round_ms) = if mode == Mode::Record { (20, 300) } else { (6, 200) };
        let mut parsed = Self {
            mode,
            callers: vec![1, 64, 512],
            nodes: 5,
            rounds,
            round: Duration::from_millis(round_ms),
            only: Vec::new(),
            direct_writes: None,
            seed: rand::random(),
        };
        while let Some(name) = args.next() {
            if name == "--help" || name == "-h" {
                return Err(USAGE.into());
            }
            let value = args.next().ok_or_else(|| format!("{name} needs a value\n{USAGE}"))?;
            let number = || -> Result<usize, Failure> {
                value.parse().map_err(|_| format!("{name} takes a number, not `{value}`").into())
            };
            match name.as_str() {
                "--callers" => parsed.callers = numbers(&value)?,
                "--nodes" => parsed.nodes = number()?.clamp(1, 15),
                "--rounds" => parsed.rounds = number()?.max(2),
                "--round-ms" => parsed.round = Duration::from_millis(number()?.max(10) as u64),
                "--only" => parsed.only = value.split(',').map(str::to_owned).collect(),
                "--direct-writes" => parsed.direct_writes = Some(number()?),
                "--seed" => parsed.seed = number()? as u64,
                _ => return Err(format!("what is `{name}`?\n{USAGE}").into()),
            }
        }
        Ok(parsed)
    }

    /// Whether this contestant takes part.
    pub(crate) fn wants(&self, name: &str, runtime: Runtime) -> bool {
        let label = label(name, runtime);
        self.only.is_empty() || self.only.iter().any(|only| label.starts_with(only.as_str()))
    }
}

fn numbers(list: &str) -> Result<Vec<usize>, Failure> {
    let number = |text: &str| match text.parse() {
        Ok(number) if (1..=4096).contains(&number) => Ok(number),
        _ => Err(format!("callers are counted from 1 to 4,096, not `{text}`").into()),
    };
    list.split(',').map(number).collect()
}
