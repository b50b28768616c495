//! A machine's way into the network: how its connections are made, if they are.

use std::io;
use std::sync::{Arc, Weak};

use super::node::State;
use super::world::{Hub, World};
use crate::link::{Dial, Dialing, Reader, Writer, memory};
use crate::options::{Address, Endpoint};

/// A machine's way into the network.
pub(super) struct Port {
    hub: Weak<Hub>,
    machine: usize,
}

impl Port {
    pub(super) fn of(hub: &Arc<Hub>, machine: usize) -> Self {
        Self { hub: Arc::downgrade(hub), machine }
    }
}

/// What an attempt to connect finds.
enum Found {
    Nothing { until: u64 },
    Refusal,
    Stream(memory::Reader, memory::Writer),
}

impl Dial for Port {
    fn dial(&self, address: &Address) -> Dialing {
        let Endpoint::Tcp { host, .. } = &address.endpoint else {
            unreachable!("nodes have names")
        };
        let node: usize = host[1..].parse().unwrap();
        let (hub, machine) = (self.hub.clone(), self.machine);
        Box::pin(async move {
            let Some(hub) = hub.upgrade() else { return Err(io::ErrorKind::NotConnected.into()) };
            let mut at = hub.with(|world| world.first_round_trip(machine, node));
            loop {
                hub.sleep_until(at).await;
                match hub.with(|world| world.try_to_connect(machine, node)) {
                    Found::Nothing { until } => at = until,
                    Found::Refusal => return Err(io::ErrorKind::ConnectionRefused.into()),
                    Found::Stream(reader, writer) => {
                        return Ok((Reader::Memory(reader), Writer::Memory(writer)));
                    }
                }
            }
        })
    }
}

impl World {
    /// When a first packet and its answer have gone their ways.
    fn first_round_trip(&mut self, machine: usize, node: usize) -> u64 {
        self.network.round_trip(self.now(), self.machines[machine].place, node)
    }

    fn try_to_connect(&mut self, machine: usize, node: usize) -> Found {
        let place = self.machines[machine].place;
        let lost_until = self.network.lost_until(place, node);
        if lost_until > self.now() {
            return Found::Nothing { until: lost_until };
        }
        match self.nodes[node].state() {
            State::Off => Found::Nothing { until: self.nodes[node].until() + 1 },
            State::Ended => Found::Refusal,
            State::Up | State::Still => {
                let (line, reader, writer) = self.network.open((machine, place), node);
                self.network.line(line).session = Some(self.nodes[node].connect(line));
                self.agenda.wake();
                self.tell(format_args!("l{line}: m{machine} connects to n{node}"));
                Found::Stream(reader, writer)
            }
        }
    }
}
