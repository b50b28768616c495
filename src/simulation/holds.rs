//! Who held which key, and when: intervals of true time, in nanoseconds.
//!
//! A *hold* begins when a task has the guard in hand. It ends when the task begins to let go of it,
//! or at the end that the lock itself claims, whichever is first. What it claims is followed:
//!
//! ```text
//!   from         seen                until
//!    ├─────────────┼───────────────────┤           it lasts for as long as it claims
//!    ├─────────────┼───────────────────┼───────┤   … and longer, once it is extended
//!    ├─────────────┤                               … or to here, if it was found lost behind it
//! ```
//!
//! A machine that crashes lets go of nothing: what it held it holds for as long as it claimed. All
//! that can move an end happens at an event of the world, and all holds are looked at before and
//! behind each event, so none moves unseen. Two holds of one key that share a nanosecond are two
//! holders, unless both are readers'.
//!
//! Where a lock has a delay, and its lease has ended by itself, no other may have it until the
//! delay is over as well: it is held for so much longer then, by the slowest of the nodes' clocks.
//!
//! This decides whether a history of locks is linearizable. One by one, in a sequence, a lock may
//! be taken by a writer when none has it, and by a reader when no writer has. A history has such an
//! order if and only if it has one in which each lock is taken at the last instant at which that
//! can have been, when its guard is in hand, and is let go of at the first one: to take it later,
//! or to let go of it earlier, shortens a hold, and what was alone before is so still. These are
//! the instants of a hold here.

use std::collections::BTreeSet;
use std::time::Duration;

const MILLION: i128 = 1_000_000;

/// What a millisecond of a delay is at least, by a node's clock that runs fast: 12,000 millionths.
const DELAY_NANOS: u64 = 980_000;

/// A lock, as its holder sees it.
pub(super) struct View {
    /// How long it is still held, if it is.
    pub(super) left: Box<dyn Fn() -> Option<Duration> + Send>,
    /// It is a reader's.
    pub(super) reads: bool,
    /// How much faster than true time the holder's clocks run, in millionths.
    pub(super) rate: i64,
    /// For how many milliseconds others are to stay out when its lease ends by itself.
    pub(super) delay: u64,
}

/// One hold.
struct Hold {
    number: u64,
    machine: usize,
    key: String,
    value: String,
    /// `None` once it is let go of, or its machine is gone.
    view: Option<View>,
    /// Others may have the key at the same time that read it, too.
    reads: bool,
    from: u64,
    until: u64,
    /// When it was looked at last.
    seen: u64,
    /// It was found not to be held any more.
    is_over: bool,
    /// Until when it claimed to be held when it was, and how much longer others are to stay out
    /// behind that.
    claimed: u64,
    delay: u64,
    /// Its holder was asked to let go: by then it is over.
    over_by: Option<u64>,
}

/// Two holders of one key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Overlap {
    pub(super) key: String,
    /// The two guards, the earlier one first, and the values under which they held the key.
    pub(super) guards: [u64; 2],
    pub(super) values: [String; 2],
    /// When it began.
    pub(super) at: u64,
}

/// What a look has found.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) overlaps: Vec<Overlap>,
    /// Guards whose lock was over, and is held again, and their machines.
    pub(super) revived: Vec<(u64, usize)>,
    /// Guards whose lock was revoked and goes on for longer than it may.
    pub(super) outlasting: Vec<u64>,
}

/// All holds that can still meet another.
#[derive(Default)]
pub(super) struct Holds {
    holds: Vec<Hold>,
    /// Pairs that were found already.
    told: BTreeSet<[u64; 2]>,
}

impl Holds {
    /// Enters a guard that a task now has.
    pub(super) fn begin(
        &mut self,
        (number, machine): (u64, usize),
        (key, value): (&str, &str),
        view: View,
        now: u64,
    ) {
        self.holds.push(Hold {
            number,
            machine,
            key: key.into(),
            value: value.into(),
            reads: view.reads,
            claimed: now,
            delay: view.delay * DELAY_NANOS,
            view: Some(view),
            from: now,
            until: now,
            seen: now,
            is_over: false,
            over_by: None,
        });
    }

    /// A lock was revoked by one who `began` to ask for that, and was told when it is over. A guard
    /// that had the key before, and has it still, is its holder. Holds must just have been looked
    /// at.
    pub(super) fn revoke(&mut self, key: &str, began: u64, over_by: u64) {
        let is_it = |hold: &&mut Hold| hold.key == key && hold.from < began && !hold.is_over;
        for hold in self.holds.iter_mut().filter(is_it) {
            hold.over_by = Some(hold.over_by.unwrap_or(over_by).min(over_by));
        }
    }

