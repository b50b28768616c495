//! The races of `ballot`, `slots`, `ready_flag` and `timer`, every interleaving of each, by loom.
//!
//! Each model has a twin that is weakened in just the point that settles the race, and that must
//! fail: a model that cannot fail shows nothing. Run them with
//! `RUSTFLAGS="--cfg quorlock_models" cargo test --profile checks --lib loom_`.

mod timer;

use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use super::ballot::{Ballot, Cast};
use super::ready_flag::ReadyFlag;
use super::slots::Slots;
use super::tally::{Patience, Rule, Vote};
use crate::link::Ticket;
use crate::node_vote::NodeVote;
use crate::sync::AtomicWaker;
use crate::sync::models::{Flag, must_fail};

const TWO_OF_TWO: Rule = Rule { voters: 2, needed: 2, patience: Patience::Early };
const ONE_OF_ONE: Rule = Rule { voters: 1, needed: 1, patience: Patience::Early };
const ONE_OF_TWO: Rule = Rule { voters: 2, needed: 1, patience: Patience::Early };

/// A word that is changed by loading and storing, as a ballot must not be.
struct TornBallot(AtomicU64);

impl TornBallot {
    fn cast(&self, node: usize) -> bool {
        let votes = self.0.load(Ordering::SeqCst);
        let next = votes | 1 << node;
        self.0.store(next, Ordering::SeqCst);
        next == 0b11
    }
}

#[test]
fn loom_vote_against_vote() {
    loom::model(|| {
        let ballot = Arc::new(Ballot::new(0));
        let other = ballot.clone();
        let voter = thread::spawn(move || other.cast(0, 0, Vote::Granted, TWO_OF_TWO));
        let ours = ballot.cast(0, 1, Vote::Granted, TWO_OF_TWO);
        let theirs = voter.join().unwrap();
        let decided = [ours, theirs].iter().filter(|cast| **cast == Cast::Decided).count();
        assert_eq!(decided, 1, "exactly one vote decides");
        assert_eq!(ballot.votes().granted(), 2);
    });
}

#[test]
fn loom_vote_against_vote_weakened() {
    must_fail("exactly one vote decides", || {
        let ballot = Arc::new(TornBallot(AtomicU64::new(0)));
        let other = ballot.clone();
        let voter = thread::spawn(move || other.cast(0));
        let ours = ballot.cast(1);
        let decided = u8::from(ours) + u8::from(voter.join().unwrap());
        assert_eq!(decided, 1, "exactly one vote decides");
    });
}

/// The ticket of whatever use the slot has by now: what a ticket without a generation would be.
fn present(slots: &Slots, ticket: Ticket) -> Ticket {
    let generation = u64::from(slots.votes(ticket).generation());
    Ticket(generation << 32 | ticket.0 & u64::from(u32::MAX))
}

/// The caller gives up while its vote comes in; the slot's next use must not see it.
fn vote_against_cancel(cast: fn(&Slots, Ticket)) {
    let slots = Arc::new(Slots::new(1));
    let ticket = slots.claim(ONE_OF_ONE, Duration::ZERO);
    let voters = slots.clone();
    let voter = thread::spawn(move || cast(&voters, ticket));
    slots.release(ticket);
    let next = slots.claim(ONE_OF_ONE, Duration::ZERO);
    assert_eq!(slots.votes(next).cast(), 0, "a vote of the use before");
    voter.join().unwrap();
    assert_eq!(slots.votes(next).cast(), 0, "a vote of the use before");
    assert_eq!(slots.detail(next, 0).0, NodeVote::None);
}

#[test]
fn loom_vote_against_cancel() {
    loom::model(|| {
        vote_against_cancel(|slots, ticket| {
            slots.cast(ticket, 0, NodeVote::Granted, 0);
        });
    });
}

#[test]
fn loom_vote_against_cancel_weakened() {
    must_fail("a vote of the use before", || {
        vote_against_cancel(|slots, ticket| {
            slots.cast(present(slots, ticket), 0, NodeVote::Granted, 0);
        });
    });
}

/// A reply for a use that ended long ago comes while the slot's present use is voted on.
fn late_vote_for_a_reused_slot(late: fn(&Slots, Ticket)) {
    let slots = Arc::new(Slots::new(2));
    let old = slots.claim(ONE_OF_TWO, Duration::ZERO);
    slots.release(old);
    let new = slots.claim(ONE_OF_TWO, Duration::ZERO);
    let voters = slots.clone();
    let voter = thread::spawn(move || late(&voters, old));
    slots.cast(new, 1, NodeVote::Held, 0);
    voter.join().unwrap();
    assert!(!slots.votes(new).is_decided(), "decided by a vote that was not its own");
    assert_eq!(slots.detail(new, 1).0, NodeVote::Held);
}

#[test]
fn loom_late_vote_for_a_reused_slot() {
    loom::model(|| {
        late_vote_for_a_reused_slot(|slots, old| {
            slots.cast(old, 0, NodeVote::Granted, 0);
        });
    });
}

