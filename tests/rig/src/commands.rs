//! Commands under `quorlock lock` that lived longer than their lock, and whose fault that is: pure.
//!
//! `quorlock` kills its command shortly before the lock's time is over. When the machine does not
//! let it run just then, the command lives on, and the next holder is one of two. That is no
//! overlap of the library's if it is shorter than what the kernel says the program has waited for a
//! processor. But that is known only when the program has been let run, so such an overlap is put
//! aside until the program has ended.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::clock;
use crate::history::{Overlap, Who};
use crate::line::{Look, Program};

/// A command is killed this long before its lock is free: the program's margin, a timer's grain,
/// and twice what is taken off a TTL for clocks that drift.
const MARGIN: Duration = Duration::from_millis(12);
const DRIFT_OF: u32 = 50;

/// Two holds, of which the first is a command's.
type Pair = [(Who, u64); 2];

/// What is known of programs, and the overlaps that wait for that.
#[derive(Debug)]
pub(crate) struct Commands {
    ahead: u64,
    lives: Vec<(Who, Program)>,
    waiting: BTreeMap<Pair, Overlap>,
    /// Those that are excused.
    excused: BTreeMap<Pair, u64>,
}

impl Commands {
    pub(crate) fn new(ttl: Duration) -> Self {
        let (lives, waiting, excused) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        Self { ahead: clock::nanos(MARGIN + ttl / DRIFT_OF), lives, waiting, excused }
    }

    /// How many overlaps are excused.
    pub(crate) fn excused(&self) -> usize {
        self.excused.len()
    }

    /// An overlap whose first hold is a command's: it comes back if nothing excuses it.
    pub(crate) fn overlap(&mut self, overlap: Overlap) -> Option<Overlap> {
        let pair = [&overlap.first, &overlap.second].map(|hold| (hold.who, hold.number));
        let is_its = |(who, life): &&(Who, Program)| {
            let from = overlap.first.from;
            *who == overlap.first.who && life.began <= from && from <= life.ended
        };
        let Some((_, life)) = self.lives.iter().find(is_its) else {
            self.waiting.insert(pair, overlap);
            return None;
        };
        let shared = overlap.first.until.saturating_sub(overlap.second.from);
        let since = overlap.second.from.saturating_sub(self.ahead);
        let waited = waited(&life.looks, since, overlap.first.until);
        if shared >= waited {
            return Some(overlap);
        }
        self.excused.insert(pair, shared);
        None
    }

    /// A program has ended: the overlaps that it does not excuse.
    pub(crate) fn ended(&mut self, who: Who, life: &Program) -> Vec<Overlap> {
        self.lives.push((who, life.clone()));
        let waiting = std::mem::take(&mut self.waiting);
        waiting.into_values().filter_map(|overlap| self.overlap(overlap)).collect()
    }

    /// The run has ended: those that nothing will excuse any more.
    pub(crate) fn rest(&mut self) -> Vec<Overlap> {
        std::mem::take(&mut self.waiting).into_values().collect()
    }
}

/// For how long the program had waited, in the looks that touch these times.
fn waited(looks: &[Look], from: u64, to: u64) -> u64 {
    let touching = looks.iter().filter(|look| look.from <= to && look.at >= from);
    touching.map(|look| look.waited).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::History;
    use crate::line::Line;

    const TTL: Duration = Duration::from_secs(1);

    /// Milliseconds.
    const MS: u64 = 1_000_000;

    const fn who(slot: usize) -> Who {
        Who { slot, life: 1 }
    }

    /// A command that lives from 100 ms to `until`, and another holder from 1,000 ms on.
    fn overlap(until: u64) -> Overlap {
        let mut history = History::default();
        let (from, until, next) = (100 * MS, until * MS, 1_000 * MS);
        let lines = [
            (0, format!("+ 7 k {from} {from}")),
            (1, format!("+ 1 k {next} {}", 9 * next)),
            (0, format!("= 7 {until} {until}")),
        ];
        let record = |(slot, text): &(usize, String)| {
            history.record(who(*slot), &Line::parse(text).expect("a line")).err()
        };
        *lines.iter().find_map(record).expect("two holders")
    }

    /// A program whose looks each end at such a time and found such a wait, all in milliseconds.
    fn program(looks: &[(u64, u64)]) -> Program {
        let look = |(at, waited): &(u64, u64)| Look {
            from: (at - 5) * MS,
            at: at * MS,
            waited: waited * MS,
        };
        let looks = looks.iter().map(look).collect();
        Program { began: 50 * MS, ended: 1_500 * MS, looks }
    }

    #[test]
    fn a_command_that_outlives_its_lock_is_excused_by_what_its_program_waited_then() {
        let cases: [(&[(u64, u64)], bool); 6] = [
            (&[], false),
            (&[(1_021, 30)], true),
            // Shorter than the overlap.
            (&[(1_021, 19)], false),
            // Both are part of it.
            (&[(1_004, 15), (1_021, 15)], true),
            // It ended before the command was to be killed.
            (&[(900, 300)], false),
            // It came after the command had ended.
            (&[(1_400, 300)], false),
        ];
        for (looks, is_excused) in cases {
            let mut commands = Commands::new(TTL);
            assert_eq!(commands.overlap(overlap(1_020)), None, "it is not known yet");
            let found = commands.ended(who(0), &program(looks));
            assert_eq!(found.is_empty(), is_excused, "{looks:?}");
            assert_eq!(commands.excused(), usize::from(is_excused), "{looks:?}");
            // The other holder's line may come when the program has ended.
            let again = commands.overlap(overlap(1_020));
            assert_eq!(again.is_none(), is_excused, "{looks:?}");
            assert_eq!(commands.excused(), usize::from(is_excused), "{looks:?}, counted once");
        }
    }

    #[test]
    fn an_overlap_of_a_program_that_never_tells_its_end_is_found() {
        let mut commands = Commands::new(TTL);
        assert_eq!(commands.overlap(overlap(1_020)), None);
        assert!(commands.ended(who(3), &program(&[(1_021, 30)])).is_empty(), "another program");
        assert_eq!(commands.rest().len(), 1);
    }
}
