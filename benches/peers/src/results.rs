//! Every figure of a run by its name, for programs to read: the file beside the record.
//!
//! A line is `kind`, `what`, `median`, `low`, `high`, with tabs between. Ratios and promises were
//! taken within one run and can be compared with another's; bare figures move with the machine.

use crate::contest::Failure;
use crate::promise::Promise;
use crate::stats::Interval;

/// What a line is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A figure with a bound.
    Promise,
    /// Ours divided by another's, in the same rounds.
    Ratio,
    /// A figure of one contestant.
    Figure,
}

const KINDS: [(Kind, &str); 3] =
    [(Kind::Promise, "promise"), (Kind::Ratio, "ratio"), (Kind::Figure, "figure")];

/// One named figure.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Line {
    pub(crate) kind: Kind,
    pub(crate) what: String,
    pub(crate) interval: Interval,
}

/// All of a run.
#[derive(Debug, Default)]
pub(crate) struct Results {
    pub(crate) lines: Vec<Line>,
    pub(crate) promises: Vec<Promise>,
}

impl Results {
    /// Notes a figure.
    pub(crate) fn note(&mut self, kind: Kind, what: String, interval: Interval) {
        self.lines.push(Line { kind, what, interval });
    }

    /// Notes promises and what became of them.
    pub(crate) fn promised(&mut self, promises: Vec<Promise>) {
        for promise in &promises {
            self.note(Kind::Promise, promise.what.clone(), promise.measured);
        }
        self.promises.extend(promises);
    }

    /// As a file.
    pub(crate) fn to_tsv(&self) -> String {
        let mut text = "kind\twhat\tmedian\tlow\thigh\n".to_owned();
        for Line { kind, what, interval } in &self.lines {
            let kind = KINDS.iter().find(|(it, _)| it == kind).map_or("", |(_, name)| name);
            let Interval { median, low, high } = interval;
            text += &format!("{kind}\t{what}\t{median:.4}\t{low:.4}\t{high:.4}\n");
        }
        text
    }

    /// From a file. The promises' bounds are not in it.
    pub(crate) fn from_tsv(text: &str) -> Result<Self, Failure> {
        let lines: Result<_, Failure> = text.lines().skip(1).map(line).collect();
        Ok(Self { lines: lines?, promises: Vec::new() })
    }
}

fn line(text: &str) -> Result<Line, Failure> {
    let bad = || format!("not a line of figures: {text}");
    let cells: Vec<&str> = text.split('\t').collect();
    let [kind, what, median, low, high] = *cells else { return Err(bad().into()) };
    let kind = KINDS.iter().find(|(_, name)| *name == kind).ok_or_else(bad)?.0;
    let number = |text: &str| text.parse::<f64>().map_err(|_| bad());
    let interval = Interval { median: number(median)?, low: number(low)?, high: number(high)? };
    Ok(Line { kind, what: what.to_owned(), interval })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_gives_back_what_was_written() {
        let mut results = Results::default();
        let interval = Interval { median: 1.25, low: 1.0, high: 1.5 };
        results.note(Kind::Ratio, "ours/multi to floor/thread, p50".to_owned(), interval);
        results.note(Kind::Figure, "ours/multi, p50 µs".to_owned(), interval);
        let read = Results::from_tsv(&results.to_tsv()).unwrap();
        assert_eq!(read.lines, results.lines);
    }

    #[test]
    fn what_is_no_line_is_refused() {
        for text in ["ratio\tx\t1\t1", "what\tx\t1\t1\t1", "ratio\tx\tone\t1\t1"] {
            assert!(Results::from_tsv(&format!("head\n{text}\n")).is_err(), "{text}");
        }
    }
}
