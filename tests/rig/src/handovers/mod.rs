//! Tokens that change hands between processes, and whether each is adopted exactly once: pure.
//!
//! ```text
//! given ── delivered to one client, or to two, or twice ──▶ adopted by one ──▶ right
//!                                                           adopted by two ──▶ a violation
//!                                                           adopted by none ─▶ right, if a fault
//!                                                            explains it; else a violation
//! ```
//!
//! Two holders at a time, the giver and an adopter among them, are the history's to find. A token
//! must be adopted when nothing was in the way: a majority of the nodes that granted the lock was
//! undisturbed for giver and adopter, from the grant on, and neither was stopped or killed.

mod delivery;
mod summary;

use std::collections::{BTreeSet, HashMap};

use crate::disturbances::{Disturbances, Span};
use crate::history::Who;
use crate::line::{Copies, Handed, Line, Order, Source};

pub(crate) use delivery::{Delivery, deliveries};
pub(crate) use summary::Summary;

/// How long a hand-over stays open behind its last answer: a giver's own end may still be told.
const SETTLED: u64 = 2_000_000_000;

/// What became of one copy of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    Adopted {
        hold: u64,
    },
    Refused(String),
    /// The process ended before it answered, or before it got the token.
    Ended,
}

/// One copy of a token, and its way.
#[derive(Clone, Debug)]
struct Copy {
    number: u64,
    to: Who,
    /// When it was answered, and how.
    answer: Option<(u64, Answer)>,
}

/// One token that changes hands.
#[derive(Debug)]
struct Handover {
    giver: Who,
    handed: Handed,
    /// How many copies are still to be sent.
    unsent: usize,
    copies: Vec<Copy>,
    /// The giver ended its living hold by itself.
    let_go: bool,
}

/// All hand-overs that are not judged yet, and what the others have shown.
#[derive(Debug)]
pub(crate) struct Handovers {
    majority: u32,
    nodes: u32,
    open: HashMap<u64, Handover>,
    /// Which hand-over a copy belongs to.
    copies: HashMap<u64, u64>,
    next: u64,
    summary: Summary,
}

impl Handovers {
    pub(crate) fn new(nodes: usize) -> Self {
        Self {
            majority: (nodes / 2 + 1) as u32,
            nodes: nodes as u32,
            open: HashMap::new(),
            copies: HashMap::new(),
            next: 0,
            summary: Summary::default(),
        }
    }

    pub(crate) fn summary(&self) -> &Summary {
        &self.summary
    }

    /// A client hands a token over; its number.
    pub(crate) fn given(&mut self, giver: Who, handed: &Handed) -> u64 {
        self.next += 1;
        let unsent = if handed.copies == Copies::One { 1 } else { 2 };
        let (handed, copies) = (handed.clone(), Vec::new());
        let new = Handover { giver, handed, unsent, copies, let_go: false };
        self.open.insert(self.next, new);
        self.next
    }

    /// A copy goes to a process: what it is asked; nothing for a hand-over that is not open.
    pub(crate) fn send(&mut self, handover: u64, to: Who) -> Option<Order> {
        let known = self.open.get_mut(&handover)?;
        known.unsent = known.unsent.saturating_sub(1);
        self.next += 1;
        let number = self.next;
        known.copies.push(Copy { number, to, answer: None });
        self.copies.insert(number, handover);
        let Handed { key, token, .. } = known.handed.clone();
        Some(Order { delivery: number, key, token })
    }

