//! Histories made by hand: each that breaks a rule is found, and each that keeps them passes.

use std::time::Duration;

use super::*;
use crate::faults::{Fault, Kind};

const SECOND: u64 = 1_000_000_000;

/// A hand-over and its copies, played line by line.
struct Play {
    handovers: Handovers,
    disturbances: Disturbances,
    broken: Vec<String>,
}

const fn who(slot: usize) -> Who {
    Who { slot, life: 1 }
}

impl Play {
    fn new() -> Self {
        let (handovers, disturbances) = (Handovers::new(5), Disturbances::default());
        Self { handovers, disturbances, broken: Vec::new() }
    }

    /// Client 0 hands over a lock that these nodes granted; the numbers of the copies, which go to
    /// the clients 1 and 2.
    fn give(&mut self, source: &str, copies: &str, nodes: u32) -> Vec<u64> {
        let text = format!("> 1 {SECOND} {} {nodes} {source} {copies} h1 token", 2 * SECOND);
        let Some(Line::Handed(handed)) = Line::parse(&text) else { panic!("a line: {text}") };
        let number = self.handovers.given(who(0), &handed);
        let receivers = if copies == "one" { 1..=1 } else { 1..=2 };
        let orders = receivers.map(|slot| self.handovers.send(number, who(slot)));
        orders.map(|order| order.expect("it is open").delivery).collect()
    }

    fn tell(&mut self, slot: usize, line: &str) {
        let line = Line::parse(line).expect("a line");
        self.broken.extend(self.handovers.record(who(slot), &line).err());
    }

    fn judge(mut self) -> (Vec<String>, Summary) {
        let broken = self.handovers.judge(10 * SECOND, &self.disturbances, false);
        self.broken.extend(broken);
        (self.broken, self.handovers.summary)
    }

    /// A fault from the first second to the third.
    fn fault(&mut self, kind: Kind, clients: u32, nodes: u32) {
        self.fault_during(kind, clients, nodes, [SECOND, 3 * SECOND]);
    }

    fn fault_during(&mut self, kind: Kind, clients: u32, nodes: u32, [from, to]: [u64; 2]) {
        let path = (kind == Kind::Partition).then(Default::default);
        let (at, lasts) = (Duration::ZERO, Duration::ZERO);
        let fault = Fault { kind, number: 1, at, lasts, clients, nodes, path, amount: 0 };
        self.disturbances.begin(&fault, from);
        self.disturbances.end(&fault, to);
    }
}

fn adopted(delivery: u64) -> String {
    format!("< {delivery} 4 {} 1000 1", 2 * SECOND + 5)
}

fn refused(delivery: u64, why: &str) -> String {
    format!("x {delivery} {} {why}", 2 * SECOND + 5)
}

#[test]
fn a_token_that_is_adopted_once_is_right_however_many_copies_there_are() {
    for (source, copies) in [("forgotten", "one"), ("left", "two"), ("living", "again")] {
        let mut play = Play::new();
        let sent = play.give(source, copies, 0b11111);
        play.tell(1, &adopted(sent[0]));
        if let Some(second) = sent.get(1) {
            play.tell(2, &refused(*second, "lost"));
        }
        let (broken, summary) = play.judge();
        assert!(broken.is_empty(), "{copies}: {broken:?}");
        assert!(summary.to_string().contains("1 tokens"), "{summary}");
    }
}

#[test]
fn a_token_that_is_adopted_twice_is_found_at_once_and_no_fault_excuses_it() {
    for copies in ["two", "again"] {
        for second in [adopted as fn(u64) -> String, |copy| refused(copy, "late")] {
            let mut play = Play::new();
            play.fault(Kind::KillServer, 0b111, 0b11111);
            let sent = play.give("forgotten", copies, 0b11111);
            play.tell(1, &adopted(sent[0]));
            assert!(play.broken.is_empty());
            play.tell(2, &second(sent[1]));
            let (broken, summary) = play.judge();
            assert!(broken[0].starts_with("a token was adopted twice: h1"), "{broken:?}");
            assert!(summary.to_string().contains("| forgotten | 1 | 0 | 0 | 1 |"), "{summary}");
        }
    }
}

#[test]
fn a_token_without_an_adopter_is_found_where_nothing_was_in_the_way() {
    for (source, copies) in [("forgotten", "one"), ("left", "again"), ("living", "two")] {
        let mut play = Play::new();
        for (slot, number) in play.give(source, copies, 0b11111).into_iter().enumerate() {
            play.tell(slot + 1, &refused(number, "lost"));
        }
        let (broken, _) = play.judge();
        assert!(broken[0].starts_with("a token was never adopted"), "{broken:?}");
        assert!(broken[0].contains("lost at"), "{broken:?}");
    }
}

