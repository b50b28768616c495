//! When holders are told of losses, and whether the machine let this process run meanwhile.
//!
//! A loss signal comes some milliseconds before the end of the lock's time. A process that is not
//! let run for longer than that cannot be told in time; only `is_valid()` is right then. A signal
//! that is late beside such a stall, as the [`StallMonitor`] knows it, is counted by itself, as in
//! the records of losses. The monitor has a thread of its own: it learns of a stall when it is let
//! run again, which others may be before it. So nothing is judged before the monitor knows its
//! time.

use std::time::{Duration, Instant};

use quorlock::LockGuard;
use tokio::time::sleep;

use super::Journal;
use super::stalls::StallMonitor;
use crate::line::{Line, Losses};

/// How often the monitor looks by which loss signals are judged.
pub(super) const SAMPLE_EVERY: Duration = Duration::from_millis(2);

/// A stall so long before the end can make a signal late: the longest time between the timer that
/// tells a holder and the end.
const BEFORE: Duration = Duration::from_millis(50);

/// How many margins are told at a time, of which a report draws its percentiles.
const MARGINS: usize = 64;

/// The guard's deadline, if it still has one.
pub(super) fn deadline(guard: &LockGuard) -> Option<Instant> {
    let deadline = guard.deadline();
    // Asked behind it: the deadline of an invalid guard is the time at which it is asked for.
    guard.is_valid().then_some(deadline)
}

/// Whether what was silent at `now` is so much too late for the end of the lock's time that it
/// never comes. A runtime that was stopped may look at its guards before it runs the tasks that
/// note the signals, and before the stall is known: so the signals are looked at once more when the
/// monitor knows of that time.
pub(super) async fn is_never_told(
    monitor: &StallMonitor,
    [end, now]: [Instant; 2],
    limit: Duration,
    is_silent: impl Fn() -> bool,
) -> bool {
    let over = now.saturating_duration_since(end);
    if over <= limit {
        return false;
    }
    while !monitor.knows(now) {
        sleep(SAMPLE_EVERY).await;
    }
    is_silent() && over > limit + 2 * monitor.stalled(end, now)
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
    monitor: StallMonitor,
    /// Those that came a moment ago: a stall may not be known yet.
    fresh: Vec<Signal>,
    losses: Losses,
    /// How long before the end a signal comes at most that no node has caused.
    before: Duration,
}

impl Tally {
    pub(super) fn new(name: &str, monitor: &StallMonitor) -> Self {
        let losses = Losses { name: name.into(), ..Losses::default() };
        Self { monitor: monitor.clone(), fresh: Vec::new(), losses, before: BEFORE }
    }

    /// Of a client that holds so many locks with this TTL: each of them makes each count as lost
    /// 10 µs earlier, up to a quarter of its time.
    pub(super) fn of_many(self, locks: u64, ttl: Duration) -> Self {
        Self { before: BEFORE + Duration::from_micros(10 * locks).min(ttl / 4), ..self }
    }

    pub(super) fn enter(&mut self, signal: Signal) {
        self.fresh.push(signal);
    }

    /// Tells what is known by now, and begins anew.
    pub(super) fn tell(&mut self, journal: &Journal) {
        let fresh = std::mem::take(&mut self.fresh);
        for signal in fresh {
            match self.monitor.knows(signal.at) {
                true => self.count(signal),
                false => self.fresh.push(signal),
            }
        }
        if self.losses.told > 0 {
            let next = Losses { name: self.losses.name.clone(), ..Losses::default() };
            let mut losses = std::mem::replace(&mut self.losses, next);
            losses.margins = spread(losses.margins);
            journal.write(&Line::Losses(losses));
        }
    }

    fn count(&mut self, Signal { end, at }: Signal) {
        let losses = &mut self.losses;
        losses.told += 1;
        let margin = end.saturating_duration_since(at);
        // No timer comes so early: a majority of the nodes had lost the key.
        losses.by_nodes += u64::from(margin > self.before);
        let by = at.saturating_duration_since(end);
        let since = end.checked_sub(self.before).unwrap_or(end);
        if !margin.is_zero() {
            losses.margins.push(micros(margin));
        } else if by < 2 * self.monitor.stalled(since, at) {
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
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::runtime::Builder;

    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_signal_at_the_end_is_late_unless_a_stall_explains_it() {
        let base = Instant::now();
        let stall = (base + ms(1_000), base + ms(1_030), ms(30));
        let monitor = StallMonitor::of(&[stall], Some(base + ms(9_000)));
        let mut tally = Tally::new("lost()", &monitor);
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

    /// Looks at a signal two seconds behind its end, with half a second as the limit, while
    /// another task of the same runtime learns what is to be known.
    fn looked_at(stall: Duration, told: bool) -> bool {
        let (base, flag) = (Instant::now(), Arc::new(AtomicBool::new(true)));
        let monitor = StallMonitor::of(&[], None);
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let (learns, note) = (monitor.clone(), flag.clone());
            tokio::spawn(async move {
                note.store(!told, Ordering::SeqCst);
                learns.learn((base, base + ms(2_001), stall));
            });
            let silent = || flag.load(Ordering::SeqCst);
            is_never_told(&monitor, [base, base + ms(2_000)], ms(500), silent).await
        })
    }

    #[test]
    fn a_signal_is_missed_only_when_the_stall_is_known_and_the_tasks_were_let_run() {
        assert!(looked_at(Duration::ZERO, false), "nothing explains it");
        assert!(!looked_at(ms(1_900), false), "the process was stopped");
        assert!(!looked_at(Duration::ZERO, true), "the task that notes the signal had to run");
    }
}
