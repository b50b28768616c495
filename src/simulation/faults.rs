//! The faults of nodes, machines and the network, and how they end.

use super::agenda::Event;
use super::network::{Parcel, Way};
use super::node::State;
use super::plan::Regime;
use super::world::World;

/// How long a machine that has crashed is missed.
const ABSENCE: u64 = 200;

impl World {
    /// Causes the next fault.
    pub(super) fn cause_fault(&mut self) {
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
            11 => {
                self.tell(format_args!("m{machine} n{node} reset"));
                self.network.reset(machine, node);
            }
            12 | 13 => self.freeze(machine, until),
            14 => self.crash(machine),
            _ => self.set_clocks(machine, node),
        }
        if self.chance.percent(self.plan.actors.runtimes_ended) {
            self.end_runtime(machine);
        }
        let next = now + self.chance.between(1, self.plan.fault_pause);
        self.agenda.enter(next, Event::Fault);
    }

    /// Now and then stops a machine whose client has just sent something: the worst moment.
    pub(super) fn cause_fault_after_send(&mut self, line: usize) {
        if self.is_over || self.faults == 0 || !self.chance.percent(1) {
            return;
        }
        self.faults += 1;
        let (machine, longest) = (self.network.line(line).machine, self.plan.fault_longest);
        let until = self.now() + self.chance.lasting(longest);
        match self.chance.percent(10) {
            true => self.crash(machine),
            false => self.freeze(machine, until),
        }
    }

    fn stop_node(&mut self, node: usize, state: State, until: u64) {
        let until = match self.plan.regime {
            Regime::AmnesiaFenced => until.max(self.now() + self.plan.fences_ahead_ms_max()),
            _ => until,
        };
        if !self.nodes[node].stop(state, until) {
            return;
        }
        self.tell(format_args!("n{node} {state:?} until {until}"));
        self.agenda.enter(until, Event::Node(node));
        if state == State::Still {
            return;
        }
        for line in self.network.end_node(node) {
            if state == State::Ended {
                self.send(line, Way::Down, Parcel::End);
            }
        }
        let forgets = self.plan.longest_ttl.is_some() || self.plan.regime.forgets();
        let keeps_data = !forgets || self.chance.percent(30);
        self.nodes[node].restart(keeps_data);
        self.tell(format_args!("n{node} keeps its keys: {keeps_data}"));
    }

    /// A node is up again.
    pub(super) fn revive(&mut self, node: usize) {
        let now = self.now();
        if self.nodes[node].revive(now, self.is_over) {
            self.tell(format_args!("n{node} up"));
            self.catch_up(node);
        }
    }

    /// Packets are lost between these, all nodes or all machines where none is named; in one
    /// direction or in both.
    fn lose(&mut self, machine: Option<usize>, node: Option<usize>, until: u64) {
        let ways = [&[Way::Up][..], &[Way::Down], &[Way::Up, Way::Down]];
        let ways = self.chance.pick(&ways);
        let place = machine.map(|machine| self.machines[machine].place);
        self.tell(format_args!("lost until {until}: {place:?} {node:?} {ways:?}"));
        self.network.lose(place, node, ways, until);
    }

    fn slow(&mut self, machine: usize, node: usize, until: u64) {
        let way = self.chance.pick(&[Way::Up, Way::Down]);
        let by = self.chance.pick(&[5, 40, 200, 800]);
        let place = self.machines[machine].place;
        self.tell(format_args!("slow by {by} until {until}: {place} n{node} {way:?}"));
        self.network.slow(place, node, way, (until, by));
    }

    fn freeze(&mut self, machine: usize, until: u64) {
        let now = self.now();
        if self.machines[machine].freeze(now) {
            self.tell(format_args!("m{machine} still until {until}"));
            self.agenda.enter(until, Event::Machine(machine));
        }
    }

    pub(super) fn thaw(&mut self, machine: usize) {
        let now = self.now();
        if self.machines[machine].thaw(now) {
            self.tell(format_args!("m{machine} goes on"));
        }
    }

    /// A machine's process ends without a word, or its power does: then no node is told.
    fn crash(&mut self, machine: usize) {
        if !self.machines[machine].crash() {
            return;
        }
        let now = self.now();
        let place = self.machines[machine].place;
        self.oracle.leave(&format!("m{machine}"));
        let is_told = self.chance.percent(60);
        self.tell(format_args!("m{machine} crashes, told: {is_told}"));
        self.oracle.end_machine(self.nanos(), machine);
        for line in self.network.end_machine(machine) {
            if is_told {
                self.send(line, Way::Up, Parcel::End);
            }
        }
        self.agenda.enter(now + ABSENCE, Event::Start(place));
    }

    fn set_clocks(&mut self, machine: usize, node: usize) {
        let now = self.now();
        match (self.chance.below(4), self.plan.regime) {
            (_, Regime::AmnesiaFenced) => {
                let back = self.chance.between(0, 2_000) as i64;
                self.machines[machine].step_wall(-back);
                self.tell(format_args!("m{machine} wall clock set back by {back}"));
            }
            (_, Regime::BeyondFenced) => {
                let back = self.chance.between(1_000, 5_000) as i64;
                let majority = self.nodes.len() / 2 + 1;
                self.tell(format_args!("{majority} clocks set back by {back}"));
                self.nodes.iter_mut().take(majority).for_each(|node| node.step(now, -back));
            }
            (0, _) => {
                let ahead = self.chance.lasting(2_000);
                self.oracle.leap(self.nanos(), machine);
                self.machines[machine].suspend(ahead);
                self.tell(format_args!("m{machine} clocks leap by {ahead}"));
            }
            (1, _) => {
                let by = self.chance.between(0, 4_000) as i64 - 2_000;
                self.oracle.leap(self.nanos(), machine);
                self.machines[machine].step_wall(by);
                self.tell(format_args!("m{machine} wall clock set by {by}"));
            }
            (_, regime) if regime.steps() => {
                let ahead = self.chance.between(100, 3_000) as i64;
                let majority = self.nodes.len() / 2 + 1;
                self.tell(format_args!("{majority} clocks set ahead by {ahead}"));
                self.nodes.iter_mut().take(majority).for_each(|node| node.step(now, ahead));
            }
            (_, Regime::OneStepped) => {
                let longest = self.plan.ttls.iter().max().copied().unwrap_or_default();
                let ahead = longest + self.chance.between(1, 1_000);
                self.tell(format_args!("n0 clock set ahead by {ahead}"));
                self.nodes[0].step(now, ahead as i64);
            }
            _ => {
                let most = self.plan.set_back_ms_max().saturating_sub(self.waiters.set_back);
                let back = self.chance.lasting(2_000).min(most);
                self.waiters.set_back += back;
                self.tell(format_args!("n{node} clock set back by {back}"));
                self.nodes[node].step(now, -(back as i64));
            }
        }
    }

    /// All faults end.
    pub(super) fn heal(&mut self) {
        self.tell(format_args!("all faults end"));
        self.is_over = true;
        self.waiters.healed = Some(self.now());
        self.network.heal();
        for node in 0..self.nodes.len() {
            self.revive(node);
        }
        for machine in 0..self.machines.len() {
            self.thaw(machine);
        }
        let now = self.now();
        for line in 0..self.network.len() {
            self.agenda.enter(now, Event::Arrival { line, way: Way::Up });
            self.agenda.enter(now, Event::Arrival { line, way: Way::Down });
        }
        self.agenda.wake();
    }
}
