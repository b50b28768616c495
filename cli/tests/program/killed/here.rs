//! Those that wait are in this process: from the kill to their lock, without a program's start.

#![expect(clippy::unwrap_used, reason = "a set-up that fails must fail its test on the spot")]

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use quorlock::{LockGuard, LockRequest, Locker};
use support::{Fleet, eventually, need_process};
use tokio::runtime::{Builder, Runtime};

use super::{QUEUE, all_end, holds, kill, queue_has, tell, waits};
use crate::revoke::{STUBBORN, runs};

/// A kind of request for the lock.
type Ask = fn(&Locker) -> LockRequest;

/// A locker of this process, and the threads that it runs on.
struct Here {
    runtime: Runtime,
    locker: Locker,
}

impl Here {
    fn on(fleet: &Fleet) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let locker = runtime.block_on(async {
            let locker = Locker::quorum(fleet.urls()).unwrap().build().unwrap();
            locker.ready(Duration::from_secs(5)).await.unwrap();
            locker
        });
        eventually("the nodes tell of hand-overs", || {
            locker.health().iter().all(|node| node.tells_hand_overs)
        });
        Self { runtime, locker }
    }

    fn acquire(&self, ask: Ask) -> LockGuard {
        let request = ask(&self.locker).wait_forever();
        self.runtime.block_on(async move { request.await.unwrap() })
    }

    /// Waits in a thread. Says when it has the lock, and lets go of it.
    #[expect(clippy::disallowed_methods, reason = "what a killed process leaves ends in real time")]
    fn wait(self, ask: Ask) -> JoinHandle<Instant> {
        thread::spawn(move || {
            let guard = self.acquire(ask);
            let at = Instant::now();
            let released = self.runtime.block_on(guard.release());
            assert!(released.unwrap().is_released());
            at
        })
    }
}

/// Waits until the other one has had the lock, and prints how long after this that was.
fn goes_on(what: &str, waiting: JoinHandle<Instant>, since: Instant) {
    eventually(what, || waiting.is_finished());
    let after = waiting.join().unwrap().checked_duration_since(since);
    tell(what, after.unwrap_or_else(|| panic!("{what}: it had the lock too early")));
}

#[test]
fn one_goes_on_when_the_time_of_a_killed_holder_is_over() {
    need_process!();
    let slots = "slots:1:quorlock:queue";
    let rows: [(&str, &[&str], Ask, &str); 6] = [
        ("a lock", &[], |locker| locker.lock("job"), QUEUE),
        ("a lock, by a fair request", &[], |locker| locker.lock("job").fair(), QUEUE),
        ("a lock, in strict order", &[], |locker| locker.lock("job").fair_strict(), QUEUE),
        ("a writer's lock, by a reader", &[], |locker| locker.read("job"), QUEUE),
        ("the last reader's lock", &["--shared"], |locker| locker.write("job"), QUEUE),
        ("the only slot", &["--slots", "1"], |locker| locker.slots("job", 1).acquire(), slots),
    ];
    for (what, options, ask, queue) in rows {
        let fleet = Fleet::start(3);
        let held = holds(&fleet, &[&["--ttl", "1s"], options].concat());
        let waiting = Here::on(&fleet).wait(ask);
        let is_strict = what.ends_with("strict order");
        queue_has(&fleet, queue, if is_strict { 3 } else { 1 });
        let at = kill(held);
        goes_on(&format!("{what}, TTL 1 s"), waiting, at);
        all_end(&fleet, []);
    }
}

/// Its command ignores the revocation.
#[test]
fn one_goes_on_when_the_time_of_a_killed_holder_that_was_revoked_is_over() {
    need_process!();
    for (how, ask) in [
        ("", (|locker| locker.lock("job")) as Ask),
        (", by a fair request", |locker| locker.lock("job").fair()),
        (", in strict order", |locker| locker.lock("job").fair_strict()),
    ] {
        let fleet = Fleet::start(3);
        let held = runs(&fleet, &["--ttl", "1s"], STUBBORN);
        let here = Here::on(&fleet);
        let locker = here.locker.clone();
        let (revoking, handle) = (locker.revoke("job"), here.runtime.handle().clone());
        let waiting = here.wait(ask);
        queue_has(&fleet, QUEUE, if how.ends_with("strict order") { 3 } else { 1 });
        handle.block_on(revoking).unwrap().expect("it is held");
        assert_eq!(held.line(), "told");
        let at = kill(held);
        goes_on(&format!("a revoked lock{how}, TTL 1 s"), waiting, at);
        all_end(&fleet, []);
    }
}

/// The lock is let go of at once after the kill, and handed over to the one that is gone.
#[test]
#[expect(clippy::disallowed_methods, reason = "what a killed process leaves ends in real time")]
fn one_goes_on_when_the_time_of_a_killed_waiter_before_it_is_over() {
    need_process!();
    let slots = "slots:1:quorlock:queue";
    let rows: [(&str, &[&str], Ask, &str, i64); 4] = [
        ("a waiter", &[], |locker| locker.lock("job"), QUEUE, 1),
        ("a fair waiter", &["--fair"], |locker| locker.lock("job").fair(), QUEUE, 1),
        (
            "a waiter in strict order",
            &["--fair-strict"],
            |locker| locker.lock("job").fair_strict(),
            QUEUE,
            3,
        ),
        (
            "a waiter for a slot",
            &["--slots", "1"],
            |locker| locker.slots("job", 1).acquire(),
            slots,
            1,
        ),
    ];
    for (what, options, ask, queue, places) in rows {
        let fleet = Fleet::start(3);
        let (holder, here) = (Here::on(&fleet), Here::on(&fleet));
        let held = holder.acquire(ask);
        let first = waits(&fleet, options);
        queue_has(&fleet, queue, places);
        let waiting = here.wait(ask);
        queue_has(&fleet, queue, 2 * places);
        kill(first);
        let at = Instant::now();
        assert!(holder.runtime.block_on(held.release()).unwrap().is_released());
        goes_on(&format!("{what}, whose place lives for 1.5 s"), waiting, at);
        all_end(&fleet, []);
    }
}
