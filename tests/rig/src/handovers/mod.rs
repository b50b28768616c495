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
//! must be adopted when nothing was in the way of one of its copies: a majority of the nodes that
//! granted the lock was undisturbed for giver and adopter, from the grant on, neither was stopped
//! or killed, and no other copy's adopter that was disturbed can have taken the nodes meanwhile.
//!
//! What the rig's own slowness keeps from a token is told apart: a copy that came too late, and an
//! adopter that was not let run. Neither excuses a token that is adopted twice.

mod delivery;
mod summary;

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use crate::clock;
use crate::disturbances::{Disturbances, Span};
use crate::history::Who;
use crate::line::{Copies, Handed, Line, Order, Source};

pub(crate) use delivery::{Delivery, deliveries};
pub(crate) use summary::Summary;

/// How long a hand-over stays open behind its last answer: a giver's own end may still be told.
const SETTLED: u64 = 2_000_000_000;

/// Obstacles of the rig's own making.
const DELIVERED_LATE: &str = "delivered late";
const NOT_LET_RUN: &str = "not let run";

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
#[derive(Clone, Debug, PartialEq, Eq)]
struct Copy {
    number: u64,
    to: Who,
    /// When it was sent; nothing where its process could not be asked.
    sent: Option<u64>,
    /// When its process got it, if it has answered, and for how long that was not let run.
    asked: Option<u64>,
    stalled: u64,
    /// What its earlier tries were answered, and when.
    earlier: String,
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
    /// When the giver ended its living hold because that was lost.
    found_lost: Option<u64>,
}

/// All hand-overs that are not judged yet, and what the others have shown.
#[derive(Debug)]
pub(crate) struct Handovers {
    majority: u32,
    /// For how long a node is waited for.
    node_timeout: u64,
    /// What must be left of a lock's time for an adoption.
    needed: u64,
    open: HashMap<u64, Handover>,
    /// Which hand-over a copy belongs to.
    copies: HashMap<u64, u64>,
    next: u64,
    summary: Summary,
}