    /// Takes down a line; an error if a token was adopted twice.
    pub(crate) fn record(&mut self, who: Who, line: &Line) -> Result<(), String> {
        match line {
            Line::Adopted { delivery, hold, at, waited, tries } => {
                let source = self.answer(*delivery, *at, Answer::Adopted { hold: *hold });
                if let Some(source) = source {
                    self.summary.wait(source, *waited, *tries);
                }
                self.adopted_twice(*delivery)
            }
            Line::NotAdopted { delivery, at, why } => {
                self.answer(*delivery, *at, Answer::Refused(why.clone()));
                self.adopted_twice(*delivery)
            }
            Line::Ended { hold, how, .. } if how.starts_with("let-go") => {
                let own = |known: &&mut Handover| known.giver == who && known.handed.hold == *hold;
                self.open.values_mut().filter(own).for_each(|known| known.let_go = true);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The process has ended: what it has not answered it never will.
    pub(crate) fn died(&mut self, who: Who, at: u64) {
        for known in self.open.values_mut() {
            let silent = |copy: &&mut Copy| copy.to == who && copy.answer.is_none();
            for copy in known.copies.iter_mut().filter(silent) {
                copy.answer = Some((at, Answer::Ended));
            }
        }
    }

    fn answer(&mut self, delivery: u64, at: u64, answer: Answer) -> Option<Source> {
        let known = self.open.get_mut(self.copies.get(&delivery)?)?;
        let copy = known.copies.iter_mut().find(|copy| copy.number == delivery)?;
        copy.answer = Some((at, answer));
        Some(known.handed.source)
    }

    fn adopted_twice(&self, delivery: u64) -> Result<(), String> {
        let Some(known) = self.copies.get(&delivery).and_then(|number| self.open.get(number))
        else {
            return Ok(());
        };
        if known.adoptions() < 2 {
            return Ok(());
        }
        Err(format!("a token was adopted twice: {}", known.describe()))
    }

    /// Judges what has been answered for a while, or everything `at_last`; an error for each token
    /// that was not adopted though nothing was in the way.
    pub(crate) fn judge(
        &mut self,
        now: u64,
        disturbances: &Disturbances,
        at_last: bool,
    ) -> Vec<String> {
        let ripe = |known: &Handover| {
            let answered = known.answered();
            at_last || answered.is_some_and(|at| at.saturating_add(SETTLED) <= now)
        };
        let numbers = self.open.iter().filter(|(_, known)| ripe(known)).map(|(number, _)| *number);
        let numbers: BTreeSet<u64> = numbers.collect();
        let mut broken = Vec::new();
        for number in numbers {
            let Some(known) = self.open.remove(&number) else { continue };
            for copy in &known.copies {
                self.copies.remove(&copy.number);
            }
            let obstacle = self.obstacle(&known, disturbances);
            let adoptions = known.adoptions();
            self.summary.judged(known.handed.source, adoptions, obstacle.as_deref());
            if adoptions == 0 && obstacle.is_none() {
                broken.push(format!(
                    "a token was never adopted, and no fault explains it: {}",
                    known.describe()
                ));
            }
        }
        broken
    }

    /// Why it may have been adopted by none, if something explains that.
    fn obstacle(&self, known: &Handover, disturbances: &Disturbances) -> Option<String> {
        if known.unsent > 0 || known.copies.iter().any(|copy| copy.answer.is_none()) {
            return Some("the run ended".into());
        }
        let giver = known.giver.slot;
        for copy in &known.copies {
            let (at, answer) = copy.answer.as_ref()?;
            match answer {
                Answer::Ended => return Some("the adopter ended".into()),
                Answer::Refused(why) if why == "cancelled" || why == "stopped" => {
                    return Some(why.clone());
                }
                _ => {}
            }
            let (since, to) = (known.handed.since, *at);
            let whole = Span { from: since, to };
            let behind = Span { from: known.handed.at, to };
            let stopped = disturbances.client(giver, whole);
            if let Some(fault) = stopped.or_else(|| disturbances.client(copy.to.slot, behind)) {
                return Some(fault.into());
            }
            let (before, mut names) = disturbances.nodes(giver, whole);
            let (after, others) = disturbances.nodes(copy.to.slot, behind);
            names.extend(others);
            if (known.handed.nodes & !(before | after)).count_ones() < self.majority {
                return Some(names.first().copied().unwrap_or("too few nodes").into());
            }
        }
        if known.let_go {
            return Some("the giver let go".into());
        }
        // Two that ask at once may each get a part of what is no more than a majority.
        let is_split = known.handed.copies == Copies::Two
            && known.handed.nodes.count_ones() < self.nodes
            && known.adoptions() == 0;
        is_split.then(|| "two adopters shared the nodes".into())
    }
}

impl Handover {
    fn adoptions(&self) -> usize {
        self.copies.iter().filter(|copy| copy.is_adopted()).count()
    }

    /// When the last copy was answered, if all were.
    fn answered(&self) -> Option<u64> {
        let answers = self.copies.iter().map(|copy| copy.answer.as_ref().map(|(at, _)| *at));
        let all: Option<Vec<u64>> = answers.collect();
        all.filter(|_| self.unsent == 0)?.into_iter().max()
    }

    fn describe(&self) -> String {
        let Handed { hold, at, nodes, source, key, .. } = &self.handed;
        let (giver, source) = (self.giver, source.name());
        let mut text =
            format!("{key}, {source}, of {giver} hold {hold}, at {at} ns, nodes {nodes:b}");
        for copy in &self.copies {
            let what = match &copy.answer {
                None => "no answer".into(),
                Some((at, Answer::Adopted { hold })) => {
                    format!("adopted as hold {hold} at {at} ns")
                }
                Some((at, Answer::Refused(why))) => format!("{why} at {at} ns"),
                Some((at, Answer::Ended)) => format!("its process ended at {at} ns"),
            };
            text += &format!("\n  {}: {what}", copy.to);
        }
        text
    }
}

impl Copy {
    /// An adoption whose guard came late is one: the token is spent.
    fn is_adopted(&self) -> bool {
        match &self.answer {
            Some((_, Answer::Adopted { .. })) => true,
            Some((_, Answer::Refused(why))) => why == "late",
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
