//! What is to happen, and when.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::task::Waker;

use super::chance::{self, Chance};
use super::network::Way;

/// What is to happen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Event {
    /// Something may have arrived on a line.
    Arrival { line: usize, way: Way },
    /// The next fault happens.
    Fault,
    /// A node may be up again.
    Node(usize),
    /// A machine may go on.
    Machine(usize),
    /// A client starts in this place.
    Start(usize),
    /// Those that wait are looked at, and their queues.
    Look,
}

/// An event's place: its time, its turn among those of the same time, and the order of entry.
type Turn = (u64, u64, u64);

/// All events that are still to come.
pub(super) struct Agenda {
    events: BinaryHeap<Reverse<(Turn, Event)>>,
    entered: u64,
    chance: Chance,
    /// Wakes the task that waits for the next event.
    waker: Option<Waker>,
}

impl Agenda {
    pub(super) fn new(seed: u64) -> Self {
        let chance = Chance::new(seed, chance::AGENDA);
        Self { events: BinaryHeap::new(), entered: 0, chance, waker: None }
    }

    /// Enters what is to happen. What happens at the same time does so in any order.
    pub(super) fn enter(&mut self, at: u64, event: Event) {
        self.entered += 1;
        let any = self.chance.next() % 16;
        self.events.push(Reverse(((at, any, self.entered), event)));
    }

    /// Takes out what happens next, if its time has come.
    pub(super) fn take(&mut self, now: u64) -> Option<Event> {
        let is_due = self.next().is_some_and(|at| at <= now);
        is_due.then(|| self.events.pop().map(|Reverse((_, event))| event)).flatten()
    }

    /// When something happens next.
    pub(super) fn next(&self) -> Option<u64> {
        self.events.peek().map(|Reverse(((at, ..), _))| *at)
    }

    /// Sets the task to wake when there is something new.
    pub(super) fn wait(&mut self, waker: Waker) {
        self.waker = Some(waker);
    }

    /// Has the waiting task look again.
    pub(super) fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}