impl Handovers {
    /// For so many nodes, each of which is given so much time for its answer.
    pub(crate) fn new(nodes: usize, node_timeout: Duration) -> Self {
        // A try that meets another adopter's, the longest pause behind it, and one more try: each
        // may take as long as the slowest node is waited for.
        let needed = clock::nanos(2 * node_timeout + Duration::from_millis(20));
        Self {
            node_timeout: clock::nanos(node_timeout),
            needed,
            majority: (nodes / 2 + 1) as u32,
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
        let new = Handover { giver, handed, unsent, copies, let_go: false, found_lost: None };
        self.open.insert(self.next, new);
        self.next
    }

    /// A copy goes to a process now: what it is asked; nothing for a hand-over that is not open.
    pub(crate) fn send(&mut self, handover: u64, to: Who, at: u64) -> Option<Order> {
        let known = self.open.get_mut(&handover)?;
        known.unsent = known.unsent.saturating_sub(1);
        self.next += 1;
        let number = self.next;
        known.copies.push(Copy {
            number,
            to,
            sent: Some(at),
            asked: None,
            stalled: 0,
            earlier: String::new(),
            answer: None,
        });
        self.copies.insert(number, handover);
        let Handed { key, token, .. } = known.handed.clone();
        Some(Order { delivery: number, key, token })
    }

    /// A copy could not be sent: its process had ended.
    pub(crate) fn unsendable(&mut self, delivery: u64, at: u64) {
        if let Some(copy) = self.copy(delivery) {
            (copy.sent, copy.answer) = (None, Some((at, Answer::Ended)));
        }
    }

    /// Takes down a line; an error if a token was adopted twice.
    pub(crate) fn record(&mut self, who: Who, line: &Line) -> Result<(), String> {
        match line {
            Line::Adopted { delivery, hold, at, waited, tries } => {
                let asked = at.saturating_sub(*waited);
                let source = self.answer(*delivery, asked, *at, Answer::Adopted { hold: *hold });
                if let Some(source) = source {
                    self.summary.wait(source, *waited, *tries);
                }
                self.adopted_twice(*delivery)
            }
            Line::NotAdopted { delivery, asked, at, stalled, why, earlier } => {
                self.answer(*delivery, *asked, *at, Answer::Refused(why.clone()));
                if let Some(copy) = self.copy(*delivery) {
                    copy.stalled = *stalled;
                    copy.earlier.clone_from(earlier);
                }
                self.adopted_twice(*delivery)
            }
            Line::Held { hold, until, .. } => {
                // A giver that lives on extends its lock.
                let own = |known: &&mut Handover| {
                    known.handed.source == Source::Living
                        && (known.giver, known.handed.hold) == (who, *hold)
                };
                let given = self.open.values_mut().filter(own);
                given.for_each(|known| known.handed.until = known.handed.until.max(*until));
                Ok(())
            }
            Line::Ended { hold, at, how } => {
                let own = |known: &&mut Handover| known.giver == who && known.handed.hold == *hold;
                for known in self.open.values_mut().filter(own) {
                    known.let_go |= how.starts_with("let-go");
                    known.found_lost = (how == "found-lost").then_some(*at);
                }
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

    fn copy(&mut self, delivery: u64) -> Option<&mut Copy> {
        let known = self.open.get_mut(self.copies.get(&delivery)?)?;
        known.copies.iter_mut().find(|copy| copy.number == delivery)
    }

    fn answer(&mut self, delivery: u64, asked: u64, at: u64, answer: Answer) -> Option<Source> {
        let copy = self.copy(delivery)?;
        (copy.asked, copy.answer) = (Some(asked), Some((at, answer)));
        self.open.get(self.copies.get(&delivery)?).map(|known| known.handed.source)
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
                let clear = |copy| self.clear_nodes(&known, copy, disturbances).0;
                let clear = known.copies.iter().map(|copy| format!("{:b}", clear(copy)));
                broken.push(format!(
                    "a token was never adopted, and no fault explains it: {}\n  undisturbed \
                     nodes, a copy each: {}",
                    known.describe(),
                    clear.collect::<Vec<_>>().join(" ")
                ));
            }
        }
        broken
    }

    /// Why it may have been adopted by none, if something explains that for each copy.
    fn obstacle(&self, known: &Handover, disturbances: &Disturbances) -> Option<String> {
        if known.unsent > 0 || known.copies.iter().any(|copy| copy.answer.is_none()) {
            return Some("the run ended".into());
        }
        if known.let_go {
            return Some("the giver let go".into());
        }
        let own = known.copies.iter().map(|copy| self.obstacle_of(known, copy, disturbances));
        let own: Vec<Option<String>> = own.collect();
        let each = known.copies.iter().zip(&own).map(|(copy, obstacle)| {
            let others = || known.copies.iter().zip(&own).filter(|(other, _)| *other != copy);
            obstacle.clone().or_else(|| others().find_map(|(other, why)| copy.taken_by(other, why)))
        });
        if let Some(Some(first)) =
            each.collect::<Option<Vec<_>>>().map(|all| all.into_iter().next())
        {
            return Some(first);
        }
        let is_split = known.adoptions() == 0 && self.may_share(known, disturbances);
        is_split.then(|| "two adopters shared the nodes".into())
    }

    /// Two that ask at once may each get a part of what is no more than a majority. That is in the
    /// way of both, though what is left would do for one of them: each waits for the other's undo,
    /// may meet the other again, and may find its time over before they part. So may one that has
    /// won all three of five nodes that the other did not have, one of which is then disturbed:
    /// while it waits, the giver's end deletes what the other has put back.
    fn may_share(&self, known: &Handover, disturbances: &Disturbances) -> bool {
        let [first, second] = &known.copies[..] else { return false };
        let meet = |one: &Copy, other: &Copy| {
            let answered = other.answer.as_ref().map(|(at, _)| *at);
            one.asked.zip(answered).is_some_and(|(asked, answered)| asked <= answered)
        };
        let is_refused = |copy: &Copy| {
            let words = ["lost", "contended", "unavailable"];
            matches!(&copy.answer, Some((_, Answer::Refused(why))) if words.contains(&&**why))
        };
        let clear = self.clear_nodes(known, first, disturbances).0
            & self.clear_nodes(known, second, disturbances).0;
        known.handed.copies == Copies::Two
            && meet(first, second)
            && meet(second, first)
            && is_refused(first)
            && is_refused(second)
            && clear.count_ones() <= 2 * (self.majority - 1)
    }

    /// The nodes that nothing disturbed, for the giver from the grant on, and for the adopter of
    /// this copy until its answer; and a fault that met another one.
    fn clear_nodes(
        &self,
        known: &Handover,
        copy: &Copy,
        disturbances: &Disturbances,
    ) -> (u32, Option<&'static str>) {
        let to = copy.answer.as_ref().map_or(u64::MAX, |(at, _)| *at);
        let (before, names) =
            disturbances.nodes(known.giver.slot, Span { from: known.handed.since, to });
        let (after, others) = disturbances.nodes(copy.to.slot, Span { from: known.handed.at, to });
        let fault = names.first().or_else(|| others.first()).copied();
        (known.handed.nodes & !(before | after), fault)
    }

    /// What was in the way of one copy.
    fn obstacle_of(
        &self,
        known: &Handover,
        copy: &Copy,
        disturbances: &Disturbances,
    ) -> Option<String> {
        let giver = known.giver.slot;
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
        let (nodes, fault) = self.clear_nodes(known, copy, disturbances);
        if nodes.count_ones() < self.majority {
            return Some(fault.unwrap_or("too few nodes").into());
        }
        let latest = known.handed.until.saturating_sub(self.needed);
        let asked = copy.asked.unwrap_or(*at);
        if asked > latest {
            return Some(DELIVERED_LATE.into());
        }
        // As if it had been asked so much later. The waits of several threads are added up: one
        // that answered in time was not kept from it.
        let stalled = copy.stalled.min(at.saturating_sub(asked));
        // A try that was kept for as long as a node is waited for may fail, and puts the former
        // value back: a giver that has found its lock lost by then deletes that.
        let may_have_failed = known.found_lost.is_some() && stalled >= self.node_timeout;
        (may_have_failed || asked.saturating_add(stalled) > latest).then(|| NOT_LET_RUN.into())
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
        let Handed { hold, at, until, nodes, source, key, .. } = &self.handed;
        let (giver, source) = (self.giver, source.name());
        let mut text = format!("{key}, {source}, of {giver} hold {hold}, at {at} ns, ");
        text += &format!("held until {until} ns, nodes {nodes:b}");
        if let Some(at) = self.found_lost {
            text += &format!(", found lost at {at} ns");
        }
        for copy in &self.copies {
            let what = match &copy.answer {
                None => "no answer".into(),
                Some((at, Answer::Adopted { hold })) => {
                    format!("adopted as hold {hold} at {at} ns")
                }
                Some((at, Answer::Refused(why))) => format!("{why} at {at} ns"),
                Some((at, Answer::Ended)) => format!("its process ended at {at} ns"),
            };
            text += &format!("\n  {}", copy.to);
            if let Some(asked) = copy.asked {
                text += &format!(", asked at {asked} ns, not let run for {} ns", copy.stalled);
                text += &format!(", earlier answers: {}", copy.earlier);
            }
            text += &format!(": {what}");
        }
        text
    }
}

impl Copy {
    /// The other copy's obstacle, if that explains that this one was refused though its own way was
    /// clear: a disturbed adopter may have given its own value to nodes, and have kept no majority.
    /// Only the answers that another value on the nodes leads to are explained so, and only if the
    /// other was asked before this one was answered. One that came too late took nothing.
    fn taken_by(&self, other: &Self, why: &Option<String>) -> Option<String> {
        let why = why.as_ref().filter(|why| *why != DELIVERED_LATE)?;
        let (at, Answer::Refused(word)) = self.answer.as_ref()? else { return None };
        let is_taken = word == "lost" || word == "contended";
        let is_before = other.asked.or(other.sent).is_some_and(|asked| asked < *at);
        (is_taken && is_before).then(|| why.clone())
    }

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
