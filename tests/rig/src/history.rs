//! Who held what and when, and whether two held one key at a time: pure.
//!
//! A *hold* is an interval on the one clock, never longer than it was: it begins at a reading of
//! the clock that was made when the lock was there, and ends
//!
//! - at the reading before it was given up, or at the last end that its guard claimed, whichever is
//!   earlier;
//! - at the last end that its guard claimed, when its process died under it: a lease that is not
//!   given up is promised until its end; and with a lock-delay so much later, as also where it has
//!   expired and was not given up;
//! - so far, while it goes on, at the last reading after which it was found valid.
//!
//! So two holds of one key that overlap are two holders, whatever the order in which their lines
//! arrive, unless both are readers'. Every line is checked when it comes.
//!
//! Each slot of a key is a lock of its own, under the name that the nodes have for it. As all of
//! them have numbers below their number, which clients look at, a key never has more holders than
//! slots where no slot has two.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use crate::clock;
use crate::line::{Line, Part};

/// A client process: its place, and which process in that place it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Who {
    pub(crate) slot: usize,
    pub(crate) life: u32,
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "client {}.{}", self.slot, self.life)
    }
}

/// One hold, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    pub(crate) who: Who,
    pub(crate) number: u64,
    pub(crate) from: u64,
    pub(crate) until: u64,
    /// The latest end that the guard has claimed.
    claimed: u64,
    /// For how long others are to stay out after that.
    delay: u64,
    /// How it ended; nothing while it goes on.
    ended: Option<String>,
}

/// Two holds of one key, or of one of its slots, that overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Overlap {
    pub(crate) key: String,
    pub(crate) first: Hold,
    pub(crate) second: Hold,
}

/// How a hold ends that was not given up before its lease had ended.
pub(crate) const EXPIRED: &str = "expired";

/// Holds in their order.
type Holds = BTreeMap<(u64, Who, u64), Hold>;

/// A key's holds.
#[derive(Debug, Default)]
struct OfKey {
    /// No two of these overlap.
    writers: Holds,
    readers: Holds,
    /// No reader has had it for longer, in nanoseconds.
    longest: u64,
}

/// Where a hold that goes on stands.
#[derive(Debug)]
struct Open {
    /// Its key, or its slots.
    keys: Vec<String>,
    from: u64,
    reads: bool,
}

/// A lock whose holder was asked to let go of it.
#[derive(Debug)]
struct Revocation {
    key: String,
    /// When it was asked for.
    at: u64,
    /// The one that held the lock then holds it until this at the latest.
    over_by: u64,
}

/// All holds of a run. One of several slots counts as so many.
#[derive(Debug, Default)]
pub(crate) struct History {
    keys: HashMap<String, OfKey>,
    open: HashMap<(Who, u64), Open>,
    revocations: Vec<Revocation>,
    pub(crate) holds: u64,
    /// All holds' time, in nanoseconds.
    pub(crate) held: u64,
}

