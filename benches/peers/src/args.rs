//! What the command line asks for.

use std::path::PathBuf;
use std::time::Duration;

use crate::clock;
use crate::contest::{Failure, Runtime, label};
use crate::rounds::Plan;
use crate::{crowd, hand_over};

const USAGE: &str = "\
usage: quorlock-peers [quick|record [DATE]] [options]
       quorlock-peers agree OLD.tsv NEW.tsv

  quick                 a look, within ten minutes (the default)
  record [DATE]         the whole, within forty; kept in benches/record (today), and what is not
                        the whole in a file that bears the scenarios' names
  agree OLD NEW         whether two records agree within their intervals

  --scenarios NAME,…    of peers,one,open,delay,hung,growth,tls,handover,line,crowd,
                        foreign,native (all but the last, which needs a Valkey from 9.0 on)
  --callers N,…         how many callers at once, among the peers (1,64,512)
  --processes N,…       how many processes want one lock, in a crowd (2,8,64,256)
  --nodes N             how many servers, among the peers (5)
  --rate N              cycles started per second, in the open loop (20000)
  --rounds N            how many rounds each contestant runs
  --round-ms N          how long a round is
  --only NAME,…         only the contestants whose names begin so (ours/multi)
  --direct-writes D     the option of that name, for ours
  --seed N              the order of the rounds (chance)";

/// What to do.
#[derive(Clone, Debug)]
pub(crate) enum Command {
    Measure(Args),
    Agree(PathBuf, PathBuf),
    /// To take part as one of two processes; of no use to people.
    HandOver(String, Vec<String>),
    /// The same, of many.
    Crowd(String, Vec<String>),
}

/// Whether to look or to keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    Quick,
    Record,
}

/// What can be measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scenario {
    Peers,
    One,
    Open,
    Delay,
    Hung,
    Growth,
    Tls,
    HandOver,
    Line,
    Crowd,
    Foreign,
    Native,
}

/// All of them, in the record's order.
const SCENARIOS: [(&str, Scenario); 12] = [
    ("peers", Scenario::Peers),
    ("one", Scenario::One),
    ("open", Scenario::Open),
    ("delay", Scenario::Delay),
    ("hung", Scenario::Hung),
    ("growth", Scenario::Growth),
    ("tls", Scenario::Tls),
    ("handover", Scenario::HandOver),
    ("line", Scenario::Line),
    ("crowd", Scenario::Crowd),
    ("foreign", Scenario::Foreign),
    ("native", Scenario::Native),
];

/// Not every server knows what it measures.
const ASKED_FOR: Scenario = Scenario::Native;

/// The arguments, with their defaults.
#[derive(Clone, Debug)]
pub(crate) struct Args {
    pub(crate) mode: Mode,
    pub(crate) date: String,
    pub(crate) scenarios: Vec<Scenario>,
    pub(crate) callers: Vec<usize>,
    pub(crate) processes: Vec<usize>,
    pub(crate) nodes: usize,
    pub(crate) rate: u32,
    pub(crate) seed: u64,
    rounds: Option<usize>,
    round_ms: Option<u64>,
    only: Vec<String>,
    pub(crate) direct_writes: Option<usize>,
    /// Ours, where the default is not what is to be measured.
    pub(crate) node_timeout: Option<Duration>,
    /// What `--scenarios` says.
    pub(crate) some: Option<String>,
    /// Whether nothing was changed or left out.
    pub(crate) whole: bool,
}

impl Scenario {
    /// Whether it measures cycles of locks that no one else wants.
    pub(crate) fn is_of_cycles(self) -> bool {
        !matches!(self, Self::HandOver | Self::Line | Self::Crowd | Self::Foreign)
    }
}

impl Command {
    /// Reads the arguments behind the program's name.
    pub(crate) fn parse(args: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut args = args.peekable();
        let mode = match args.next_if(|arg| !arg.starts_with('-')).as_deref() {
            None | Some("quick") => Mode::Quick,
            Some("record") => Mode::Record,
            Some(word @ (hand_over::CHILD | crowd::CHILD)) => {
                let is_one_of_two = word == hand_over::CHILD;
                let name = args.next().ok_or("whose process?")?;
                let part = if is_one_of_two { Self::HandOver } else { Self::Crowd };
                return Ok(part(name, args.collect()));
            }
            Some("agree") => {
                let (Some(old), Some(new), None) = (args.next(), args.next(), args.next()) else {
                    return Err(format!("agree takes two files\n{USAGE}").into());
                };
                return Ok(Self::Agree(old.into(), new.into()));
            }
            Some(other) => return Err(format!("what is `{other}`?\n{USAGE}").into()),
        };
        let date = args.next_if(|arg| mode == Mode::Record && !arg.starts_with('-'));
        let date = date.unwrap_or_else(clock::date);
        if !date.chars().all(|it| it.is_ascii_alphanumeric() || it == '-') {
            return Err(format!("`{date}` is no date\n{USAGE}").into());
        }
        let mut parsed = Args::new(mode, date);
        while let Some(name) = args.next() {
            if name == "--help" || name == "-h" {
                return Err(USAGE.into());
            }
            let value = args.next().ok_or_else(|| format!("{name} needs a value\n{USAGE}"))?;
            parsed.set(&name, &value)?;
        }
        Ok(Self::Measure(parsed))
    }
}

