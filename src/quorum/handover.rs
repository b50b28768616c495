//! Getting the driver away from a worker that may be about to be busy.
//!
//! A task that is woken on one of tokio's workers stands in a place of that worker's own, from
//! which no other takes it; and the worker that polled the sockets runs what they have woken, while
//! another one may sleep. If the task that runs there now computes for long, no task reads what
//! comes in, for any caller. Tokio wakes another worker, and lets it take the first task, as soon
//! as a second one is woken.
//!
//! A caller that awaits its verdict gives its worker back, and so the driver that it has woken. One
//! that finds the verdict there already, gives its operation up, or drops its guard may not. It
//! wakes the driver, and then starts a task that does nothing, which costs a small allocation: the
//! driver moves to the queue from which all workers take, and the worker that has run it polls the
//! sockets. Its passes tell whether the driver has run since it was woken. The keeper is handed on
//! in the same way by a lock that has woken or started it: its holder gets the guard at once.
//!
//! Where we have woken no task, there is no such help, with us or with any library: for a task that
//! polled several of its own at once, in a `join!`, and for one that was woken for its guard by the
//! worker that polled the sockets, and computes while it holds it.
//! [`Driver::Thread`](crate::Driver::Thread) needs no worker.

use std::num::NonZero;

use tokio::runtime::{Handle, RuntimeFlavor};

use super::shared::Shared;
use crate::sync::atomic::Ordering;
use crate::sync::lock;

/// The driver was woken: one more than the passes that it had begun by then. Never zero, so that an
/// `Option` of it takes one word.
#[derive(Clone, Copy)]
pub(super) struct Wakened(NonZero<u64>);

impl Shared {
    /// Wakes the driver for a caller who, as a rule, gives its worker back next.
    pub(super) fn wake_driver(&self) -> Wakened {
        self.driver.waker.wake();
        // Behind the wake, so that a pass that began before it does not count.
        Wakened(self.passes_plus_one())
    }

    fn passes_plus_one(&self) -> NonZero<u64> {
        // Ordering: one pass too few is no harm: the driver is handed on without need.
        let passes = self.driver.passes.load(Ordering::Relaxed);
        NonZero::<u64>::MIN.saturating_add(passes)
    }

    /// The worker is not given back: hands the driver on, if it has not run since it was woken.
    pub(super) fn hand_on_if_waiting(&self, wakened: Option<Wakened>) {
        if wakened.is_some_and(|Wakened(then)| then == self.passes_plus_one()) {
            self.hand_driver_on(false);
        }
    }

    /// Wakes the driver, if it has something to do (`wake`) or this thread may hold it up, so that
    /// it runs whatever this thread does next.
    pub(super) fn hand_driver_on(&self, wake: bool) {
        let here = Handle::try_current().ok();
        // A thread on no runtime, or on another, does not hold it up, and a single thread has no
        // other worker to hand it to.
        let worker = here.filter(|here| {
            let home = lock(&self.driver.home).as_ref().map(Handle::id);
            home == Some(here.id()) && here.runtime_flavor() != RuntimeFlavor::CurrentThread
        });
        if wake || worker.is_some() {
            self.wake_driver();
        }
        if let Some(worker) = worker {
            drop(worker.spawn(async {}));
        }
    }
}
