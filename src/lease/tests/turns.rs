//! The races of a turn that is passed on with those in line, every interleaving, by loom: it comes
//! to one of them, who is woken, and it is never lost.
//!
//! Run it with `RUSTFLAGS="--cfg quorlock_models" cargo test --profile checks --lib loom_`.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use loom::thread;

use super::super::turns::{Ticket, Told, Turn, Turns};
use crate::sync::models::{Flag, must_fail};

const LOST: &str = "the turn is lost";
const TWICE: &str = "the turn was passed on twice";
const NOT_WOKEN: &str = "its turn has come, and it was not woken";

const KEY: u64 = 7;

/// One who has the turn, and so many in line.
fn line<const WAITING: usize>() -> (Arc<Turns>, Turn, [Ticket; WAITING]) {
    let turns = Turns::new();
    let turn = turns.begin(KEY).unwrap();
    let tickets = std::array::from_fn(|_| turns.line_up(KEY, None).err().unwrap());
    (turns, turn, tickets)
}

fn poll(ticket: &Ticket, waker: &Waker) -> Poll<Told> {
    ticket.poll(&mut Context::from_waker(waker))
}

/// What it has been told and not looked at.
fn told(ticket: &Ticket) -> Vec<Told> {
    let told = std::iter::from_fn(|| match poll(ticket, Waker::noop()) {
        Poll::Ready(told) => Some(told),
        Poll::Pending => None,
    });
    told.collect()
}

/// Whether it has been told that its turn has come.
fn has_come(ticket: &Ticket) -> bool {
    told(ticket).iter().any(|told| matches!(told, Told::Turn(_)))
}

/// The first in line goes away while the turn is passed on to it.
fn left_while_passed_on(leave: fn(Ticket)) {
    let (turns, turn, [first, second]) = line();
    let theirs = turns.clone();
    let holder = thread::spawn(move || theirs.pass(turn));
    leave(first);
    holder.join().unwrap();
    assert!(has_come(&second), "{LOST}");
}

#[test]
fn loom_left_while_passed_on() {
    loom::model(|| left_while_passed_on(drop));
}

/// Who goes away keeps the turn that has come to it.
#[test]
fn loom_left_while_passed_on_weakened() {
    must_fail(LOST, || left_while_passed_on(std::mem::forget));
}

/// The turn is passed on while the first in line goes to sleep.
fn passed_on_while_going_to_sleep(sleep: fn(&Ticket, &Waker) -> bool) {
    let (turns, turn, [first]) = line();
    // It is the first, and has seen that.
    assert_eq!(poll(&first, Waker::noop()), Poll::Ready(Told::First));
    let woken = Arc::new(Flag::default());
    let holder = thread::spawn(move || turns.pass(turn));
    let is_up = sleep(&first, &woken.clone().into());
    holder.join().unwrap();
    assert!(is_up || woken.take(), "{NOT_WOKEN}");
}

#[test]
fn loom_passed_on_while_going_to_sleep() {
    loom::model(|| passed_on_while_going_to_sleep(|ticket, waker| poll(ticket, waker).is_ready()));
}

/// It looks before it says whom to wake, and not again.
#[test]
fn loom_passed_on_while_going_to_sleep_weakened() {
    must_fail(NOT_WOKEN, || {
        passed_on_while_going_to_sleep(|ticket, waker| {
            let is_up = poll(ticket, Waker::noop()).is_ready();
            // What it would see now is not looked at.
            let _ = poll(ticket, waker);
            is_up
        });
    });
}

/// The first in line takes the turn while it is passed on: it gets it once.
fn overtaken_while_passed_on(overtake: fn(&Turns, [&Ticket; 2], Turn)) {
    let (turns, turn, [first, second]) = line();
    let theirs = turns.clone();
    let holder = thread::spawn(move || theirs.pass(turn));
    overtake(&turns, [&first, &second], turn);
    holder.join().unwrap();
    assert!(has_come(&first), "{LOST}");
    assert!(!has_come(&second), "{TWICE}");
}

#[test]
fn loom_overtaken_while_passed_on() {
    loom::model(|| overtaken_while_passed_on(|_, [first, _], turn| first.overtake(turn)));
}

/// It takes the turn from who has it by then, which may be itself.
#[test]
fn loom_overtaken_while_passed_on_weakened() {
    must_fail(TWICE, || {
        overtaken_while_passed_on(|turns, [_, second], turn| {
            let rival = second.rival().map_or(turn, |rival| rival.turn);
            turns.pass(rival);
        });
    });
}

/// One gets in line while the line is let go, and the turn is passed on behind that.
fn lined_up_while_let_go(end: fn(&Turns, Turn)) {
    let (turns, turn, []) = line();
    let theirs = turns.clone();
    let holder = thread::spawn(move || {
        theirs.let_go(turn);
        end(&theirs, turn);
    });
    let lined = turns.line_up(KEY, None);
    holder.join().unwrap();
    let is_told = |ticket: &Ticket| told(ticket).iter().any(|told| *told != Told::First);
    assert!(lined.is_ok() || lined.is_err_and(|ticket| is_told(&ticket)), "{LOST}");
}

#[test]
fn loom_lined_up_while_let_go() {
    loom::model(|| lined_up_while_let_go(Turns::pass));
}

/// Who has let the line go keeps its turn.
#[test]
fn loom_lined_up_while_let_go_weakened() {
    must_fail(LOST, || lined_up_while_let_go(|_, _| {}));
}