impl History {
    /// Takes down a line; an error if it shows two holders.
    pub(crate) fn record(&mut self, who: Who, line: &Line) -> Result<(), Box<Overlap>> {
        match line {
            Line::Granted { hold, key, part, at, until } => {
                let (number, from, claimed) = (*hold, *at, *until);
                let (keys, reads) = (keys(key, part), *part == Part::Read);
                let mut result = Ok(());
                for key in &keys {
                    self.holds += 1;
                    let new =
                        Hold { who, number, from, until: from, claimed, delay: 0, ended: None };
                    let of_key = self.keys.entry(key.clone()).or_default();
                    of_key.of(reads).insert((from, who, number), new);
                    let checked = of_key.check(key, reads, (from, who, number));
                    result = result.and(checked);
                }
                self.open.insert((who, number), Open { keys, from, reads });
                result
            }
            Line::Held { hold, at, until } => self.change(who, *hold, |known| {
                known.until = known.until.max(*at);
                known.claimed = known.claimed.max(*until);
            }),
            Line::Delayed { hold, delay } => self.change(who, *hold, |known| known.delay = *delay),
            Line::Ended { hold, at, how } => {
                let result = self.change(who, *hold, |known| {
                    let end = match how == EXPIRED {
                        true => known.claimed + known.delay,
                        false => (*at).min(known.claimed),
                    };
                    known.until = known.until.max(end);
                    known.ended = Some(how.clone());
                });
                self.close(who, *hold);
                result
            }
            Line::Revoked { key, at, over_by } => {
                let (key, at, over_by) = (key.clone(), *at, *over_by);
                self.revocations.push(Revocation { key, at, over_by });
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Each hold that was longer than its revocation allows, as far as all is told.
    pub(crate) fn revoked_for_too_long(&self) -> Vec<String> {
        let first = Who { slot: 0, life: 0 };
        let too_long = |revocation: &Revocation| {
            let Revocation { key, at, over_by } = revocation;
            let (_, hold) = self.keys.get(key)?.writers.range(..(*at, first, 0)).next_back()?;
            let is_late = hold.until > *over_by;
            is_late.then(|| format!("{key} was revoked at {at}, to be over by {over_by}: {hold}"))
        };
        self.revocations.iter().filter_map(too_long).collect()
    }

    /// The process has died: its holds last to their ends, for nothing gives them up.
    pub(crate) fn died(&mut self, who: Who) -> Result<(), Box<Overlap>> {
        let numbers: Vec<u64> =
            self.open.keys().filter(|(holder, _)| *holder == who).map(|(_, n)| *n).collect();
        for number in numbers {
            self.change(who, number, |known| {
                known.until = known.until.max(known.claimed + known.delay);
                known.ended = Some("died".into());
            })?;
            self.close(who, number);
        }
        Ok(())
    }

    fn change(
        &mut self,
        who: Who,
        number: u64,
        change: impl Fn(&mut Hold),
    ) -> Result<(), Box<Overlap>> {
        let Some(Open { keys, from, reads }) = self.open.get(&(who, number)) else {
            return Ok(());
        };
        let (place, mut result) = ((*from, who, number), Ok(()));
        for key in keys {
            let Some(of_key) = self.keys.get_mut(key) else { continue };
            let Some(hold) = of_key.of(*reads).get_mut(&place) else { continue };
            let before = hold.until;
            change(hold);
            let (until, lasted) = (hold.until, hold.until - hold.from);
            self.held += until - before;
            if *reads {
                of_key.longest = of_key.longest.max(lasted);
            }
            let checked = of_key.check(key, *reads, place);
            result = result.and(checked);
        }
        result
    }

    fn close(&mut self, who: Who, number: u64) {
        self.open.remove(&(who, number));
    }
}

/// The names of what is held: a key, or its slots.
fn keys(key: &str, part: &Part) -> Vec<String> {
    match part {
        Part::Whole | Part::Read => vec![key.into()],
        Part::Slots(numbers) => {
            numbers.iter().map(|number| format!("{{{key}}}:slot:{number}")).collect()
        }
    }
}

impl OfKey {
    fn of(&mut self, reads: bool) -> &mut Holds {
        if reads { &mut self.readers } else { &mut self.writers }
    }

    /// Compares a hold with those that it may not overlap.
    fn check<'a>(
        &'a self,
        key: &str,
        reads: bool,
        place: (u64, Who, u64),
    ) -> Result<(), Box<Overlap>> {
        let holds = if reads { &self.readers } else { &self.writers };
        let Some(hold) = holds.get(&place) else { return Ok(()) };
        // Among writers, which did not overlap before, its neighbours are enough.
        let before = self.writers.range(..place).next_back().map(|(_, hold)| hold);
        let after = self.writers.range(place..).map(|(_, hold)| hold);
        let after = after.skip(usize::from(!reads)).take(1);
        let readers = self.readers.range(..(hold.until, Who { slot: 0, life: 0 }, 0)).rev();
        let readers = readers.map(|(_, reader)| reader).filter(|_| !reads);
        let readers = readers.take_while(|reader| reader.from + self.longest > hold.from);
        let in_order = |other: &'a Hold| match (other.from, other.who, other.number) < place {
            true => [other, hold],
            false => [hold, other],
        };
        // One that is known at an instant alone is held at that.
        let overlaps = |[first, second]: &[&Hold; 2]| first.until > second.from;
        let mut pairs = before.into_iter().chain(after).chain(readers).map(in_order);
        let Some([first, second]) = pairs.find(overlaps) else { return Ok(()) };
        Err(Box::new(Overlap { key: key.into(), first: first.clone(), second: second.clone() }))
    }
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, first, second } = self;
        let shared = clock::between(second.from, first.until.min(second.until).max(second.from));
        write!(f, "two holders of {key}, for {shared:?} or longer:\n  {first}\n  {second}")
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { who, number, from, until, ended, claimed, .. } = self;
        let ended = ended.as_deref().unwrap_or("going on");
        write!(f, "{who} hold {number}: from {from} to {until} ns ({ended}; claimed to {claimed})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(lines: &[(usize, &str)]) -> Result<History, Box<Overlap>> {
        let mut history = History::default();
        for (slot, text) in lines {
            let who = Who { slot: *slot, life: 0 };
            match *text {
                "dies" => history.died(who)?,
                text => history.record(who, &Line::parse(text).expect("a line"))?,
            }
        }
        Ok(history)
    }

