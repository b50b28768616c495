//! The lease against a dumb model: nodes that each keep one promise, in any order of commands.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::super::lease::{Lease, end};
use super::ms;
use crate::clock::Stamp;
use crate::options::Drift;

const SEEDS: u64 = 2_000;
const STEPS: usize = 60;
const DRIFT: Drift = Drift { permille: 10, floor: ms(2) };

/// What one node really does: it keeps a key until a time, by a clock that counts as ours does.
#[derive(Clone, Copy, Default)]
struct Node {
    /// When its key ends, in milliseconds; in the past if it has none.
    end: u64,
}

/// A command on its way: sent, executed when it arrives, and answered when the answer does.
#[derive(Clone, Copy)]
struct Flight {
    node: usize,
    sent: u64,
    ttl: u64,
    /// Sets the key where there is none (acquiring, healing) or only lets it live on.
    sets: bool,
    /// What the node said, once it has executed it.
    said: Option<bool>,
}

struct Model {
    nodes: Vec<Node>,
    flights: Vec<Flight>,
    lease: Lease,
    needed: usize,
    now: u64,
}

impl Model {
    fn new(count: usize) -> Self {
        let needed = count / 2 + 1;
        let nodes = vec![Node::default(); count];
        Self { nodes, flights: Vec::new(), lease: Lease::new(count, needed), needed, now: 1_000 }
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
        let waiting = |flight: &&mut Flight| flight.node == node && flight.said.is_none();
        let Some(flight) = self.flights.iter_mut().find(waiting) else { return };
        let held = now < self.nodes[node].end;
        let granted = held || flight.sets;
        if granted {
            self.nodes[node].end = self.nodes[node].end.max(now + flight.ttl);
        }
        flight.said = Some(granted);
    }

    /// Hands one node's oldest answer to the lease, unless it is lost on its way.
    fn answer(&mut self, node: usize, lost: bool) {
        let Some(at) = self.flights.iter().position(|flight| flight.node == node) else { return };
        let Some(granted) = self.flights[at].said else { return };
        let Flight { sent, ttl, .. } = self.flights.remove(at);
        let sent = Stamp::from_millis(sent);
        match granted {
            _ if lost => {}
            true => self.lease.grant(node, sent, end(sent, ms(ttl), DRIFT)),
            false => self.lease.lose(node, sent),
        }
    }

    /// Until when so many nodes really hold the key that no other client can have a majority.
    fn promised(&self) -> u64 {
        let mut ends: Vec<u64> = self.nodes.iter().map(|node| node.end).collect();
        ends.sort_unstable_by(|a, b| b.cmp(a));
        ends[self.needed - 1]
    }
}

/// Whatever the order of commands, executions, answers and their loss: the lease never ends later
/// than a majority of the nodes really hold the key. (No node forgets here; one that does is what
/// the assumptions exclude, and the next answer tells.)
#[test]
fn a_lease_never_outlasts_what_a_majority_of_the_nodes_holds() {
    let mut claims = 0;
    for seed in 0..SEEDS {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut model = Model::new(rng.random_range(1..=7));
        let count = model.nodes.len();
        for _ in 0..STEPS {
            model.now += rng.random_range(0..50);
            match rng.random_range(0..10) {
                0 => model.send(&mut rng),
                1..=5 => model.execute(rng.random_range(0..count)),
                _ => model.answer(rng.random_range(0..count), rng.random_bool(0.1)),
            }
            let now = Stamp::from_millis(model.now);
            if model.lease.is_valid(now) {
                claims += 1;
                let end = model.now + model.lease.remaining(now).as_millis() as u64;
                let promised = model.promised();
                assert!(end <= promised, "seed {seed}: until {end}, promised until {promised}");
            }
        }
    }
    assert!(claims > 10_000, "the lease was held in {claims} cases only");
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
                model.answer(node, false);
            }
            wanted = wanted.max(sent + ttl - DRIFT.of(ms(ttl)).as_millis() as u64);
        }
        let now = Stamp::from_millis(model.now);
        let end = model.now + model.lease.remaining(now).as_millis() as u64;
        assert!(end.abs_diff(wanted.max(model.now)) <= 1, "seed {seed}: {end}, not {wanted}");
    }
}
