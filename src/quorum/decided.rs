//! Wakes the callers whose operations a pass of the driver has decided.
//!
//! On tokio's multi-threaded scheduler, a worker that wakes a second task notifies another worker
//! at once. That one may get the processor before the third task is woken: it runs the one or two
//! that it finds, falls asleep, and is notified again, for each few callers of a pass. So several
//! callers are woken by a task of their own ([`Batch`]). It stands in a queue from which every
//! worker may take, other workers are notified once, and the worker that runs it wakes all callers
//! while no other sleeps. [`hot_path`](crate::manual::hot_path) says what that gives, and what else
//! was tried.
//!
//! A task that is woken goes to a place of the worker's own, from which no other worker takes it,
//! until a second one is woken (see `handover`). That is why an empty task follows: without it, a
//! task that computes on this worker would hold up the whole batch.
//!
//! Elsewhere nothing is gained: a single thread runs its tasks in turn, and the driver that has a
//! thread of its own wakes tasks of other runtimes, which can begin before its pass has ended.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::shared::Shared;
use super::slots::Slots;
use crate::link::Ticket;

/// So many callers are woken by a task: for fewer, starting it costs more than it saves.
const BATCH_MIN: usize = 4;

/// The operations that a pass has decided, and whose callers are not woken yet.
pub(super) struct Decided {
    tickets: Vec<Ticket>,
    /// The runtime on whose workers the driver runs, if they are several.
    workers: Option<Handle>,
}

impl Decided {
    /// For a driver that runs there.
    pub(super) fn new(home: Option<Handle>) -> Self {
        let several = |home: &Handle| home.metrics().num_workers() > 1;
        Self { tickets: Vec::new(), workers: home.filter(several) }
    }

    /// An operation is decided: its caller is woken now, or with the others of this pass.
    #[inline]
    pub(super) fn add(&mut self, ticket: Ticket, slots: &Slots) {
        match self.workers {
            Some(_) => self.tickets.push(ticket),
            None => slots.wake(ticket),
        }
    }

    /// Wakes the callers of this pass.
    #[inline]
    pub(super) fn wake(&mut self, shared: &Arc<Shared>) {
        match &self.workers {
            Some(workers) if self.tickets.len() >= BATCH_MIN => {
                let (shared, tickets) = (shared.clone(), self.tickets.drain(..).collect());
                let batch = Batch { shared, tickets };
                drop(workers.spawn(async move { drop(batch) }));
                drop(workers.spawn(async {}));
            }
            _ => self.wake_from_here(&shared.slots),
        }
    }

    /// As [`wake`](Self::wake), by no task.
    pub(super) fn wake_from_here(&mut self, slots: &Slots) {
        self.tickets.drain(..).for_each(|ticket| slots.wake(ticket));
    }
}

/// Callers that are woken together: when this is dropped, also by a runtime that ends and does not
/// run the task any more.
struct Batch {
    shared: Arc<Shared>,
    tickets: Box<[Ticket]>,
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.tickets.iter().for_each(|ticket| self.shared.slots.wake(*ticket));
    }
}

#[cfg(test)]
#[cfg(not(quorlock_models))]
mod tests {
    use std::future::{pending, poll_fn};
    use std::sync::mpsc;
    use std::time::Duration;

    use tokio::runtime::Builder;

    use super::super::node_set::{NodeSet, Parts};
    use super::super::tally::{Patience, Rule, Verdict};
    use super::*;
    use crate::clock::Clock;
    use crate::entropy::Entropy;
    use crate::link::{Dial, Dialing, HandshakeConfig};
    use crate::node_vote::NodeVote;
    use crate::observe::Observers;
    use crate::options::{Address, LinkOptions};

    const RULE: Rule = Rule { voters: 1, needed: 1, patience: Patience::Early };
    const LONG: Duration = Duration::from_secs(5);

    struct Unreachable;

    impl Dial for Unreachable {
        fn dial(&self, _: &Address) -> Dialing {
            Box::pin(pending())
        }
    }

    fn shared() -> Arc<Shared> {
        let set = NodeSet::new(Parts {
            addresses: vec![Address::parse("redis://node").unwrap()],
            counted: false,
            options: LinkOptions::default(),
            clock: Clock::default(),
            entropy: Arc::new(Entropy::from_seed(1)),
            dial: Arc::new(Unreachable),
            handshake: HandshakeConfig::default(),
            observers: Observers::default(),
        });
        set.shared.clone()
    }

    /// Starts so many callers on a runtime, waits until each of them waits for its verdict, and
    /// decides them; each sends a word when it has it.
    fn callers(
        on: &Handle,
        shared: &Arc<Shared>,
        decided: &mut Decided,
        count: usize,
    ) -> mpsc::Receiver<()> {
        let ((waits, waiting), (wakes, woken)) = (mpsc::channel(), mpsc::channel());
        for _ in 0..count {
            let ticket = shared.slots.claim(RULE, LONG);
            let (shared, waits, wakes) = (shared.clone(), waits.clone(), wakes.clone());
            drop(on.spawn(async move {
                let verdict = poll_fn(|cx| {
                    let polled = shared.slots.poll_verdict(ticket, cx);
                    // Once only: it may be decided and polled again before others have waited.
                    if polled.is_pending() {
                        waits.send(ticket).unwrap();
                    }
                    polled
                });
                assert_eq!(verdict.await, Verdict::Won);
                wakes.send(()).unwrap();
            }));
        }
        drop(waits);
        for ticket in waiting.iter().take(count) {
            assert!(shared.slots.cast(ticket, 0, NodeVote::Granted, 0));
            decided.add(ticket, &shared.slots);
        }
        woken
    }

    fn all(woken: &mpsc::Receiver<()>, count: usize) {
        (0..count).for_each(|_| woken.recv_timeout(LONG).unwrap());
    }

    #[test]
    fn few_and_many_are_woken_though_the_worker_that_woke_them_computes() {
        let runtime = Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let home = runtime.handle().clone();
        for count in [0, 1, BATCH_MIN - 1, BATCH_MIN, 100] {
            let (shared, mut decided) = (shared(), Decided::new(Some(home.clone())));
            let woken = callers(&home, &shared, &mut decided, count);
            let driver = async move {
                decided.wake(&shared);
                // This blocks the worker. The last that it has woken by itself is in a place of
                // its own, from which no other worker takes it.
                let own = usize::from((1..BATCH_MIN).contains(&count));
                all(&woken, count - own);
            };
            runtime.block_on(runtime.spawn(driver)).unwrap();
        }
    }

    #[test]
    fn callers_on_another_runtime_are_woken_when_the_drivers_has_ended() {
        let other = Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let ended = Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let (shared, mut decided) = (shared(), Decided::new(Some(ended.handle().clone())));
        let woken = callers(other.handle(), &shared, &mut decided, BATCH_MIN);
        drop(ended);
        assert!(woken.try_recv().is_err(), "a caller was woken before the pass ended");
        decided.wake(&shared);
        all(&woken, BATCH_MIN);
    }

    #[test]
    fn a_driver_that_is_alone_on_its_thread_wakes_at_once() {
        let other = Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let alone = Builder::new_current_thread().build().unwrap();
        for home in [None, Some(alone.handle().clone())] {
            let (shared, mut decided) = (shared(), Decided::new(home));
            all(&callers(other.handle(), &shared, &mut decided, 2 * BATCH_MIN), 2 * BATCH_MIN);
        }
    }
}
