//! The validity against a dumb model: nodes that each keep one promise, in any order of commands.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::super::validity::{Validity, end};
use crate::clock::Stamp;
use crate::options::Drift;

const SEEDS: u64 = 2_000;
const STEPS: usize = 60;
const DRIFT: Drift = Drift { permille: 10, floor: Duration::from_millis(2) };

/// What one node really does: it keeps a key until a time, by a clock that counts as ours does, and
/// forgets it now and then.
#[derive(Clone, Default)]
struct Node {
    /// When its key ends, in milliseconds; in the past if it has none.
    end: u64,
    /// What it has promised, when it was executed and until when, but for what we have been told
    /// that it has forgotten.
    promises: Vec<(u64, u64)>,
}

/// A command on its way: sent, executed when it arrives, and answered when the answer does.
#[derive(Clone, Copy)]
struct Flight {
    node: usize,
    sent: u64,
    ttl: u64,
    /// Sets the key where there is none (acquiring, healing) or only lets it live on.
    sets: bool,
    /// What the node said and when, once it has executed it. No two are executed at one time.
    said: Option<(bool, u64)>,
}

struct Model {
    nodes: Vec<Node>,
    flights: Vec<Flight>,
    validity: Validity,
    needed: usize,
    now: u64,
    steps: u64,
}

impl Model {
    fn new(count: usize) -> Self {
        let needed = count / 2 + 1;
        let nodes = vec![Node::default(); count];
        let (flights, validity) = (Vec::new(), Validity::new(count, needed));
        Self { nodes, flights, validity, needed, now: 1_000, steps: 0 }
    }

    /// Sends one command to every node.
    fn send(&mut self, rng: &mut StdRng) {
        let (ttl, sets) = (rng.random_range(100..2_000), rng.random_bool(0.4));
        let sent = self.now;
        let flight = |node| Flight { node, sent, ttl, sets, said: None };
        self.flights.extend((0..self.nodes.len()).map(flight));
    }

    /// Lets one node execute the oldest command that waits for it: connections keep the order.
    fn execute(&mut self, node: usize) {
        let now = self.now;
        self.steps += 1;
        let waiting = |flight: &&mut Flight| flight.node == node && flight.said.is_none();
        let Some(flight) = self.flights.iter_mut().find(waiting) else { return };
        let held = now < self.nodes[node].end;
        let granted = held || flight.sets;
        if granted {
            let end = self.nodes[node].end.max(now + flight.ttl);
            self.nodes[node].end = end;
            self.nodes[node].promises.push((self.steps, end));
        }
        flight.said = Some((granted, self.steps));
    }

    /// Hands one of a node's answers to the lease, unless it is lost on its way. They are entered
    /// in any order: two operations are looked at by two tasks.
    fn answer(&mut self, node: usize, lost: bool, rng: &mut StdRng) {
        let answered = |flight: &Flight| flight.node == node && flight.said.is_some();
        let answers = (0..self.flights.len()).filter(|at| answered(&self.flights[*at]));
        let answers: Vec<_> = answers.collect();
        if answers.is_empty() {
            return;
        }
        let at = answers[rng.random_range(0..answers.len())];
        let Flight { sent, ttl, said, .. } = self.flights.remove(at);
        let (Some((granted, executed)), sent) = (said, Stamp::from_millis(sent)) else { return };
        if lost {
            return;
        }
        if granted {
            self.validity.grant([node], sent, end(sent, ttl * 1_000_000, DRIFT));
        } else {
            self.validity.lose(node, sent);
            self.nodes[node].promises.retain(|(before, _)| *before > executed);
        }
    }

    /// Until when so many nodes hold the key that no other client can have a majority, as far as we
    /// have been told.
    fn promised(&self) -> u64 {
        let end = |node: &Node| node.promises.iter().map(|(_, end)| *end).max().unwrap_or(0);
        let mut ends: Vec<u64> = self.nodes.iter().map(end).collect();
        ends.sort_unstable_by(|a, b| b.cmp(a));
        ends[self.needed - 1]
    }
}

/// Whatever the order of commands, executions, answers and their loss: the lease never ends later
/// than a majority of the nodes hold the key, as far as they have told. (A node that forgets and is
/// not asked is what the assumptions exclude; its next answer tells.)
#[test]
fn a_lease_never_outlasts_what_a_majority_of_the_nodes_holds() {
    let mut claims = 0;
    for seed in 0..SEEDS {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut model = Model::new(rng.random_range(1..=7));
        let count = model.nodes.len();
        for _ in 0..STEPS {
            model.now += rng.random_range(0..50);
            let node = rng.random_range(0..count);
            match rng.random_range(0..20) {
                0..=1 => model.send(&mut rng),
                2 => model.nodes[node].end = 0,
                3..=10 => model.execute(node),
                _ => model.answer(node, rng.random_bool(0.1), &mut rng),
            }
            let now = Stamp::from_millis(model.now);
            if model.validity.is_valid(now) {
                claims += 1;
                let end = model.now + model.validity.remaining(now).as_millis() as u64;
                let promised = model.promised();
                assert!(end <= promised, "seed {seed}: until {end}, promised until {promised}");
            }
        }
    }
    assert!(claims > 10_000, "the validity was held in {claims} cases only");
}

/// When every answer arrives, the lease is as long as it can be: it ends when the last command but
/// for the margin does, counted from its sending.
#[test]
fn a_lease_is_as_long_as_the_answers_allow() {
    for seed in 0..SEEDS {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut model = Model::new(rng.random_range(1..=7));
        let count = model.nodes.len();
        let mut wanted = 0;
        for _ in 0..5 {
            let (sent, ttl) = (model.now, rng.random_range(100..2_000));
            let flight = |node| Flight { node, sent, ttl, sets: true, said: None };
            model.flights.extend((0..count).map(flight));
            model.now += rng.random_range(0..50);
            for node in 0..count {
                model.execute(node);
                model.answer(node, false, &mut rng);
            }
            wanted =
                wanted.max(sent + ttl - DRIFT.of(Duration::from_millis(ttl)).as_millis() as u64);
        }
        let now = Stamp::from_millis(model.now);
        let end = model.now + model.validity.remaining(now).as_millis() as u64;
        assert!(end.abs_diff(wanted.max(model.now)) <= 1, "seed {seed}: {end}, not {wanted}");
    }
}
