//! The race of a hold that begins with the shutdown of its locker, every interleaving, by loom.
//!
//! All of it is the library's own code: the locker, its node set and what they share. The node
//! never answers, and no task runs: a shutdown does its part at its first poll. Run it with
//! `RUSTFLAGS="--cfg quorlock_models" cargo test --profile checks --lib loom_`.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use loom::thread;

use super::super::claim::Claim;
use super::super::hold_ref::HoldRef;
use super::super::leases::Leases;
use super::super::shutdown::{Fate, shut_down};
use super::models::{claim, leases, model, runtime};
use crate::clock::Reading;
use crate::error::Error;
use crate::options::Extend;
use crate::sync::atomic::Ordering;
use crate::sync::models::must_fail;

const OPEN: &str = "the hold is open, and the shutdown has not found it";

type Begin = fn(&Arc<Leases>, Claim, Reading) -> Result<HoldRef, Error>;
type Close = fn(&Leases);

fn begin(leases: &Arc<Leases>, claim: Claim, at: Reading) -> Result<HoldRef, Error> {
    HoldRef::begin(leases, claim, Extend::Off, at)
}

/// What a shutdown does at its first poll.
fn shut(leases: &Leases, fate: Fate) {
    let deadline = leases.context.options.ttl;
    let shutdown = pin!(shut_down(leases, fate, deadline));
    assert!(shutdown.poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

fn close(leases: &Leases) {
    shut(leases, Fate::Leave);
}

/// A hold begins while its locker is shut down: in a new place, or in one that was `used`.
fn begun_while_closing(used: bool, begin: Begin, close: Close) {
    let runtime = runtime();
    let entered = runtime.enter();
    let (leases, _) = leases();
    // Loom lets a sequentially consistent load skip such a store only to find the value that the
    // variable was made with. So both, the flag and the count of places, are stored once before.
    leases.context.closing.store(false, Ordering::SeqCst);
    let (earlier, at) = claim(&leases);
    let earlier = HoldRef::begin(&leases, earlier, Extend::Off, at).unwrap();
    if used {
        drop(earlier.end(&mut None));
    }
    let (claim, at) = claim(&leases);
    let theirs = leases.clone();
    let beginner = thread::spawn(move || begin(&theirs, claim, at));
    close(&leases);
    let begun = beginner.join().unwrap();
    let is_settled = match &begun {
        Ok(hold) => hold.claim(Claim::has_ended) == Some(true),
        Err(error) => error.is_closed(),
    };
    drop((begun, earlier, leases, entered));
    drop(runtime);
    assert!(is_settled, "{OPEN}");
}

#[test]
fn loom_begun_while_closing() {
    model(|| begun_while_closing(false, begin, close));
}

#[test]
fn loom_begun_in_a_used_place_while_closing() {
    model(|| begun_while_closing(true, begin, close));
}

#[test]
fn loom_begun_while_closing_and_releasing() {
    model(|| begun_while_closing(false, begin, |leases| shut(leases, Fate::Release)));
}

/// The locker is checked before the hold is published.
#[test]
fn loom_begun_while_closing_weakened_check() {
    must_fail(OPEN, || {
        let begin: Begin = |leases, claim, at| {
            leases.context.check_open()?;
            Ok(HoldRef::publish(leases, claim, None, Extend::Off, at))
        };
        begun_while_closing(false, begin, close);
    });
}

/// The locker is closed behind the look through its holds.
#[test]
fn loom_begun_while_closing_weakened_close() {
    must_fail(OPEN, || {
        let close: Close = |leases| {
            leases.close_all(|hold| hold.claim.iter_mut().for_each(|claim| drop(claim.leave())));
            leases.context.close();
        };
        begun_while_closing(false, begin, close);
    });
}
