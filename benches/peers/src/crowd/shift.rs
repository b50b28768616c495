//! What a process of a crowd is told, and what it says afterwards: a line of numbers each.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::Work;
use crate::contest::Failure;

/// When it begins and ends, from when on it counts, by the machine's clock, and what it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shift {
    pub(crate) begin: u64,
    pub(crate) count: u64,
    pub(crate) end: u64,
    pub(crate) work: Work,
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Tally {
    /// Those that ended in time.
    pub(crate) acquisitions: u64,
    /// The longest wait, in nanoseconds, also of one that did not end.
    pub(crate) longest: u64,
    /// What has ended its sleeps: see `WaitStats`.
    pub(crate) handed_over: u64,
    pub(crate) changed: u64,
    pub(crate) by_time: u64,
    /// How often too few nodes answered in time.
    pub(crate) failures: u64,
}

impl fmt::Display for Shift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { begin, count, end, work } = self;
        write!(f, "{begin} {count} {end} {} {}", work.hold.as_nanos(), work.extensions)
    }
}

impl FromStr for Shift {
    type Err = Failure;

    fn from_str(line: &str) -> Result<Self, Failure> {
        let [begin, count, end, hold, extensions] = numbers(line)?;
        let work =
            Work { hold: Duration::from_nanos(hold), extensions: u32::try_from(extensions)? };
        Ok(Self { begin, count, end, work })
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { acquisitions, longest, handed_over, changed, by_time, failures } = self;
        write!(f, "{acquisitions} {longest} {handed_over} {changed} {by_time} {failures}")
    }
}

impl FromStr for Tally {
    type Err = Failure;

    fn from_str(line: &str) -> Result<Self, Failure> {
        let [acquisitions, longest, handed_over, changed, by_time, failures] = numbers(line)?;
        Ok(Self { acquisitions, longest, handed_over, changed, by_time, failures })
    }
}

fn numbers<const N: usize>(line: &str) -> Result<[u64; N], Failure> {
    let bad = || format!("{N} numbers, not `{line}`");
    let numbers: Result<Vec<u64>, _> = line.split(' ').map(str::parse).collect();
    Ok(numbers.map_err(|_| bad())?.try_into().map_err(|_| bad())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_heard() {
        let work = Work { hold: Duration::from_micros(20), extensions: 4 };
        let shift = Shift { begin: 3, count: 7, end: 50, work };
        assert_eq!(shift.to_string().parse::<Shift>().unwrap(), shift);
        let tally = Tally { acquisitions: 1, longest: 2, failures: 9, ..Tally::default() };
        assert_eq!(tally.to_string().parse::<Tally>().unwrap(), tally);
        assert!("1 2 3".parse::<Tally>().is_err() && "".parse::<Shift>().is_err());
    }
}