    #[test]
    fn holds_one_after_the_other_are_fine_in_any_order_of_arrival() {
        let orders: [&[(usize, &str)]; 3] = [
            &[(0, "+ 1 k 10 90"), (0, "- 1 20 r"), (1, "+ 1 k 20 99"), (1, "- 1 30 r")],
            &[(1, "+ 1 k 20 99"), (1, "- 1 30 r"), (0, "+ 1 k 10 90"), (0, "- 1 20 r")],
            &[(0, "+ 1 k 10 90"), (1, "+ 1 k 20 99"), (1, "- 1 30 r"), (0, "- 1 20 r")],
        ];
        for lines in orders {
            let history = play(lines).expect("no overlap");
            assert_eq!((history.holds, history.held), (2, 20));
        }
        assert!(play(&[(0, "+ 1 k 10 90"), (0, "= 1 50 90"), (1, "+ 1 other 20 99")]).is_ok());
    }

    #[test]
    fn two_holders_are_found_as_soon_as_it_is_known() {
        let cases: [&[(usize, &str)]; 5] = [
            &[(0, "+ 1 k 10 90"), (0, "= 1 50 90"), (1, "+ 1 k 20 99")],
            &[(0, "+ 1 k 10 90"), (1, "+ 1 k 20 99"), (0, "= 1 21 90")],
            &[(0, "+ 1 k 10 90"), (1, "+ 1 k 20 99"), (0, "- 1 21 r")],
            &[(1, "+ 1 k 20 99"), (0, "+ 1 k 10 90"), (0, "- 1 21 r")],
            &[(0, "+ 1 k 10 90"), (1, "+ 1 k 89 99"), (0, "dies")],
        ];
        for lines in cases {
            let overlap = play(lines).expect_err("an overlap");
            assert_eq!((overlap.first.who.slot, overlap.second.who.slot), (0, 1), "{overlap}");
        }
    }

    #[test]
    fn readers_overlap_one_another_and_no_writer() {
        let readers =
            [(0, "@ 1 k 10 200"), (1, "@ 1 k 20 99"), (0, "= 1 150 200"), (1, "- 1 90 r")];
        let with =
            |writer: &'static str| play(&[&readers[..], &[(2, writer), (2, "- 1 190 r")]].concat());
        assert!(play(&readers).is_ok() && with("+ 1 k 150 199").is_ok());
        assert!(with("+ 1 k 149 199").is_err(), "the first of them has it still");
        assert!(play(&[(2, "+ 1 k 5 60"), (2, "= 1 11 60"), readers[0], readers[2]]).is_err());
    }

    #[test]
    fn two_holders_of_one_slot_are_found_also_where_each_has_others_as_well() {
        let cases: [&[(usize, &str)]; 5] = [
            &[(0, "% 1 k 1 10 90"), (0, "= 1 50 90"), (1, "% 1 k 1 20 99")],
            &[(0, "% 1 k 0,1 10 90"), (0, "= 1 50 90"), (1, "% 1 k 1 20 99")],
            &[(0, "% 1 k 1,2 10 90"), (1, "% 1 k 0,1 20 99"), (0, "- 1 21 r")],
            &[(1, "% 1 k 0,1 20 99"), (0, "% 1 k 1 10 90"), (0, "= 1 21 90")],
            &[(0, "% 1 k 0,1 10 90"), (1, "% 1 k 1 89 99"), (0, "dies")],
        ];
        for lines in cases {
            let overlap = play(lines).expect_err("an overlap");
            assert_eq!((overlap.first.who.slot, overlap.second.who.slot), (0, 1), "{overlap}");
            assert_eq!(overlap.key, "{k}:slot:1");
        }
    }

