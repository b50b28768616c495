//! Alternating short rounds of our lock and of the floor, so that other load on the machine affects
//! both.
//!
//! ```text
//! warm-up, dropped │ ours floor │ floor ours │ ours floor │ floor ours │ …
//! ```

use std::num::NonZeroU32;
use std::time::Duration;

use super::figures::{Figures, Row, Sample};
use super::floor::Floor;
use super::ours::Ours;
use super::progress::Progress;
use super::timetable::Round;
use crate::exit::Failure;

/// About how long a round is: long compared with an operation, short compared with changes of the
/// machine's load.
const ROUND: Duration = Duration::from_millis(250);

/// The least number of rounds that can alternate.
const ROUNDS_MIN: u32 = 2;

pub(crate) struct Contest<'a> {
    pub(crate) ours: Ours<'a>,
    /// `None` if the floor cannot be measured.
    pub(crate) floor: Option<Floor>,
    pub(crate) progress: Progress,
}

/// Whose turn it is.
#[derive(Clone, Copy)]
enum Turn {
    Ours,
    Floor,
}

impl Contest<'_> {
    /// Measures with so many callers; takes about as long as `share` says.
    pub(crate) fn measure(
        &mut self,
        callers: usize,
        share: Duration,
        rate: Option<NonZeroU32>,
    ) -> Result<Row, Failure> {
        let contestants = if self.floor.is_some() { 2 } else { 1 };
        let rounds = rounds(share / contestants);
        let round = Round { callers, time: share / contestants / (rounds + 1), rate };
        self.progress.begin(callers, rounds);
        let warm_up = Round { rate: None, ..round };
        self.take(Turn::Ours, &warm_up)?;
        self.take(Turn::Floor, &warm_up)?;
        let (mut ours, mut floor) = (Figures::default(), Figures::default());
        for number in 0..rounds {
            let turns = match number % 2 {
                0 => [Turn::Ours, Turn::Floor],
                _ => [Turn::Floor, Turn::Ours],
            };
            for turn in turns {
                let sample = self.take(turn, &round)?;
                match turn {
                    Turn::Ours => ours.add(sample),
                    Turn::Floor => floor.add(sample),
                }
            }
            self.progress.step(&ours);
        }
        Ok(Row { callers, ours, floor: self.floor.is_some().then_some(floor) })
    }

    /// One round, and the wait for its late replies.
    fn take(&mut self, turn: Turn, round: &Round) -> Result<Sample, Failure> {
        match (turn, &mut self.floor) {
            (Turn::Ours, _) => {
                let sample = self.ours.run(round);
                self.ours.settle();
                sample
            }
            (Turn::Floor, Some(floor)) => {
                floor.delete_as(&self.ours.health());
                let sample = floor.run(round);
                floor.settle()?;
                sample
            }
            (Turn::Floor, None) => Ok(Sample::default()),
        }
    }
}

/// How many rounds each has in this time: an even number, so that both go first equally often.
fn rounds(time: Duration) -> u32 {
    let rounds = u32::try_from(time.as_millis() / ROUND.as_millis()).unwrap_or(u32::MAX - 1);
    rounds.next_multiple_of(2).max(ROUNDS_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_goes_first_as_often() {
        let cases = [(1, 2), (500, 2), (750, 4), (2_500, 10), (3_600_000, 14_400)];
        for (ms, expected) in cases {
            assert_eq!(rounds(Duration::from_millis(ms)), expected, "{ms}");
        }
    }
}