#[test]
fn a_minority_that_is_disturbed_is_no_excuse_and_a_majority_is() {
    let cases = [
        // The fault, whom it meets, the nodes that granted, and whether it explains a failure.
        (Kind::Partition, 0b010, 0b00011, 0b11111, false),
        (Kind::Partition, 0b010, 0b00111, 0b11111, true),
        (Kind::Partition, 0b010, 0b00011, 0b01111, true),
        (Kind::Partition, 0b001, 0b00111, 0b11111, true),
        (Kind::Partition, 0b100, 0b11111, 0b11111, false),
        (Kind::KillServer, 0b100, 0b00111, 0b11111, true),
        (Kind::Cut, 0b100, 0b00011, 0b11111, false),
        (Kind::FreezeClient, 0b010, 0b00001, 0b11111, true),
        (Kind::FreezeClient, 0b100, 0b11111, 0b11111, false),
        (Kind::ClockStep, 0b111, 0b11111, 0b11111, false),
    ];
    for (kind, clients, nodes, granted, explains) in cases {
        let mut play = Play::new();
        play.fault(kind, clients, nodes);
        let sent = play.give("forgotten", "one", granted);
        play.tell(1, &refused(sent[0], "unavailable"));
        let (broken, _) = play.judge();
        assert_eq!(broken.is_empty(), explains, "{kind:?} {nodes:b} {granted:b}: {broken:?}");
    }
}

#[test]
fn what_met_the_giver_counts_from_the_grant_on_and_the_adopter_from_the_hand_over_on() {
    // Effects until 1.4 s: behind the grant at 1 s, and before the hand-over at 2 s.
    let early = [0, SECOND / 5];
    for (client, explains) in [(0b001, true), (0b010, false)] {
        let mut play = Play::new();
        play.fault_during(Kind::Partition, client, 0b00111, early);
        let sent = play.give("forgotten", "one", 0b11111);
        play.tell(1, &refused(sent[0], "lost"));
        assert_eq!(play.judge().0.is_empty(), explains, "{client:b}");
    }
}

#[test]
fn what_ends_an_adoption_for_another_reason_is_told_and_excused() {
    for why in ["cancelled", "stopped"] {
        let mut play = Play::new();
        let sent = play.give("forgotten", "one", 0b11111);
        play.tell(1, &refused(sent[0], why));
        assert!(play.judge().0.is_empty(), "{why}");
    }
    let mut play = Play::new();
    play.give("forgotten", "one", 0b11111);
    play.handovers.died(who(1), 2 * SECOND);
    assert!(play.judge().0.is_empty(), "the adopter ended");
    let mut play = Play::new();
    let sent = play.give("living", "one", 0b11111);
    play.tell(1, &refused(sent[0], "lost"));
    play.tell(0, "- 1 2000000001 let-go-drop");
    assert!(play.judge().0.is_empty(), "the giver let go");
    let mut play = Play::new();
    let sent = play.give("living", "one", 0b11111);
    play.tell(1, &refused(sent[0], "lost"));
    play.tell(0, "- 1 2000000001 found-lost");
    assert_eq!(play.judge().0.len(), 1, "a giver that lost it to none");
}

#[test]
fn two_adopters_may_share_a_bare_majority_but_not_all_nodes() {
    for (nodes, explains) in [(0b00111, true), (0b11111, false)] {
        let mut play = Play::new();
        let sent = play.give("forgotten", "two", nodes);
        play.tell(1, &refused(sent[0], "lost"));
        play.tell(2, &refused(sent[1], "lost"));
        assert_eq!(play.judge().0.is_empty(), explains, "{nodes:b}");
    }
}

#[test]
fn nothing_is_judged_before_every_copy_is_answered_but_at_the_end() {
    let mut play = Play::new();
    let sent = play.give("forgotten", "again", 0b11111);
    play.tell(1, &refused(sent[0], "lost"));
    assert!(play.handovers.judge(100 * SECOND, &play.disturbances, false).is_empty());
    assert_eq!(play.handovers.summary.handed(), 0);
    assert!(play.handovers.judge(100 * SECOND, &play.disturbances, true).is_empty());
    assert_eq!(play.handovers.summary.handed(), 1);
}
