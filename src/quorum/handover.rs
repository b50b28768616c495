//! Getting the driver away from a worker that may be about to be busy.
//!
//! A task that is woken on one of tokio's workers stands in a place of that worker's own, from
//! which no other takes it; and the worker that polled the sockets runs what they have woken, while
//! another one may sleep. If the task that runs there now computes for long, nobody reads what
//! comes in, for any caller. Tokio wakes another worker, and lets it take the first task, as soon
//! as a second one is woken.
//!
//! A caller that awaits the verdict gives its worker back, and so the driver that it has woken. One
//! that finds the verdict there already, or gives its operation up, or drops its guard, may not. It
//! wakes the driver, and then starts a task that does nothing, which costs a small allocation: the
//! driver moves to the queue from which all workers take, and whoever has run it polls the sockets.
//! A task that waits all the time for being woken so would spare the allocation, and was tried: it
//! may still stand in a queue from the last time, and then the driver stays where it is.
//!
//! A task that computes while it holds its lock has no such help, with us or with any library.
//! [`Driver::Thread`](crate::Driver::Thread) needs no worker.

use tokio::runtime::{Handle, RuntimeFlavor};

use super::Shared;

impl Shared {
    /// Wakes the driver where this thread does not hold it up, whatever it does next.
    pub(super) fn hand_driver_on(&self) {
        let Ok(runtime) = Handle::try_current() else { return };
        if runtime.runtime_flavor() == RuntimeFlavor::CurrentThread {
            return; // nobody could take it
        }
        self.wake_driver();
        drop(runtime.spawn(async {}));
    }
}
