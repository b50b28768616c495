//! Shuts a machine's locker down in the middle of its work, and builds another.

use std::sync::Arc;

use super::chance::Chance;
use super::counts::Action;
use super::handover;
use super::locker::{build, durability, owner};
use super::task::{cut, ms};
use super::violation::Kind;
use super::worker::Worker;
use super::world::Hub;
use crate::{LeftLock, Locker, Shutdown};

/// From this deadline on a shutdown is complete if there are no faults.
const AMPLE: u64 = 1_000;

/// A task that shuts down its machine's locker now and then.
pub(super) struct Restarter {
    pub(super) hub: Arc<Hub>,
    pub(super) machine: usize,
    pub(super) chance: Chance,
}

impl Restarter {
    pub(super) async fn run(mut self) {
        let longest = self.hub.with(|world| world.plan.actors.shutdown_pause);
        loop {
            let pause = self.chance.between(longest / 4, longest);
            self.hub.sleep(pause.max(1)).await;
            if self.hub.with(|world| world.is_over) {
                return;
            }
            self.replace().await;
        }
    }

    /// Shuts the machine's locker down, and builds another one.
    async fn replace(&mut self) {
        let machine = self.machine;
        let Some((locker, number)) = self.hub.with(|world| world.machines[machine].locker()) else {
            return;
        };
        let leaves = self.chance.percent(50);
        let deadline = self.chance.pick(&[20, 200, AMPLE, 2_500]);
        let found = self.shut_down(&locker, leaves, deadline).await;
        let owner = owner(machine, number);
        let complete = found.as_ref().is_some_and(Shutdown::is_complete);
        self.hub.with(|world| {
            world.tell(format_args!("m{machine} is shut down, complete: {complete}"));
            let is_complete =
                if complete { Action::ShutdownComplete } else { Action::ShutdownIncomplete };
            world.count(if found.is_none() { Action::ShutdownDropped } else { is_complete });
            if complete {
                let now = world.now();
                let held = |(node, held): (usize, Vec<(String, String)>)| {
                    held.into_iter().map(move |(key, value)| (node, key, value))
                };
                let nodes = world.nodes.iter().map(|node| node.held(now)).enumerate();
                let stands = nodes.flat_map(held).collect();
                let is_acquiring = world.machines[machine].is_acquiring(number);
                world.oracle.complete(&owner, stands, is_acquiring);
            } else if found.is_some() && world.must_answer() && deadline >= AMPLE {
                let what = format!("{owner} was not shut down completely, without a fault");
                world.oracle.violate(Kind::Failed, what);
            }
        });
        // A process may end behind a shutdown, also behind one that is not complete.
        let keeps = !complete && self.chance.percent(50);
        let clock = self.hub.with(|world| world.machines[machine].clock.clone());
        let next = build(&self.hub, machine, &clock, number + 1, durability(&self.hub));
        let old = self.hub.with(|world| {
            // What a future still has then, the dropped locker has half a second to let go of.
            let may_leave = !complete || world.machines[machine].is_acquiring(number);
            if may_leave && !keeps {
                world.oracle.leave(&owner);
            }
            let now = world.now();
            world.machines[machine].renew(next, now, keeps)
        });
        drop(old);
    }

    /// Shuts a locker down, and hands on what it leaves. `None`: not to the end.
    async fn shut_down(
        &mut self,
        locker: &Locker,
        leaves: bool,
        deadline: u64,
    ) -> Option<Shutdown> {
        let machine = self.machine;
        let share = self.hub.with(|world| world.plan.actors.dropped);
        let polls = self.chance.percent(share).then(|| self.chance.between(1, 4));
        // What is in hand at the first poll is what it finds; no other task runs before that.
        self.hub.with(|world| {
            world.tell(format_args!("m{machine} shuts down, leaving: {leaves}, {deadline} ms"));
            world.count(if leaves { Action::ShutdownLeaving } else { Action::Shutdown });
            world.machines[machine].close();
            for value in world.oracle.live(machine).iter().filter(|_| leaves) {
                world.oracle.leave_lock(value);
            }
        });
        let cuts = (polls, None);
        let found = match leaves {
            true => cut(&self.hub, cuts, locker.shutdown_leaving(ms(deadline))).await,
            false => cut(&self.hub, cuts, locker.shutdown(ms(deadline))).await,
        };
        for LeftLock { key, token, .. } in found.iter().flatten().flat_map(|found| &found.left) {
            let (hub, chance) = (self.hub.clone(), Chance::new(self.chance.next(), 0));
            let ttl = self.hub.with(|world| world.plan.ttls[0]);
            self.hub.with(|world| world.count(Action::HandedByShutdown));
            let number = machine as u64;
            let mut sender = Worker::new(&hub, (machine, number), false, chance);
            handover::send(&mut sender, (&String::from_utf8_lossy(key), token, ttl));
        }
        found?.ok()
    }
}
