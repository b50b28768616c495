//! The race of an extension that succeeds with a look that finds the loss before it, every
//! interleaving, by loom: what was found lost stays lost, and is not told to have been extended.
//!
//! Run it with `RUSTFLAGS="--cfg quorlock_models" cargo test --profile checks --lib loom_`.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};

use loom::thread;

use super::super::extension::Extension;
use super::super::hold::{Hold, Step};
use super::super::hold_ref::HoldRef;
use super::super::leases::Leases;
use super::models::{claim, leases, model, runtime};
use crate::clock::Stamp;
use crate::node_vote::NodeVote;
use crate::options::Extend;
use crate::sync::models::{Flag, must_fail};

const TWO_ANSWERS: &str = "one look found the lock lost, and another that it was extended";

/// The only hold's place.
const PLACE: u32 = 0;

/// Enters the answers of an extension, and says whether the lock was extended.
type Land = fn(&Leases, &mut Extension, Stamp) -> bool;

fn at<R>(leases: &Leases, work: impl FnOnce(&mut Hold) -> R) -> R {
    leases.at(PLACE, |_, hold| work(hold)).unwrap()
}

fn land(leases: &Leases, extension: &mut Extension, target: Stamp) -> bool {
    let step = at(leases, |hold| hold.take_answers(extension, target, &leases.context));
    matches!(step, Step::Extended)
}

/// The time of the acquisition passes while the answers to an extension are entered.
///
/// Returns whether the lock was still held behind that.
fn found_lost_while_landing(land: Land) -> bool {
    let runtime = runtime();
    let entered = runtime.enter();
    let (leases, clock) = leases();
    let half = leases.context.options.ttl / 2;
    let (claim, now) = claim(&leases);
    claim.election.cast(0, NodeVote::Granted);
    let hold = HoldRef::begin(&leases, claim, Extend::Off, now).unwrap();
    clock.suspend(half);
    let mut extension = at(&leases, |hold| hold.extend(&leases.context, half * 2)).unwrap();
    extension.election().cast(0, NodeVote::Granted);
    let target = extension.end();

    let (woken, waiting) = (Arc::new(Flag::default()), hold.clone());
    let mut lost = Box::pin(async move { waiting.lost().await });
    let waker = Waker::from(woken.clone());
    assert!(lost.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());

    let theirs = leases.clone();
    let lander = thread::spawn(move || land(&theirs, &mut extension, target));
    // The clock is not loom's: the look is where it may let the other thread go first.
    assert!(hold.is_valid(), "no time has passed");
    clock.suspend(half);
    let is_valid = hold.is_valid();
    let is_extended = lander.join().unwrap();

    let was_woken = woken.take();
    let is_final = hold.is_valid() == is_valid;
    let ends = pin!(&mut lost).poll(&mut Context::from_waker(&waker)).is_ready();
    drop((lost, hold, leases, entered));
    drop(runtime);
    assert_eq!(is_valid, is_extended, "{TWO_ANSWERS}");
    assert!(is_final, "a look found otherwise later");
    assert_eq!((was_woken, ends), (!is_valid, !is_valid), "the waiter is woken by a loss only");
    is_valid
}

#[test]
fn loom_found_lost_while_an_extension_lands() {
    static ENDS: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];
    model(|| {
        let is_valid = found_lost_while_landing(land);
        ENDS[usize::from(is_valid)].store(true, Ordering::Relaxed);
    });
    assert!(ENDS.iter().all(|seen| seen.load(Ordering::Relaxed)), "each came first once");
}

/// The lock of the hold is given back between the check and the new lease.
#[test]
fn loom_found_lost_while_an_extension_lands_weakened() {
    must_fail(TWO_ANSWERS, || {
        found_lost_while_landing(|leases, extension, _| {
            let now = leases.context.nodes.clock().stamp();
            let is_valid = at(leases, |hold| hold.is_valid(now));
            if is_valid {
                at(leases, |hold| extension.apply(&mut hold.validity, &leases.context));
            }
            is_valid
        });
    });
}
