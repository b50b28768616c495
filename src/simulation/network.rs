//! What carries bytes between the clients' machines and the nodes: late, in order, or not at all.
//!
//! A *path* is a machine and a node, with what delays all bytes between the two: how long they are
//! under way, and until when each direction loses everything. What is lost is sent again, so it
//! comes when the path is whole again: packets are lost, bytes are late. A *line* is a connection
//! on a path. Each direction of a line keeps its order; lines do not wait for each other, so the
//! bytes of one that was closed may come behind those of the next.

mod line;

use std::io::ErrorKind;
use std::task::Context;

pub(super) use line::{Line, Parcel, Way};

use super::chance::{self, Chance};
use crate::link::memory;

/// The delays and losses in one direction of a path.
#[derive(Clone, Debug, Default)]
struct Route {
    /// Bytes are under way so long at least.
    base: u64,
    /// Nothing arrives before.
    lost_until: u64,
    /// Until then bytes are under way for longer, by up to so much.
    slow: (u64, u64),
}

impl Route {
    /// When something that is sent now arrives, if no fault hits it.
    fn arrival(&self, now: u64, latency: u64, chance: &mut Chance) -> u64 {
        let (until, by) = self.slow;
        let slower = if now < until { chance.between(0, by) } else { 0 };
        now + self.base + chance.between(0, latency) + slower
    }
}

/// A path: up and down.
#[derive(Clone, Debug, Default)]
struct Path {
    up: Route,
    down: Route,
}

impl Path {
    /// A way there and a way back, of which either may be the longer one.
    fn new(latency: u64, chance: &mut Chance) -> Self {
        let mut route = || Route { base: chance.between(0, latency), ..Route::default() };
        Self { up: route(), down: route() }
    }

    /// Ends all its faults.
    fn heal(&mut self) {
        for route in [&mut self.up, &mut self.down] {
            (route.lost_until, route.slow) = (0, (0, 0));
        }
    }

    fn route(&mut self, way: Way) -> &mut Route {
        match way {
            Way::Up => &mut self.up,
            Way::Down => &mut self.down,
        }
    }
}

/// All paths, and all lines that there ever were.
pub(super) struct Network {
    latency: u64,
    /// By place and node.
    paths: Vec<Vec<Path>>,
    lines: Vec<Line>,
    /// Lines on which something may happen.
    live: Vec<usize>,
    chance: Chance,
}

impl Network {
    pub(super) fn new(places: usize, nodes: usize, latency: u64, seed: u64) -> Self {
        let mut chance = Chance::new(seed, chance::NETWORK);
        let mut paths = || (0..nodes).map(|_| Path::new(latency, &mut chance)).collect();
        let paths = (0..places).map(|_| paths()).collect();
        Self { latency, paths, lines: Vec::new(), live: Vec::new(), chance }
    }

    pub(super) fn line(&mut self, line: usize) -> &mut Line {
        &mut self.lines[line]
    }

    /// How many lines there ever were.
    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// When a first packet and its answer have gone their ways.
    pub(super) fn round_trip(&mut self, now: u64, place: usize, node: usize) -> u64 {
        let Self { paths, latency, chance, .. } = self;
        let path = &paths[place][node];
        let there = path.up.arrival(now, *latency, chance);
        path.down.arrival(there, *latency, chance)
    }

    /// Until when nothing arrives on one of the two ways; the past, where all does.
    pub(super) fn lost_until(&self, place: usize, node: usize) -> u64 {
        let path = &self.paths[place][node];
        path.up.lost_until.max(path.down.lost_until)
    }

    /// A connection is made. Returns its number, and the client's end of it.
    pub(super) fn open(
        &mut self,
        (machine, place): (usize, usize),
        node: usize,
    ) -> (usize, memory::Reader, memory::Writer) {
        let ((reader, writer), (far_reader, far_writer)) = memory::pair(1 << 18);
        let number = self.lines.len();
        self.lines.push(Line::new((machine, place), node, (far_reader, far_writer)));
        self.live.push(number);
        (number, reader, writer)
    }

    /// What some client has written since it was asked last, and on which line; looks on from where
    /// `at` stands among the lines.
    pub(super) fn written(
        &mut self,
        at: &mut usize,
        cx: &mut Context<'_>,
        staging: &mut [u8],
    ) -> Option<(usize, Parcel)> {
        while let Some(&line) = self.live.get(*at) {
            if let Some(parcel) = self.lines[line].written(cx, staging) {
                return Some((line, parcel));
            }
            if self.lines[line].is_over() {
                self.live.remove(*at);
            } else {
                *at += 1;
            }
        }
        None
    }

