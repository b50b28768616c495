//! The races of the driver's timer with callers that queue commands.
//!
//! The link and the timer are the library's own. A *pass* is the part of the driver's pass that
//! keeps time: it looks at the link when the timer fires or a look was requested.

use std::sync::Arc;
use std::time::Duration;

use loom::sync::atomic::Ordering;
use loom::thread;

use crate::clock::Moment;
use crate::link::{Entry, Link, Outgoing, ReplyKind, Sent, Ticket, Undo, Urgency};
use crate::options::LinkOptions;
use crate::quorum::timer::DriverTimer;
use crate::sync::AtomicWaker;
use crate::sync::models::{Flag, must_fail};

/// Nothing expires in these models: the time is always before the first deadline.
const NOW: Moment = Moment::from_nanos(1);

const MISSED: &str = "the timer fires behind a deadline, and no look is to come";

/// What a driver shares with its callers.
struct Shared {
    timer: DriverTimer,
    link: Link,
    waker: AtomicWaker,
}

/// A caller's check of the timer.
type Check = fn(&DriverTimer, Moment) -> bool;

/// The driver's way to set the timer anew.
type SetAnew = fn(&DriverTimer, bool, &mut dyn FnMut() -> Moment);

fn check(timer: &DriverTimer, deadline: Moment) -> bool {
    timer.is_late_for(deadline)
}

fn set_anew(timer: &DriverTimer, must: bool, look: &mut dyn FnMut() -> Moment) {
    timer.set_anew(must, |_| look());
}

impl Shared {
    /// A link whose connection is being made, so that commands queue.
    fn new() -> Arc<Self> {
        let link = Link::new(LinkOptions::default());
        Arc::new(Self { timer: DriverTimer::new(), link, waker: AtomicWaker::new() })
    }

    /// What a caller does, as `NodeSet::ask` does it. `false`: it was told that nothing was sent.
    fn ask(&self, deadline: Moment, check: Check) -> bool {
        let entry = Entry { ticket: Ticket(1), kind: ReplyKind::Status, sent: NOW, deadline };
        let command = Outgoing { entry, bytes: b"x", undo: Undo::NONE, urgency: Urgency::Usual };
        if self.link.send(&command) == Sent::Closed {
            return false;
        }
        if check(&self.timer, deadline) {
            self.waker.wake();
        }
        true
    }

    /// The driver's passes: one, and another if it was woken for one by then.
    fn drive(&self, flag: &Arc<Flag>, fired: bool, set_anew: SetAnew) {
        self.pass(flag, fired, set_anew);
        if flag.take() {
            self.pass(flag, false, set_anew);
        }
    }

    fn pass(&self, flag: &Arc<Flag>, fired: bool, set_anew: SetAnew) {
        self.waker.register(&flag.clone().into());
        set_anew(&self.timer, fired, &mut || self.link.expire(NOW, &mut Vec::new()));
    }

    /// Runs the passes that were woken for, and checks that the timer fires by then.
    fn assert_in_time(&self, deadline: Moment, flag: &Arc<Flag>, set_anew: SetAnew) {
        while flag.take() {
            self.pass(flag, false, set_anew);
        }
        let fires_at = self.timer.fires_at.load(Ordering::SeqCst);
        assert!(fires_at <= deadline.as_nanos(), "{MISSED}");
    }
}

/// Callers queue commands, each with its deadline, while the timer fires and the driver looks.
fn queued_while_the_driver_looks<const CALLERS: usize>(check: Check, set_anew: SetAnew) {
    let (shared, flag) = (Shared::new(), Arc::new(Flag::default()));
    // An earlier command's timer, which fires now: that command has been answered.
    shared.timer.set_anew(true, |_| NOW);
    let callers: [_; CALLERS] = std::array::from_fn(|caller| {
        let shared = shared.clone();
        let deadline = NOW.plus(Duration::from_nanos(10 * (CALLERS - caller) as u64));
        thread::spawn(move || assert!(shared.ask(deadline, check)))
    });
    shared.drive(&flag, true, set_anew);
    callers.into_iter().for_each(|caller| caller.join().unwrap());
    shared.assert_in_time(NOW.plus(Duration::from_nanos(10)), &flag, set_anew);
}

