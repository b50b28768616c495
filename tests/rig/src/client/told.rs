//! When holders are told of losses, and whether the machine let this thread run meanwhile.
//!
//! A loss signal comes some milliseconds before the end of the lock's time. A process that is not
//! let run for longer than that cannot be told in time; only `is_valid()` is right then. So a task
//! looks at the clock every millisecond. Where it comes late, and its thread was not at work
//! itself, the machine was busy elsewhere: a stall. A signal that is late beside such a stall is
//! counted by itself, as in the records of losses.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use quorlock::LockGuard;
use rustix::time::{ClockId, clock_gettime};
use tokio::time::sleep;

use super::Pen;
use crate::line::{Line, Losses};

/// Tokio's timers come up to 2 ms after they were asked for.
const BEAT_MAX: Duration = Duration::from_micros(2_500);

/// A stall so long before the end can make a signal late: the longest time between the timer that
/// tells a holder and the end.
const BEFORE: Duration = Duration::from_millis(50);

/// For how long stalls are remembered.
const KEPT: Duration = Duration::from_secs(30);

/// How many margins are told at a time, of which a report draws its percentiles.
const MARGINS: usize = 64;

/// The stalls of the thread that it beats on, which must be the only one of its runtime.
#[derive(Clone, Debug, Default)]
pub(super) struct Pulse(Arc<Mutex<Beats>>);

#[derive(Debug, Default)]
struct Beats {
    stalls: VecDeque<(Instant, Instant)>,
    last: Option<Instant>,
}

impl Pulse {
    /// Beats until it is dropped.
    pub(super) async fn beat(self) {
        let (mut last, mut worked) = (Instant::now(), thread_time());
        loop {
            sleep(Duration::from_millis(1)).await;
            let (now, works) = (Instant::now(), thread_time());
            let mut beats = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if (now - last).saturating_sub(works.saturating_sub(worked)) > BEAT_MAX {
                beats.stalls.push_back((last, now));
            }
            while beats.stalls.front().is_some_and(|(_, end)| now - *end > KEPT) {
                beats.stalls.pop_front();
            }
            beats.last = Some(now);
            drop(beats);
            (last, worked) = (now, works);
        }
    }

    /// Whether every stall before then is known.
    pub(super) fn knows(&self, then: Instant) -> bool {
        let beats = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        beats.last.is_some_and(|last| last > then)
    }

    /// For how long the thread was not let run, in the stalls that touch these times.
    pub(super) fn stalled(&self, from: Instant, to: Instant) -> Duration {
        let beats = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let touching = beats.stalls.iter().filter(|(begin, end)| *begin < to && *end > from);
        touching.map(|(begin, end)| *end - *begin).sum()
    }
}

/// The time for which this thread has been at work.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The guard's deadline, if it still has one.
pub(super) fn deadline(guard: &LockGuard) -> Option<Instant> {
    let deadline = guard.deadline();
    // Asked behind it: the deadline of an invalid guard is the time at which it is asked for.
    guard.is_valid().then_some(deadline)
}

/// One loss signal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signal {
    /// The end of the lock's time, as far as it was known.
    pub(super) end: Instant,
    pub(super) at: Instant,
}

/// Loss signals of one name.
#[derive(Debug)]
pub(super) struct Tally {
    pulse: Pulse,
    /// Those that came a moment ago: a stall may not be known yet.
    fresh: Vec<Signal>,
    losses: Losses,
}

impl Tally {
    pub(super) fn new(name: &str, pulse: &Pulse) -> Self {
        let losses = Losses { name: name.into(), ..Losses::default() };
        Self { pulse: pulse.clone(), fresh: Vec::new(), losses }
    }

    pub(super) fn enter(&mut self, signal: Signal) {
        self.fresh.push(signal);
    }

    /// Tells what is known by now, and begins anew.
    pub(super) fn tell(&mut self, pen: &Pen) {
        let fresh = std::mem::take(&mut self.fresh);
        for signal in fresh {
            match self.pulse.knows(signal.at) {
                true => self.count(signal),
                false => self.fresh.push(signal),
            }
        }
        if self.losses.told > 0 {
            let next = Losses { name: self.losses.name.clone(), ..Losses::default() };
            let mut losses = std::mem::replace(&mut self.losses, next);
            losses.margins = spread(losses.margins);
            pen.write(&Line::Losses(losses));
        }
    }

    fn count(&mut self, Signal { end, at }: Signal) {
        let losses = &mut self.losses;
        losses.told += 1;
        let margin = end.saturating_duration_since(at);
        // No timer comes so early: a majority of the nodes had lost the key.
        losses.by_nodes += u64::from(margin > BEFORE);
        let by = at.saturating_duration_since(end);
        let since = end.checked_sub(BEFORE).unwrap_or(end);
        if !margin.is_zero() {
            losses.margins.push(micros(margin));
        } else if by < 2 * self.pulse.stalled(since, at) {
            // What a stall has left undone is caught up with first: that may take as long again.
            losses.stalled += 1;
        } else {
            losses.late += 1;
            losses.worst = losses.worst.max(micros(by));
        }
    }
}

/// The least of the values, and others at equal steps up to the greatest.
fn spread(mut values: Vec<u64>) -> Vec<u64> {
    values.sort_unstable();
    let last = values.len().saturating_sub(1);
    match values.len() {
        0..=MARGINS => values,
        _ => (0..MARGINS).map(|step| values[last * step / (MARGINS - 1)]).collect(),
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_signal_at_the_end_is_late_unless_a_stall_explains_it() {
        let base = Instant::now();
        let pulse = Pulse::default();
        let stall = (base + ms(1_000), base + ms(1_030));
        *pulse.0.lock().expect("no panic") =
            Beats { stalls: [stall].into(), last: Some(base + ms(9_000)) };
        let mut tally = Tally::new("lost()", &pulse);
        // The end and the signal, in milliseconds.
        let signals =
            [(500, 480), (500, 400), (500, 500), (500, 501), (1_020, 1_031), (1_020, 1_200)];
        for (end, at) in signals {
            tally.count(Signal { end: base + ms(end), at: base + ms(at) });
        }
        let Losses { told, by_nodes, late, stalled, worst, margins, .. } = tally.losses;
        assert_eq!((told, by_nodes, late, stalled, worst), (6, 1, 3, 1, 180_000));
        assert_eq!(margins, [20_000, 100_000]);
    }

    #[test]
    fn many_margins_are_told_by_some_that_keep_the_least_and_the_greatest() {
        let few = spread((0..10_000).rev().collect());
        assert_eq!((few.len(), few[0], few[MARGINS - 1]), (MARGINS, 0, 9_999));
        assert_eq!(spread(vec![3, 1]), [1, 3]);
        assert!(spread(Vec::new()).is_empty());
    }
}
