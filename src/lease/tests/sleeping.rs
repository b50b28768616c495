//! The races of the keeper's sleep and its timer with a hold that begins, every interleaving, by
//! loom: no look is slept through.
//!
//! Run it with `RUSTFLAGS="--cfg quorlock_models" cargo test --profile checks --lib loom_`.

use std::sync::Arc;

use loom::thread;

use super::super::keeping::Keeping;
use crate::clock::Moment;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::models::{Flag, must_fail};

const SLEPT_THROUGH: &str = "the keeper sleeps, and was not woken for the hold";
const TOO_LATE: &str = "the timer fires behind what is due, and the keeper was not woken";

const BEFORE: Moment = Moment::from_nanos(3);
const DUE: Moment = Moment::from_nanos(5);
const TICK: Moment = Moment::from_nanos(100);

/// A keeper whose timer was set for [`BEFORE`], and its waker.
fn keeper() -> (Arc<Keeping>, Arc<Flag>) {
    let (keeping, woken) = (Arc::new(Keeping::new()), Arc::new(Flag::default()));
    // Loom lets a sequentially consistent load skip such a store only to find the value that the
    // variable was made with. So each is stored once before, here and below.
    keeping.handle_look();
    keeping.handle_armed(BEFORE);
    keeping.register(&woken.clone().into());
    (keeping, woken)
}

/// A task begins a hold that is due at [`DUE`] while the keeper goes to sleep. `sleep` says whether
/// the keeper has seen it.
fn begun_while_going_to_sleep(sleep: fn(&Keeping, &AtomicUsize) -> bool) {
    let (keeping, woken) = keeper();
    let held = Arc::new(AtomicUsize::new(0));
    held.store(0, Ordering::SeqCst);
    let (theirs, count) = (keeping.clone(), held.clone());
    let holder = thread::spawn(move || {
        count.fetch_add(1, Ordering::SeqCst);
        theirs.note(DUE);
    });
    let is_seen = sleep(&keeping, &held);
    holder.join().unwrap();
    assert!(is_seen || woken.take(), "{SLEPT_THROUGH}");
}

/// As the keeper does: see `Keeper::arm`, and the look at what is held that follows it.
fn sleep(keeping: &Keeping, held: &AtomicUsize) -> bool {
    keeping.handle_awake();
    if held.load(Ordering::SeqCst) > 0 {
        return true;
    }
    keeping.handle_asleep();
    held.load(Ordering::SeqCst) > 0
}

#[test]
fn loom_begun_while_the_keeper_goes_to_sleep() {
    loom::model(|| begun_while_going_to_sleep(sleep));
}

/// What is held is read before the keeper says that it is to be woken.
#[test]
fn loom_begun_while_the_keeper_goes_to_sleep_weakened() {
    must_fail(SLEPT_THROUGH, || {
        begun_while_going_to_sleep(|keeping, held| {
            let is_held = held.load(Ordering::SeqCst) > 0;
            keeping.handle_awake();
            keeping.handle_asleep();
            is_held
        });
    });
}

/// A task brings a look nearer, to [`DUE`], while the keeper sets its timer.
fn nearer_while_arming(arm: fn(&Keeping)) {
    let (keeping, woken) = keeper();
    let theirs = keeping.clone();
    let holder = thread::spawn(move || {
        theirs.note(DUE);
    });
    arm(&keeping);
    holder.join().unwrap();
    assert!(keeping.timer() <= DUE || woken.take(), "{TOO_LATE}");
}

/// As the keeper does: until nothing is due before the timer.
fn arm(keeping: &Keeping) {
    loop {
        keeping.handle_awake();
        keeping.handle_armed(keeping.earliest().min(TICK));
        if keeping.earliest() >= keeping.timer() {
            return;
        }
    }
}

#[test]
fn loom_nearer_while_the_keeper_sets_its_timer() {
    loom::model(|| nearer_while_arming(arm));
}

/// What is due is not read again behind the timer.
#[test]
fn loom_nearer_while_the_keeper_sets_its_timer_weakened() {
    must_fail(TOO_LATE, || {
        nearer_while_arming(|keeping| {
            let earliest = keeping.earliest();
            keeping.handle_armed(earliest.min(TICK));
        });
    });
}
