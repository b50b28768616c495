//! What befalls nodes, machines and the network, and how it ends.

use super::network::Way;
use super::node::{Parcel, State};
use super::plan::Regime;
use super::world::{Event, World};

/// How long a machine that has crashed is missed.
const ABSENCE: u64 = 200;

impl World {
    /// The next fault.
    pub(super) fn strike(&mut self) {
        if self.is_over {
            return;
        }
        self.faults += 1;
        let (now, longest) = (self.now(), self.plan.fault_longest);
        let until = now + self.chance.lasting(longest);
        let node = self.chance.below(self.nodes.len());
        let machine = self.chance.below(self.machines.len());
        match self.chance.below(16) {
            0 | 1 => self.stop_node(node, State::Still, until),
            2 => self.stop_node(node, State::Ended, until),
            3 => self.stop_node(node, State::Off, until),
            4 | 5 => self.lose(None, Some(node), until),
            6 | 7 => self.lose(Some(machine), Some(node), until),
            8 => self.lose(Some(machine), None, until),
            9 | 10 => self.slow(machine, node, until),
            11 => self.reset(machine, node),
            12 | 13 => self.freeze(machine, until),
            14 => self.crash(machine),
            _ => self.set_clocks(machine, node),
        }
        let next = now + self.chance.between(1, self.plan.fault_pause);
        self.plan_at(next, Event::Fault);
    }

    /// Somebody has sent something: the worst moment for its machine to stop.
    pub(super) fn strike_behind(&mut self, line: usize) {
        if self.is_over || self.faults == 0 || !self.chance.percent(1) {
            return;
        }
        self.faults += 1;
        let (machine, longest) = (self.lines[line].machine, self.plan.fault_longest);
        let until = self.now() + self.chance.lasting(longest);
        match self.chance.percent(10) {
            true => self.crash(machine),
            false => self.freeze(machine, until),
        }
    }

    fn stop_node(&mut self, node: usize, state: State, until: u64) {
        if self.nodes[node].state != State::Up {
            return;
        }
        self.tell(format_args!("n{node} {state:?} until {until}"));
        (self.nodes[node].state, self.nodes[node].until) = (state, until);
        self.plan_at(until, Event::Node(node));
        if state == State::Still {
            return;
        }
        for line in 0..self.lines.len() {
            if self.lines[line].node == node && self.lines[line].session.take().is_some() {
                self.lines[line].up.clear();
                if state == State::Ended {
                    self.send(line, Way::Down, Parcel::End);
                }
            }
        }
        let forgets = self.plan.longest_ttl.is_some() || self.plan.regime == Regime::Amnesia;
        let keeps_data = !forgets || self.chance.percent(30);
        self.nodes[node].restart(keeps_data);
        self.tell(format_args!("n{node} keeps its keys: {keeps_data}"));
    }

    /// A node is up again.
    pub(super) fn revive(&mut self, node: usize) {
        let now = self.now();
        if self.nodes[node].state == State::Up || self.nodes[node].until > now {
            return;
        }
        self.tell(format_args!("n{node} up"));
        self.nodes[node].state = State::Up;
        self.catch_up(node);
    }

    /// Packets are lost between these, all nodes or all machines where none is named; in one
    /// direction or in both.
    fn lose(&mut self, machine: Option<usize>, node: Option<usize>, until: u64) {
        let ways = [&[Way::Up][..], &[Way::Down], &[Way::Up, Way::Down]];
        let ways = self.chance.pick(&ways);
        let slot = machine.map(|machine| self.machines[machine].slot);
        self.tell(format_args!("lost until {until}: {slot:?} {node:?} {ways:?}"));
        for (place, paths) in self.paths.iter_mut().enumerate() {
            for (index, path) in paths.iter_mut().enumerate() {
                let concerned =
                    slot.is_none_or(|slot| slot == place) && node.is_none_or(|node| node == index);
                for way in ways.iter().filter(|_| concerned) {
                    path.route(*way).lost_until = until;
                }
            }
        }
    }

    fn slow(&mut self, machine: usize, node: usize, until: u64) {
        let way = self.chance.pick(&[Way::Up, Way::Down]);
        let by = self.chance.pick(&[5, 40, 200, 800]);
        let slot = self.machines[machine].slot;
        self.tell(format_args!("slow by {by} until {until}: {slot} n{node} {way:?}"));
        self.paths[slot][node].route(way).slow = (until, by);
    }