#[test]
fn loom_queued_while_the_driver_looks() {
    loom::model(|| queued_while_the_driver_looks::<1>(check, set_anew));
}

#[test]
fn loom_queued_by_two_while_the_driver_looks() {
    loom::model(|| queued_while_the_driver_looks::<2>(check, set_anew));
}

/// The timer is cleared behind the look.
#[test]
fn loom_queued_while_the_driver_looks_weakened_clear() {
    must_fail(MISSED, || {
        queued_while_the_driver_looks::<1>(check, |timer, must, look| {
            if timer.requested.swap(false, Ordering::SeqCst) || must {
                let next = look().as_nanos();
                timer.fires_at.store(Moment::NEVER.as_nanos(), Ordering::SeqCst);
                timer.fires_at.store(next, Ordering::SeqCst);
            }
        });
    });
}

/// The request is taken behind the look.
#[test]
fn loom_queued_while_the_driver_looks_weakened_take() {
    must_fail(MISSED, || {
        queued_while_the_driver_looks::<1>(check, |timer, must, look| {
            if timer.requested.load(Ordering::SeqCst) || must {
                timer.fires_at.store(Moment::NEVER.as_nanos(), Ordering::SeqCst);
                let next = look().as_nanos();
                timer.requested.store(false, Ordering::SeqCst);
                timer.fires_at.store(next, Ordering::SeqCst);
            }
        });
    });
}

/// The caller wakes the driver and requests nothing.
#[test]
fn loom_queued_while_the_driver_looks_weakened_request() {
    must_fail(MISSED, || {
        let is_late = |timer: &DriverTimer, deadline: Moment| {
            timer.fires_at.load(Ordering::SeqCst) > deadline.as_nanos()
        };
        queued_while_the_driver_looks::<1>(is_late, set_anew);
    });
}

/// The caller wakes the driver before it requests the look.
#[test]
fn loom_queued_while_the_driver_looks_weakened_wake() {
    must_fail(MISSED, || {
        let (shared, flag) = (Shared::new(), Arc::new(Flag::default()));
        let asking = shared.clone();
        let deadline = NOW.plus(Duration::from_nanos(10));
        let caller = thread::spawn(move || {
            assert!(asking.ask(deadline, |_, _| true));
            asking.timer.request_look();
        });
        shared.drive(&flag, false, set_anew);
        caller.join().unwrap();
        shared.assert_in_time(deadline, &flag, set_anew);
    });
}

/// A caller that found the last driver running queues a command while the next driver starts.
fn queued_while_a_driver_starts(restart: fn(&DriverTimer, &Link)) {
    let (shared, flag) = (Shared::new(), Arc::new(Flag::default()));
    shared.timer.set_anew(true, |_| NOW);
    shared.link.orphan(&mut Vec::new());
    let (asking, deadline) = (shared.clone(), NOW.plus(Duration::from_nanos(10)));
    let caller = thread::spawn(move || asking.ask(deadline, check));
    restart(&shared.timer, &shared.link);
    shared.drive(&flag, false, set_anew);
    if caller.join().unwrap() {
        shared.assert_in_time(deadline, &flag, set_anew);
    }
}

#[test]
fn loom_queued_while_a_driver_starts() {
    loom::model(|| queued_while_a_driver_starts(|timer, link| timer.restart(|| link.reopen())));
}

/// The links take commands before the last driver's timer is cleared.
#[test]
fn loom_queued_while_a_driver_starts_weakened() {
    must_fail(MISSED, || {
        queued_while_a_driver_starts(|timer, link| {
            link.reopen();
            timer.restart(|| {});
        });
    });
}