impl Args {
    fn new(mode: Mode, date: String) -> Self {
        Self {
            mode,
            date,
            scenarios: SCENARIOS
                .map(|(_, scenario)| scenario)
                .into_iter()
                .filter(|scenario| *scenario != ASKED_FOR)
                .collect(),
            callers: vec![1, 64, 512],
            processes: vec![2, 8, 64, 256],
            nodes: 5,
            rate: 20_000,
            seed: rand::random(),
            rounds: None,
            round_ms: None,
            only: Vec::new(),
            direct_writes: None,
            node_timeout: None,
            some: None,
            whole: true,
        }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        let number = || -> Result<usize, Failure> {
            value.parse().map_err(|_| format!("{name} takes a number, not `{value}`").into())
        };
        self.whole &= name == "--seed";
        match name {
            "--scenarios" => {
                self.scenarios = scenarios(value)?;
                self.some = Some(value.replace(',', "-"));
            }
            "--callers" => self.callers = numbers(value)?,
            "--processes" => self.processes = numbers(value)?,
            "--nodes" => self.nodes = number()?.clamp(1, 15),
            "--rate" => self.rate = u32::try_from(number()?.clamp(1, 1_000_000))?,
            "--rounds" => self.rounds = Some(number()?.max(2)),
            "--round-ms" => self.round_ms = Some(number()?.max(10) as u64),
            "--only" => self.only = value.split(',').map(str::to_owned).collect(),
            "--direct-writes" => self.direct_writes = Some(number()?),
            "--seed" => self.seed = number()? as u64,
            _ => return Err(format!("what is `{name}`?\n{USAGE}").into()),
        }
        Ok(())
    }

    /// With another deadline for ours.
    pub(crate) fn node_timeout(mut self, deadline: Duration) -> Self {
        self.node_timeout = Some(deadline);
        self
    }

    /// How many rounds of how many milliseconds, for a look and for the record, unless the command
    /// line says it.
    pub(crate) fn plan(&self, look: (usize, u64), record: (usize, u64)) -> Plan {
        let (rounds, round_ms) = if self.mode == Mode::Record { record } else { look };
        Plan {
            rounds: self.rounds.unwrap_or(rounds),
            time: Duration::from_millis(self.round_ms.unwrap_or(round_ms)),
            seed: self.seed,
        }
    }

    /// Whether this contestant takes part.
    pub(crate) fn wants(&self, name: &str, runtime: Runtime) -> bool {
        let label = label(name, runtime);
        self.only.is_empty() || self.only.iter().any(|only| label.starts_with(only.as_str()))
    }
}

fn scenarios(list: &str) -> Result<Vec<Scenario>, Failure> {
    let scenario = |text: &str| match SCENARIOS.iter().find(|(name, _)| *name == text) {
        Some((_, scenario)) => Ok(*scenario),
        None => Err(format!("what is the scenario `{text}`?\n{USAGE}").into()),
    };
    list.split(',').map(scenario).collect()
}

fn numbers(list: &str) -> Result<Vec<usize>, Failure> {
    let number = |text: &str| match text.parse() {
        Ok(number) if (1..=4096).contains(&number) => Ok(number),
        _ => Err(format!("callers are counted from 1 to 4,096, not `{text}`").into()),
    };
    list.split(',').map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Command, Failure> {
        Command::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn a_record_is_whole_unless_something_is_changed() {
        let whole = |line: &str| match parse(line).unwrap() {
            Command::Measure(args) => args.whole,
            _ => panic!("{line}"),
        };
        assert!(whole("record 2026-01-31"));
        assert!(whole("record --seed 7"));
        assert!(!whole("record --scenarios open"));
        assert!(!whole("record --rounds 20 --seed 7"));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        let lines =
            ["recrod", "quick now", "record ../x", "agree one", "--scenarios all", "--rate fast"];
        for line in lines {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