    #[test]
    fn other_slots_of_a_key_and_its_lock_are_held_at_once() {
        let lines = [
            (0, "% 1 k 0,2 10 90"),
            (1, "% 1 k 1 20 99"),
            (2, "+ 1 k 15 80"),
            (3, "% 1 other 0,1 10 90"),
            (0, "- 1 40 r"),
            (1, "- 1 50 r"),
            (2, "- 1 50 r"),
            (3, "- 1 50 r"),
            // Free again, both of them.
            (2, "% 2 k 2 40 99"),
            (3, "% 2 k 0 41 99"),
        ];
        let history = play(&lines).expect("no overlap");
        assert_eq!((history.holds, history.held), (8, 2 * 30 + 30 + 35 + 2 * 40));
    }

    #[test]
    fn no_hold_outlasts_what_its_guard_claimed() {
        // It was given up late, and its guard had long said that it was over.
        assert!(play(&[(0, "+ 1 k 10 30"), (1, "+ 1 k 30 99"), (0, "- 1 50 overstayed")]).is_ok());
        assert!(play(&[(0, "+ 1 k 10 30"), (1, "+ 1 k 30 99"), (0, "dies")]).is_ok());
        assert!(play(&[(0, "+ 1 k 10 30"), (1, "+ 1 k 29 99"), (0, "- 1 50 late")]).is_err());
    }

    #[test]
    fn a_lock_that_has_expired_keeps_others_out_for_its_delay() {
        let hold = [(0, "+ 1 k 10 30"), (0, "_ 1 20")];
        let with = |more: &[(usize, &'static str)]| play(&[&hold[..], more].concat()).is_ok();
        assert!(with(&[(1, "+ 1 k 50 99"), (0, "dies")]));
        assert!(!with(&[(1, "+ 1 k 49 99"), (0, "dies")]));
        assert!(with(&[(0, "- 1 31 expired"), (1, "+ 1 k 50 99")]));
        assert!(!with(&[(0, "- 1 31 expired"), (1, "+ 1 k 49 99")]));
        assert!(with(&[(0, "- 1 20 release"), (1, "+ 1 k 20 99")]), "it was given up in time");
    }

    #[test]
    fn a_revoked_lock_ends_by_when_it_was_told_to() {
        let late =
            |lines: &[(usize, &str)]| play(lines).expect("no overlap").revoked_for_too_long();
        let hold = [(0, "+ 1 k 10 90"), (0, "= 1 61 90")];
        let with = |line| late(&[&hold[..], &[(1, line)]].concat()).len();
        assert_eq!((with("/ 20 60 k"), with("/ 20 61 k"), with("/ 20 60 other")), (1, 0, 0));
        assert_eq!(with("/ 10 60 k"), 0, "it may be another's that has ended since");
        assert_eq!(late(&[(1, "/ 20 60 k"), hold[0], (0, "dies")]).len(), 1, "it claimed more");
        let next = [(0, "+ 1 k 10 50"), (1, "/ 20 60 k"), (0, "- 1 40 r"), (1, "+ 1 k 41 99")];
        assert_eq!(late(&next), [""; 0], "the next holder's is not revoked");
    }

    #[test]
    fn a_living_guard_and_the_adopter_of_its_token_are_two_holders() {
        let handed = "> 1 10 40 90 31 living one k token";
        let giver = [(0, "+ 1 k 10 90"), (0, "= 1 40 90"), (0, handed)];
        let adopts = |at: u64| (1, format!("+ 1 k {at} 300"));
        let played = |at: u64, last: &str| {
            let adopts = adopts(at);
            let mut lines = giver.to_vec();
            lines.extend([(adopts.0, &*adopts.1), (0, last)]);
            play(&lines)
        };
        assert!(played(60, "= 1 61 90").is_err(), "it was still valid behind the adoption");
        assert!(played(60, "- 1 61 release").is_err(), "it was let go behind the adoption");
        assert!(played(60, "dies").is_err(), "it claimed to be held to its end");
        assert!(played(60, "- 1 55 found-lost").is_ok());
        assert!(played(90, "dies").is_ok(), "the adopter waited for the old end");
    }
}
