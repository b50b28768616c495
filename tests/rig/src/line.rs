//! What a client process tells, one line each, on its standard output.
//!
//! ```text
//! + HOLD KEY AT UNTIL    a lock was obtained before AT, and is claimed to be held until UNTIL
//! = HOLD AT UNTIL        it was still held after AT, and is claimed to be held until UNTIL
//! - HOLD AT HOW          it is being given up, which began after AT
//! . WHAT                 something happened that is worth counting: a cycle's end, a failure
//! ~ TOKEN                the key with this value may be left behind, as the client asked
//! ! WHY                  the library broke its word, by itself
//! ```
//!
//! Times are nanoseconds of `CLOCK_MONOTONIC`. A foreign client, in whatever language, writes the
//! same lines. A line that a killed client did not finish is no line.

use std::fmt;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Granted { hold: u64, key: String, at: u64, until: u64 },
    Held { hold: u64, at: u64, until: u64 },
    Ended { hold: u64, at: u64, how: String },
    Count(String),
    Spared(String),
    Broken(String),
}

impl Line {
    /// Reads one line without its end.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (mark, rest) = text.split_at_checked(2)?;
        let mut words = rest.split(' ');
        let mut number = || words.next()?.parse::<u64>().ok();
        Some(match mark {
            "+ " => {
                let hold = number()?;
                let key = rest.split(' ').nth(1)?.to_owned();
                let mut times = rest.split(' ').skip(2).map(|word| word.parse().ok());
                Self::Granted { hold, key, at: times.next()??, until: times.next()?? }
            }
            "= " => Self::Held { hold: number()?, at: number()?, until: number()? },
            "- " => {
                let (hold, at) = (number()?, number()?);
                Self::Ended { hold, at, how: words.next()?.to_owned() }
            }
            ". " => Self::Count(rest.to_owned()),
            "~ " => Self::Spared(rest.to_owned()),
            "! " => Self::Broken(rest.to_owned()),
            _ => return None,
        })
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Granted { hold, key, at, until } => write!(f, "+ {hold} {key} {at} {until}"),
            Self::Held { hold, at, until } => write!(f, "= {hold} {at} {until}"),
            Self::Ended { hold, at, how } => write!(f, "- {hold} {at} {how}"),
            Self::Count(what) => write!(f, ". {what}"),
            Self::Spared(token) => write!(f, "~ {token}"),
            Self::Broken(why) => write!(f, "! {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_comes_back_as_it_was() {
        let lines = [
            Line::Granted { hold: 1, key: "k0".into(), at: 5, until: 9 },
            Line::Held { hold: 1, at: 6, until: 10 },
            Line::Ended { hold: 1, at: 7, how: "released".into() },
            Line::Count("busy".into()),
            Line::Spared("abc@host".into()),
            Line::Broken("a guard came late by 3 ms".into()),
        ];
        for line in lines {
            assert_eq!(Line::parse(&line.to_string()), Some(line));
        }
    }

    #[test]
    fn half_a_line_is_none() {
        for text in ["", "+", "+ 1", "+ 1 k0", "+ 1 k0 5", "= 1 6", "- 1 7", "hello", "= x 1 2"] {
            assert_eq!(Line::parse(text), None, "{text}");
        }
    }
}
