//! Fences as a model: every order of events on few nodes with few attempts, and chance on more.
//!
//! A node keeps who holds the lock, and the fence. An attempt asks the nodes for the lock and then
//! to take a token (one script that does both is the case in which nothing comes between); a token
//! that a majority has taken is its fence. Nothing is assumed of time: a token is any number, the
//! lock ends on any node at any moment, and what was sent may arrive late, also when the attempt
//! has long ended, twice, or never. Two things must hold: no two attempts have the same fence, and
//! one that begins after another got its fence gets a higher one.
//!
//! Where nodes may forget, each has a clock: a fence that is missing stands at the node's own time,
//! and tokens that lie too far ahead of that are refused. A node that has forgotten takes no part
//! until its clock is past all that it may have taken.
//!
//! Five rules are left out in turn, and each is found out by the shortest history that shows why. A
//! sixth, that the lock must be held, turns out to be needed for neither of the two things.
//!
//! *Every order* is within bounds: the tokens are as high as `TOP`, and each attempt tries as many
//! as its model says. A fence that is dropped after a week, a clock that is set back and a node
//! that goes back to an earlier state are not in the model.

use std::collections::HashMap;

const NODES_MAX: usize = 5;
const ATTEMPTS_MAX: usize = 4;
const TOKENS_PER_ATTEMPT: usize = 2;

/// How far ahead of a node's clock a token may be that it takes.
const AHEAD: u8 = 1;

