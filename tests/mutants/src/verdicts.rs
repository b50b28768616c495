//! What has been judged, in a file that grows by a line for each.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use crate::Failure;
use crate::judge::Verdict;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Caught,
    TooSlow,
    Missed,
    Unviable,
}

impl Outcome {
    const ALL: [Self; 4] = [Self::Caught, Self::TooSlow, Self::Missed, Self::Unviable];

    pub(crate) const fn is_caught(self) -> bool {
        matches!(self, Self::Caught | Self::TooSlow)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Caught => "caught",
            Self::TooSlow => "too slow",
            Self::Missed => "missed",
            Self::Unviable => "unviable",
        })
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Judged {
    pub(crate) outcome: Outcome,
    /// Whose tests have caught it, or were the last that did not.
    pub(crate) stage: String,
    pub(crate) test: String,
    pub(crate) name: String,
}

impl Judged {
    pub(crate) fn new(verdict: Verdict, stage: &str, name: &str) -> Self {
        let (outcome, test) = match verdict {
            Verdict::Caught(test) => (Outcome::Caught, test),
            Verdict::TooSlow => (Outcome::TooSlow, String::new()),
            Verdict::Missed => (Outcome::Missed, String::new()),
        };
        Self { outcome, stage: stage.to_owned(), test, name: name.to_owned() }
    }

    pub(crate) fn unviable(name: &str) -> Self {
        let (stage, test) = ("compiler".to_owned(), String::new());
        Self { outcome: Outcome::Unviable, stage, test, name: name.to_owned() }
    }

    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.split('\t').map(str::to_owned);
        let mut next = || parts.next();
        let outcome = next()?;
        let outcome = Outcome::ALL.into_iter().find(|one| one.to_string() == outcome)?;
        Some(Self { outcome, stage: next()?, test: next()?, name: next()? })
    }
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\t{}\t{}\t{}", self.outcome, self.stage, self.test, self.name)
    }
}

pub(crate) struct Verdicts {
    pub(crate) judged: Vec<Judged>,
    file: File,
}

impl Verdicts {
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let judged = fs::read_to_string(path)?.lines().filter_map(Judged::parse).collect();
        Ok(Self { judged, file })
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.judged.iter().any(|one| one.name == name)
    }

    pub(crate) fn add(&mut self, judged: Judged) -> Result<(), Failure> {
        writeln!(self.file, "{judged}")?;
        self.judged.push(judged);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let verdict = Verdict::Caught("a::b".to_owned());
        for judged in [Judged::new(verdict, "suite", "replace < with <="), Judged::unviable("x")] {
            assert_eq!(Judged::parse(&judged.to_string()), Some(judged));
        }
        assert_eq!(Judged::parse("caught\tsuite"), None);
    }
}