    /// Looks at all holds.
    pub(super) fn look(&mut self, now: u64) -> Findings {
        let mut findings = Findings::default();
        let mut longer = Vec::new();
        for (index, hold) in self.holds.iter_mut().enumerate() {
            let (was_over, until) = (hold.is_over, hold.until);
            hold.look(now);
            if was_over && !hold.is_over {
                findings.revived.push((hold.number, hold.machine));
            }
            if hold.until > until {
                longer.push(index);
            }
            if hold.over_by.take_if(|over_by| hold.until > *over_by).is_some() {
                findings.outlasting.push(hold.number);
            }
        }
        for index in longer {
            self.find_overlaps(index, &mut findings.overlaps);
        }
        self.holds.retain(|hold| hold.view.is_some() || hold.until > now);
        findings
    }

    /// Finds the holds that one which has become longer overlaps.
    fn find_overlaps(&mut self, index: usize, found: &mut Vec<Overlap>) {
        let Some(one) = self.holds.get(index) else { return };
        for other in self.holds.iter().filter(|other| other.overlaps(one)) {
            let mut pair = [one, other];
            pair.sort_by_key(|hold| hold.from);
            let guards = pair.map(|hold| hold.number);
            if self.told.insert(guards) {
                let values = pair.map(|hold| hold.value.clone());
                found.push(Overlap { key: one.key.clone(), guards, values, at: pair[1].from });
            }
        }
    }

    /// A guard is about to be let go of. Holds must just have been looked at.
    pub(super) fn end(&mut self, number: u64) {
        for hold in self.holds.iter_mut().filter(|hold| hold.number == number) {
            hold.until = hold.until.min(hold.seen);
            hold.view = None;
        }
    }

    /// As [`end`](Self::end), of a guard whose lease has ended by itself.
    pub(super) fn end_delayed(&mut self, number: u64) {
        self.end(number);
        let is_delayed = |hold: &&mut Hold| hold.number == number && hold.delay > 0;
        for hold in self.holds.iter_mut().filter(is_delayed) {
            hold.until = hold.claimed + hold.delay;
        }
    }

    /// Whether more than one have this key.
    pub(super) fn are_several(&self, key: &str, now: u64) -> bool {
        let mut of_key = self.holds.iter().filter(|hold| hold.key == key && hold.until > now);
        of_key.nth(1).is_some()
    }

    /// Whether another than this guard has a slot beside this one.
    pub(super) fn are_beside(&self, guard: u64, slot: &str, now: u64) -> bool {
        let key = |slot: &str| slot.rsplit_once(':').map(|(key, _)| key.to_owned());
        let is_beside = |hold: &Hold| hold.number != guard && hold.until > now;
        self.holds.iter().any(|hold| is_beside(hold) && key(&hold.key) == key(slot))
    }

    /// The values of all guards that are in hand on a machine.
    pub(super) fn live(&self, machine: usize) -> Vec<String> {
        let live = self.holds.iter().filter(|hold| hold.machine == machine && hold.view.is_some());
        live.map(|hold| hold.value.clone()).collect()
    }

    /// Enters that a machine is gone: no task there lets go of anything any more. Holds must just
    /// have been looked at.
    pub(super) fn end_machine(&mut self, machine: usize) {
        for hold in self.holds.iter_mut().filter(|hold| hold.machine == machine) {
            if hold.view.take().is_some() && !hold.is_over {
                hold.until += hold.delay;
            }
        }
    }
}

impl Hold {
    fn look(&mut self, now: u64) {
        let Some(View { left, rate, .. }) = &self.view else { return };
        if let Some(left) = left() {
            if self.is_over {
                (self.is_over, self.from) = (false, now);
            }
            let left = left.as_nanos() as i128 * MILLION / (MILLION + i128::from(*rate));
            self.until = now + left as u64;
            self.claimed = self.until;
        } else if !self.is_over {
            // If it claimed to last until later, it was lost at the event behind the last look.
            self.until = if self.until > now { self.seen } else { self.until };
            self.is_over = true;
        }
        self.seen = now;
    }

