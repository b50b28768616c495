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
//! holders.

use std::collections::BTreeSet;

use crate::Held;

/// How a machine's clocks run, in millionths faster than true time.
const MILLION: i128 = 1_000_000;

/// One hold.
struct Hold {
    number: u64,
    machine: usize,
    key: String,
    value: String,
    /// The lock, as its holder sees it, and the rate of its clocks; nothing once it is let go of,
    /// or nobody is there any more to see it.
    view: Option<(Held, i64)>,
    from: u64,
    until: u64,
    /// When it was looked at last.
    seen: u64,
    /// It was found not to be held any more.
    is_over: bool,
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
}

/// All holds that can still meet another.
#[derive(Default)]
pub(super) struct Holds {
    holds: Vec<Hold>,
    /// Pairs that were found already.
    told: BTreeSet<[u64; 2]>,
}

impl Holds {
    /// Somebody has this guard in hand.
    pub(super) fn begin(
        &mut self,
        (number, machine): (u64, usize),
        (key, value): (&str, &str),
        view: (Held, i64),
        now: u64,
    ) {
        self.holds.push(Hold {
            number,
            machine,
            key: key.into(),
            value: value.into(),
            view: Some(view),
            from: now,
            until: now,
            seen: now,
            is_over: false,
        });
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
        }
        for index in longer {
            self.meet(index, &mut findings.overlaps);
        }
        self.holds.retain(|hold| hold.view.is_some() || hold.until > now);
        findings
    }

    /// Finds whom a hold that has become longer meets.
    fn meet(&mut self, index: usize, found: &mut Vec<Overlap>) {
        let Some(one) = self.holds.get(index) else { return };
        for other in self.holds.iter().filter(|other| other.meets(one)) {
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

    /// A machine is gone: nobody there lets go of anything any more. Holds must just have been
    /// looked at.
    pub(super) fn bury(&mut self, machine: usize) {
        for hold in self.holds.iter_mut().filter(|hold| hold.machine == machine) {
            hold.view = None;
        }
    }
}

impl Hold {
    fn look(&mut self, now: u64) {
        let Some((held, rate)) = &self.view else { return };
        if let Some(left) = held.looks_left() {
            if self.is_over {
                (self.is_over, self.from) = (false, now);
            }
            let left = left.as_nanos() as i128 * MILLION / (MILLION + i128::from(*rate));
            self.until = now + left as u64;
        } else if !self.is_over {
            // If it claimed to last until later, it was lost at the event behind the last look.
            self.until = if self.until > now { self.seen } else { self.until };
            self.is_over = true;
        }
        self.seen = now;
    }

    fn meets(&self, other: &Self) -> bool {
        self.number != other.number
            && self.key == other.key
            && self.from.max(other.from) < self.until.min(other.until)
    }
}