#[test]
fn loom_late_vote_for_a_reused_slot_weakened() {
    must_fail("decided by a vote that was not its own", || {
        late_vote_for_a_reused_slot(|slots, old| {
            slots.cast(present(slots, old), 0, NodeVote::Granted, 0);
        });
    });
}

/// A task looks for the verdict once while the deciding vote is cast: it has seen it, or is woken.
fn waker_registered_while_deciding(poll: fn(&Slots, Ticket, &mut Context<'_>) -> bool) {
    let slots = Arc::new(Slots::new(1));
    let ticket = slots.claim(ONE_OF_ONE, Duration::ZERO);
    let voters = slots.clone();
    let voter = thread::spawn(move || {
        if voters.cast(ticket, 0, NodeVote::Granted, 0) {
            voters.wake(ticket);
        }
    });
    let flag = Arc::new(Flag::default());
    let seen = poll(&slots, ticket, &mut Context::from_waker(&flag.clone().into()));
    voter.join().unwrap();
    assert!(seen || flag.take(), "a wake-up was lost");
}

#[test]
fn loom_waker_registered_while_deciding() {
    loom::model(|| {
        waker_registered_while_deciding(|slots, ticket, cx| {
            slots.poll_verdict(ticket, cx).is_ready()
        });
    });
}

#[test]
fn loom_waker_registered_while_deciding_weakened() {
    must_fail("a wake-up was lost", || {
        waker_registered_while_deciding(|slots, ticket, cx| {
            // Looks, registers, and does not look again.
            let seen = slots.votes(ticket).is_decided();
            slots.register(ticket, cx);
            seen
        });
    });
}

/// Two tasks pop from the free list while a third slot is pushed back.
#[test]
fn loom_a_slot_is_claimed_by_one_at_a_time() {
    loom::model(|| {
        let slots = Arc::new(Slots::new(1));
        let (a, b) =
            (slots.claim(ONE_OF_ONE, Duration::ZERO), slots.claim(ONE_OF_ONE, Duration::ZERO));
        slots.release(a);
        slots.release(b);
        let others = slots.clone();
        let other = thread::spawn(move || {
            let first = others.claim(ONE_OF_ONE, Duration::ZERO);
            others.release(first);
            others.claim(ONE_OF_ONE, Duration::ZERO)
        });
        let ours = slots.claim(ONE_OF_ONE, Duration::ZERO);
        let theirs = other.join().unwrap();
        assert_ne!(ours.0 as u32, theirs.0 as u32, "one slot, two holders");
    });
}

/// A free list without the count in its head: the stale head matches again.
#[test]
fn loom_a_slot_is_claimed_by_one_at_a_time_weakened() {
    const NONE: u64 = u64::MAX;
    struct Untagged {
        head: AtomicU64,
        next: [AtomicU64; 2],
    }
    impl Untagged {
        fn pop(&self) -> u64 {
            loop {
                let head = self.head.load(Ordering::SeqCst);
                if head == NONE {
                    return NONE;
                }
                let next = self.next[head as usize].load(Ordering::SeqCst);
                let swapped =
                    self.head.compare_exchange(head, next, Ordering::SeqCst, Ordering::SeqCst);
                if swapped.is_ok() {
                    return head;
                }
            }
        }

        fn push(&self, index: u64) {
            let head = self.head.load(Ordering::SeqCst);
            self.next[index as usize].store(head, Ordering::SeqCst);
            self.head.store(index, Ordering::SeqCst); // one thread pushes in this model
        }
    }
    must_fail("one slot, two holders", || {
        let list = Arc::new(Untagged {
            head: AtomicU64::new(0),
            next: [AtomicU64::new(1), AtomicU64::new(NONE)],
        });
        let others = list.clone();
        let other = thread::spawn(move || {
            let (first, second) = (others.pop(), others.pop());
            if first == NONE || second == NONE {
                return (NONE, NONE);
            }
            others.push(first); // `second` stays ours
            (first, second)
        });
        let ours = list.pop();
        let after = list.pop();
        let (_, theirs) = other.join().unwrap();
        assert!(theirs == NONE || (ours != theirs && after != theirs), "one slot, two holders");
    });
}

/// A flag is set while its task looks once: the task has seen it, or is woken to look again.
fn flag_set_while_polled(poll: fn(&AtomicWaker, &ReadyFlag, &std::task::Waker) -> bool) {
    let driver = Arc::new(AtomicWaker::new());
    let ready = ReadyFlag::new(&driver);
    let setting = ready.waker().clone();
    let ringer = thread::spawn(move || setting.wake());
    let flag = Arc::new(Flag::default());
    let seen = poll(&driver, &ready, &flag.clone().into());
    ringer.join().unwrap();
    assert!(seen || flag.take(), "it was set, neither seen nor woken for");
}

#[test]
fn loom_flag_set_while_polled() {
    loom::model(|| {
        flag_set_while_polled(|driver, ready, waker| {
            driver.register(waker);
            ready.take()
        });
    });
}

#[test]
fn loom_flag_set_while_polled_weakened() {
    must_fail("it was set, neither seen nor woken for", || {
        flag_set_while_polled(|driver, ready, waker| {
            let seen = ready.take(); // looks first, and registers behind it
            driver.register(waker);
            seen
        });
    });
}