    /// Whether both have the key at some instant.
    fn meets(&self, other: &Self) -> bool {
        self.number != other.number
            && self.key == other.key
            && self.from.max(other.from) < self.until.min(other.until)
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.meets(other) && !(self.reads && other.reads)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

    use super::*;

    #[test]
    fn a_delay_follows_a_lease_that_has_ended_by_itself() {
        for (is_delayed, expected) in [(true, 1), (false, 0)] {
            let mut holds = Holds::default();
            let left = Arc::new(AtomicU64::new(100));
            let says = left.clone();
            let left_of = move || match says.load(SeqCst) {
                0 => None,
                left => Some(Duration::from_nanos(left)),
            };
            let view = View { left: Box::new(left_of), rate: 0, reads: false, delay: 1 };
            holds.begin((1, 1), ("k", "v1"), view, 0);
            holds.look(0);
            left.store(0, SeqCst);
            holds.look(100);
            if is_delayed {
                holds.end_delayed(1)
            } else {
                holds.end(1)
            }
            let _other = begin(&mut holds, 2, 100 + DELAY_NANOS - 1, 50);
            let found = holds.look(100 + DELAY_NANOS - 1).overlaps;
            assert_eq!(found.len(), expected);
        }
    }

    /// Begins a hold of the one key on a machine of its own. What is left of it is what the test
    /// says; 0 is nothing.
    fn begin(holds: &mut Holds, number: u64, now: u64, left: u64) -> Arc<AtomicU64> {
        begin_to(holds, number, (now, left), false)
    }

    /// The same, which may be a reader's.
    fn begin_to(
        holds: &mut Holds,
        number: u64,
        (now, left): (u64, u64),
        reads: bool,
    ) -> Arc<AtomicU64> {
        let told = Arc::new(AtomicU64::new(left));
        let left = told.clone();
        let left = move || Some(left.load(SeqCst)).filter(|left| *left > 0);
        let left = Box::new(move || left().map(Duration::from_nanos));
        let view = View { left, rate: 0, reads, delay: 0 };
        holds.begin((number, number as usize), ("k", "v"), view, now);
        told
    }

    /// The pairs that a look finds.
    fn look(holds: &mut Holds, now: u64) -> Vec<[u64; 2]> {
        holds.look(now).overlaps.iter().map(|overlap| overlap.guards).collect()
    }

    #[test]
    fn one_after_the_other_is_fine() {
        let mut holds = Holds::default();
        begin(&mut holds, 1, 0, 100);
        assert_eq!(look(&mut holds, 20), [[0; 2]; 0]);
        holds.end(1);
        begin(&mut holds, 2, 20, 100);
        assert_eq!(look(&mut holds, 20), [[0; 2]; 0], "the first was let go of before");
        holds.end(2);
        let third = begin(&mut holds, 3, 20, 30);
        assert_eq!(look(&mut holds, 20), [[0; 2]; 0]);
        third.store(0, SeqCst);
        begin(&mut holds, 4, 50, 10);
        assert_eq!(look(&mut holds, 50), [[0; 2]; 0], "the third was over, though still in hand");
    }

    #[test]
    fn an_end_that_moved_on_unseen_counts() {
        let mut holds = Holds::default();
        let first = begin(&mut holds, 1, 0, 50);
        assert_eq!(look(&mut holds, 0), [[0; 2]; 0]);
        // Extended after the last look, to beyond the end that was known.
        first.store(60, SeqCst);
        begin(&mut holds, 2, 55, 100);
        assert_eq!(look(&mut holds, 55), [[1, 2]]);
        assert_eq!(look(&mut holds, 56), [[0; 2]; 0], "each pair is told once");
    }

    #[test]
    fn who_crashes_holds_for_as_long_as_was_claimed() {
        let mut holds = Holds::default();
        begin(&mut holds, 1, 0, 50);
        look(&mut holds, 10);
        // 10 + 50: what it claimed when it was looked at last.
        holds.end_machine(1);
        begin(&mut holds, 2, 59, 5);
        assert_eq!(look(&mut holds, 59), [[1, 2]]);
        begin(&mut holds, 3, 64, 5);
        assert_eq!(look(&mut holds, 64), [[2, 3]], "the first is over; the second goes on");
    }

    #[test]
    fn what_was_lost_early_was_held_until_the_look_before() {
        let mut holds = Holds::default();
        let first = begin(&mut holds, 1, 0, 50);
        look(&mut holds, 30);
        first.store(0, SeqCst);
        begin(&mut holds, 2, 30, 100);
        assert_eq!(look(&mut holds, 40), [[0; 2]; 0]);
    }

    #[test]
    fn what_was_over_and_is_held_again_is_told_and_meets_others() {
        let mut holds = Holds::default();
        let first = begin(&mut holds, 1, 0, 50);
        look(&mut holds, 0);
        first.store(0, SeqCst);
        begin(&mut holds, 2, 50, 100);
        assert_eq!(look(&mut holds, 50), [[0; 2]; 0]);
        first.store(20, SeqCst);
        let findings = holds.look(60);
        assert_eq!(findings.revived, [(1, 1)]);
        assert_eq!(findings.overlaps.len(), 1);
        assert_eq!((findings.overlaps[0].guards, findings.overlaps[0].at), ([2, 1], 60));
    }

    #[test]
    fn readers_meet_one_another_and_no_writer() {
        let mut holds = Holds::default();
        let first = begin_to(&mut holds, 1, (0, 50), true);
        begin_to(&mut holds, 2, (0, 60), true);
        assert_eq!(look(&mut holds, 10), [[0; 2]; 0]);
        assert!(holds.are_several("k", 10));
        first.store(0, SeqCst);
        begin(&mut holds, 3, 55, 10);
        assert_eq!(look(&mut holds, 55), [[2, 3]], "the first is over");
        begin_to(&mut holds, 4, (58, 10), true);
        assert_eq!(look(&mut holds, 58), [[3, 4]]);
    }

    #[test]
    fn a_slow_clock_holds_for_longer() {
        let mut holds = Holds::default();
        let left = Box::new(|| Some(Duration::from_nanos(997)));
        holds.begin((1, 1), ("k", "v"), View { left, rate: -3_000, reads: false, delay: 0 }, 0);
        look(&mut holds, 0);
        holds.end_machine(1);
        begin(&mut holds, 2, 999, 10);
        assert_eq!(look(&mut holds, 999), [[1, 2]]);
    }
}