    /// Sends something on a line. Returns when it arrives, if no fault hits it.
    pub(super) fn send(&mut self, now: u64, line: usize, way: Way, parcel: Parcel) -> u64 {
        let Self { paths, lines, latency, chance, .. } = self;
        let line = &mut lines[line];
        let arrival = paths[line.place][line.node].route(way).arrival(now, *latency, chance);
        line.lane(way).send(parcel, arrival)
    }

    /// What has arrived by now; an error says until when nothing does.
    pub(super) fn receive(
        &mut self,
        now: u64,
        line: usize,
        way: Way,
    ) -> Result<Option<Parcel>, u64> {
        let line = &mut self.lines[line];
        let lost_until = self.paths[line.place][line.node].route(way).lost_until;
        if lost_until > now { Err(lost_until) } else { Ok(line.lane(way).receive(now)) }
    }

    /// Hands to the client what has arrived. `false`: it has no room for the rest, which arrives a
    /// little later.
    pub(super) fn hand_over(&mut self, now: u64, line: usize, parcel: Parcel) -> bool {
        let line = &mut self.lines[line];
        let Parcel::Bytes(mut bytes) = parcel else {
            line.writer = None;
            return true;
        };
        let Some(writer) = &line.writer else { return true };
        while !bytes.is_empty() {
            match writer.try_write(&bytes) {
                Ok(count) => drop(bytes.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    line.down.put_back(Parcel::Bytes(bytes), now + 1);
                    return false;
                }
                Err(_) => break, // it has closed its end
            }
        }
        true
    }

    /// The client has closed its end. Its machine may take back what is still under way, or not.
    pub(super) fn hang_up(&mut self, line: usize) {
        let line = &mut self.lines[line];
        line.go_silent();
        if self.chance.percent(40) {
            line.up.clear();
        }
    }

    /// Ends all connections between a machine and a node, as a middlebox may. The node may hear of
    /// it later, and first read what was under way.
    pub(super) fn reset(&mut self, machine: usize, node: usize) {
        let lines = self.lines.iter_mut();
        let lines = lines.filter(|line| (line.machine, line.node) == (machine, node));
        lines.for_each(Line::go_silent);
    }

    /// A machine is gone. Returns the lines whose ends went with it.
    pub(super) fn end_machine(&mut self, machine: usize) -> Vec<usize> {
        let lines = self.lines.iter_mut().enumerate();
        let ended = lines.filter(|(_, line)| line.machine == machine).filter_map(|(at, line)| {
            line.reader.take()?;
            line.go_silent();
            Some(at)
        });
        ended.collect()
    }

    /// A node's process is gone, with all that was on its way there. Returns the lines that it had.
    pub(super) fn end_node(&mut self, node: usize) -> Vec<usize> {
        let lines = self.lines.iter_mut().enumerate();
        let ended = lines.filter(|(_, line)| line.node == node).filter_map(|(at, line)| {
            line.session.take()?;
            line.up.clear();
            Some(at)
        });
        ended.collect()
    }

    /// Packets are lost between these, all places or all nodes where none is named.
    pub(super) fn lose(
        &mut self,
        place: Option<usize>,
        node: Option<usize>,
        ways: &[Way],
        until: u64,
    ) {
        for (at, paths) in self.paths.iter_mut().enumerate() {
            for (index, path) in paths.iter_mut().enumerate() {
                let concerned =
                    place.is_none_or(|place| place == at) && node.is_none_or(|node| node == index);
                for way in ways.iter().filter(|_| concerned) {
                    path.route(*way).lost_until = until;
                }
            }
        }
    }

    /// One way is slower, by up to so much.
    pub(super) fn slow(&mut self, place: usize, node: usize, way: Way, (until, by): (u64, u64)) {
        self.paths[place][node].route(way).slow = (until, by);
    }

    /// Ends the faults of all paths.
    pub(super) fn heal(&mut self) {
        self.paths.iter_mut().flatten().for_each(Path::heal);
    }

    /// Whether nothing is under way.
    pub(super) fn is_quiet(&self) -> bool {
        self.lines.iter().all(|line| line.up.is_empty() && line.down.is_empty())
    }
}