    /// Somebody between the two ends all their connections.
    fn reset(&mut self, machine: usize, node: usize) {
        self.tell(format_args!("m{machine} n{node} reset"));
        for line in 0..self.lines.len() {
            let of = &mut self.lines[line];
            if (of.machine, of.node) != (machine, node) {
                continue;
            }
            // The node may hear of it later, and read before what was under way.
            of.writer = None;
            of.down.clear();
        }
    }

    fn freeze(&mut self, machine: usize, until: u64) {
        let now = self.now();
        let frozen = &mut self.machines[machine];
        if frozen.is_gone || frozen.still_since.is_some() {
            return;
        }
        frozen.still_since = Some(now);
        frozen.driven.stand_still(true);
        self.tell(format_args!("m{machine} still until {until}"));
        self.plan_at(until, Event::Machine(machine));
    }

    pub(super) fn thaw(&mut self, machine: usize) {
        let now = self.now();
        let frozen = &mut self.machines[machine];
        let Some(since) = frozen.still_since.filter(|_| !frozen.is_gone) else { return };
        frozen.still += now - since;
        frozen.still_since = None;
        frozen.driven.stand_still(false);
        self.tell(format_args!("m{machine} goes on"));
    }

    /// A machine's process ends without a word, or its power does: then nobody is told.
    fn crash(&mut self, machine: usize) {
        let (now, gone) = (self.now(), &mut self.machines[machine]);
        if gone.is_gone {
            return;
        }
        gone.is_gone = true;
        gone.driven.stand_still(true);
        let (slot, owner) = (gone.slot, gone.owner.clone());
        let is_told = self.chance.percent(60);
        self.tell(format_args!("m{machine} crashes, told: {is_told}"));
        self.oracle.bury(self.nanos(), machine);
        self.oracle.leave(&owner);
        for line in 0..self.lines.len() {
            let of = &mut self.lines[line];
            if of.machine == machine && of.reader.take().is_some() {
                of.writer = None;
                of.down.clear();
                if is_told {
                    self.send(line, Way::Up, Parcel::End);
                }
            }
        }
        self.plan_at(now + ABSENCE, Event::Start(slot));
    }

    fn set_clocks(&mut self, machine: usize, node: usize) {
        match (self.chance.below(4), self.plan.regime) {
            (0, _) => {
                let ahead = self.chance.lasting(2_000);
                self.oracle.leap(self.nanos(), machine);
                self.machines[machine].driven.suspend(std::time::Duration::from_millis(ahead));
                self.tell(format_args!("m{machine} clocks leap by {ahead}"));
            }
            (1, _) => {
                let by = self.chance.between(0, 4_000) as i64 - 2_000;
                self.oracle.leap(self.nanos(), machine);
                self.machines[machine].driven.step_wall(by * 1_000_000);
                self.tell(format_args!("m{machine} wall clock set by {by}"));
            }
            (_, Regime::Stepped) => {
                let ahead = self.chance.between(100, 3_000) as i64;
                let majority = self.nodes.len() / 2 + 1;
                self.tell(format_args!("{majority} clocks set ahead by {ahead}"));
                self.nodes.iter_mut().take(majority).for_each(|node| node.step(ahead));
            }
            (_, Regime::OneStepped) => {
                let longest = self.plan.ttls.iter().max().copied().unwrap_or_default();
                let ahead = longest + self.chance.between(1, 1_000);
                self.tell(format_args!("n0 clock set ahead by {ahead}"));
                self.nodes[0].step(ahead as i64);
            }
            _ => {
                let back = self.chance.lasting(2_000) as i64;
                self.tell(format_args!("n{node} clock set back by {back}"));
                self.nodes[node].step(-back);
            }
        }
    }

    /// All faults end.
    pub(super) fn heal(&mut self) {
        self.tell(format_args!("all faults end"));
        self.is_over = true;
        for path in self.paths.iter_mut().flatten() {
            path.heal();
        }
        for node in 0..self.nodes.len() {
            self.nodes[node].until = 0;
            self.revive(node);
        }
        for machine in 0..self.machines.len() {
            self.thaw(machine);
        }
        let now = self.now();
        for line in 0..self.lines.len() {
            self.plan_at(now, Event::Arrival { line, up: true });
            self.plan_at(now, Event::Arrival { line, up: false });
        }
        self.ring();
    }
}