/// What is asked, and which rule is left out.
#[derive(Clone, Copy)]
struct Model {
    nodes: usize,
    attempts: usize,
    /// How many tokens each attempt may try, one after the other.
    tries: usize,
    /// The highest token.
    top: u8,
    /// Whether nodes have clocks, and may forget.
    forgets: bool,
    broken: Broken,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Broken {
    Nothing,
    /// A node takes a token that is not below its fence, and so one that it has.
    Equal,
    /// A node takes any token, as one does that writes back the highest that was seen.
    Unchecked,
    /// A token counts as the fence once it was sent, where a majority has taken one before it.
    Unconfirmed,
    /// A node takes a token though another holds the lock.
    NotHeld,
    /// A node that has forgotten stands at zero.
    Zero,
    /// A node that has forgotten votes at once.
    NoQuarantine,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
struct Node {
    /// Who holds the lock: an attempt's number and one.
    lock: u8,
    /// 0: missing.
    fence: u8,
    clock: u8,
    /// It takes no part until its clock is here.
    until: u8,
    /// Of each attempt which of its tokens were taken, as bits.
    took: [u8; ATTEMPTS_MAX],
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Attempt {
    has_begun: bool,
    /// The highest fence that anyone had when it began.
    above: u8,
    /// What it has put to the nodes so far; 0: nothing.
    tokens: [u8; TOKENS_PER_ATTEMPT],
    /// Its fence; 0: none.
    fence: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
struct State {
    nodes: [Node; NODES_MAX],
    attempts: [Attempt; ATTEMPTS_MAX],
}

/// What happens.
#[derive(Clone, Copy, Debug)]
#[expect(dead_code, reason = "what an event tells is read by who reads a history")]
enum Event {
    Begins {
        attempt: usize,
        token: u8,
    },
    TriesAgain {
        attempt: usize,
        token: u8,
    },
    /// The request for the lock arrives, for the first time or again.
    Acquires {
        attempt: usize,
        node: usize,
    },
    /// So does a token.
    Takes {
        attempt: usize,
        node: usize,
        token: u8,
    },
    Ends {
        node: usize,
    },
    Forgets {
        node: usize,
    },
    Ticks {
        node: usize,
    },
    Learns {
        attempt: usize,
        fence: u8,
    },
}

impl Model {
    /// Everything that may happen next, and what it leads to.
    fn next(&self, state: &State, mut then: impl FnMut(Event, State)) {
        for (number, attempt) in state.attempts[..self.attempts].iter().enumerate() {
            self.next_of_attempt(state, number, attempt, &mut then);
        }
        for (number, node) in state.nodes[..self.nodes].iter().enumerate() {
            let mut change = |event, change: &dyn Fn(&mut Node)| {
                let mut next = *state;
                change(&mut next.nodes[number]);
                then(event, next);
            };
            if node.lock != 0 {
                change(Event::Ends { node: number }, &|node| node.lock = 0);
            }
            if self.forgets && node.clock < self.top {
                change(Event::Ticks { node: number }, &|node| node.clock += 1);
            }
            if self.forgets && node.fence != 0 {
                let quarantine = if self.broken == Broken::NoQuarantine { 0 } else { AHEAD };
                change(Event::Forgets { node: number }, &|node| {
                    (node.lock, node.fence) = (0, 0);
                    node.until = node.clock + quarantine;
                });
            }
        }
    }

    fn next_of_attempt(
        &self,
        state: &State,
        number: usize,
        attempt: &Attempt,
        then: &mut impl FnMut(Event, State),
    ) {
        let tried = attempt.tokens.iter().take_while(|token| **token != 0).count();
        if !attempt.has_begun || (attempt.fence == 0 && tried < self.tries) {
            for token in 1..=self.top {
                let mut next = *state;
                let changed = &mut next.attempts[number];
                changed.tokens[tried] = token;
                if attempt.has_begun {
                    then(Event::TriesAgain { attempt: number, token }, next);
                    continue;
                }
                changed.has_begun = true;
                changed.above = state.attempts.iter().map(|other| other.fence).max().unwrap_or(0);
                then(Event::Begins { attempt: number, token }, next);
            }
        }
        if !attempt.has_begun {
            return;
        }
        for node in 0..self.nodes {
            let found = &state.nodes[node];
            if found.clock < found.until {
                continue;
            }
            if found.lock == 0 {
                let mut next = *state;
                next.nodes[node].lock = number as u8 + 1;
                then(Event::Acquires { attempt: number, node }, next);
            }
            for (which, token) in attempt.tokens[..tried].iter().copied().enumerate() {
                // What is taken twice changes nothing, and is no event.
                let is_new = found.fence != token || found.took[number] & (1 << which) == 0;
                if is_new && self.takes(found, number, token) {
                    let mut next = *state;
                    next.nodes[node].fence = token;
                    next.nodes[node].took[number] |= 1 << which;
                    then(Event::Takes { attempt: number, node, token }, next);
                }
            }
        }
        if attempt.fence == 0 {
            for (which, token) in attempt.tokens[..tried].iter().copied().enumerate() {
                let has_taken = |node: &&Node| node.took[number] & (1 << which) != 0;
                let taken = state.nodes[..self.nodes].iter().filter(has_taken).count();
                let is_unconfirmed = self.broken == Broken::Unconfirmed && which > 0;
                if 2 * taken > self.nodes || is_unconfirmed {
                    let mut next = *state;
                    next.attempts[number].fence = token;
                    then(Event::Learns { attempt: number, fence: token }, next);
                }
            }
        }
    }

    fn takes(&self, node: &Node, attempt: usize, token: u8) -> bool {
        let is_held = node.lock == attempt as u8 + 1 || self.broken == Broken::NotHeld;
        let own_time = if self.broken == Broken::Zero { 0 } else { node.clock };
        let fence = if node.fence == 0 { own_time } else { node.fence };
        let is_below = match self.broken {
            Broken::Unchecked => true,
            Broken::Equal => fence <= token,
            _ => fence < token,
        };
        let is_near = !self.forgets || token <= node.clock + AHEAD;
        is_held && is_below && is_near
    }

    /// What must not be: a fence that another has, or that is not above one that was there before.
    fn fault(&self, state: &State) -> Option<&'static str> {
        let attempts = &state.attempts[..self.attempts];
        let has_fence = |attempt: &&Attempt| attempt.fence != 0;
        for (number, attempt) in attempts.iter().enumerate().filter(|(_, it)| has_fence(it)) {
            if attempt.fence <= attempt.above {
                return Some("a fence is not above one that was there when it was asked for");
            }
            if attempts[..number].iter().any(|other| other.fence == attempt.fence) {
                return Some("two have the same fence");
            }
        }
        None
    }

    /// The same state whichever node is called which.
    fn canonical(&self, mut state: State) -> State {
        state.nodes[..self.nodes].sort_unstable();
        state
    }

    /// Looks at everything that can be reached: how many states there are, or the shortest history
    /// that leads to one that must not be.
    fn explore(&self) -> Result<usize, String> {
        let first = State::default();
        let mut known: HashMap<State, u32> = HashMap::from([(first, 0)]);
        let mut states = vec![(first, 0_u32, None)];
        let mut at = 0;
        while at < states.len() {
            let state = states[at].0;
            let mut wrong = None;
            self.next(&state, |event, next| {
                let next = self.canonical(next);
                if wrong.is_some() || known.contains_key(&next) {
                    return;
                }
                known.insert(next, states.len() as u32);
                states.push((next, at as u32, Some(event)));
                wrong = self.fault(&next);
            });
            if let Some(wrong) = wrong {
                return Err(format!("{wrong}:\n{}", history(&states)));
            }
            at += 1;
        }
        Ok(states.len())
    }

    /// Walks by chance, where there is too much to look at all of it.
    fn sample(&self, walks: u64, steps: usize) -> Result<usize, String> {
        let mut chance = 0x9e37_79b9_7f4a_7c15_u64;
        let mut fences = 0;
        for _ in 0..walks {
            let mut path = vec![(State::default(), 0, None)];
            for _ in 0..steps {
                let mut nexts = Vec::new();
                let at = path.len() - 1;
                self.next(&path[at].0, |event, next| nexts.push((event, next)));
                if nexts.is_empty() {
                    break;
                }
                chance ^= chance << 13;
                chance ^= chance >> 7;
                chance ^= chance << 17;
                let (event, next) = nexts[(chance % nexts.len() as u64) as usize];
                fences += usize::from(matches!(event, Event::Learns { .. }));
                path.push((next, at as u32, Some(event)));
                if let Some(wrong) = self.fault(&next) {
                    return Err(format!("{wrong}:\n{}", history(&path)));
                }
            }
        }
        Ok(fences)
    }
}

/// How the last of the states came about.
fn history(states: &[(State, u32, Option<Event>)]) -> String {
    let (mut events, mut at) = (Vec::new(), states.len() - 1);
    while let (_, before, Some(event)) = states[at] {
        events.push(event);
        at = before as usize;
    }
    events.iter().rev().map(|event| format!("  {event:?}\n")).collect()
}

/// An optimised build looks at millions of states in seconds.
const TOP: u8 = if cfg!(debug_assertions) { 2 } else { 3 };

const THREE: Model =
    Model { nodes: 3, attempts: 2, tries: 2, top: TOP, forgets: false, broken: Broken::Nothing };

const FORGETFUL: Model = Model { tries: 1, forgets: true, ..THREE };

#[test]
fn no_order_of_events_breaks_a_rule_with_two_clients_on_three_nodes() {
    for model in [THREE, Model { attempts: 3, tries: 1, ..THREE }, FORGETFUL] {
        let states = model.explore().unwrap_or_else(|history| panic!("{history}"));
        println!("{} attempts, {} tokens each: {states} states", model.attempts, model.tries);
        assert!(states > 10_000, "too few to mean anything: {states}");
    }
}

#[test]
fn nor_does_chance_with_more_of_both() {
    let more = Model { nodes: 5, attempts: 4, tries: 2, top: 6, ..THREE };
    for model in [more, Model { forgets: true, ..more }] {
        let fences = model.sample(20_000, 120).unwrap_or_else(|history| panic!("{history}"));
        println!("{fences} fences");
        assert!(fences > 1_000, "too few to mean anything: {fences}");
    }
}

#[test]
fn each_rule_that_is_left_out_is_found_out() {
    for (broken, model) in [
        (Broken::Equal, THREE),
        (Broken::Unchecked, THREE),
        (Broken::Unconfirmed, THREE),
        (Broken::Zero, FORGETFUL),
        (Broken::NoQuarantine, FORGETFUL),
    ] {
        let history = Model { broken, ..model }.explore().expect_err("nothing shows it");
        println!("{broken:?}: {history}");
    }
}

/// Who holds the lock is looked at for another reason: a fence of who has lost it would rise above
/// that of who has it now, and refuse the rightful holder's writes.
#[test]
fn that_the_lock_is_held_is_not_what_makes_fences_rise() {
    let broken = Broken::NotHeld;
    Model { broken, ..THREE }.explore().unwrap_or_else(|history| panic!("{history}"));
}
