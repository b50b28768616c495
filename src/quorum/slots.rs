//! Where operations wait for their verdict: a slab of slots that are used again and again.
//!
//! A *slot* holds one operation at a time: its ballot, the waker of the one task that waits for it,
//! and what each node did. A *ticket* is the slot's index and the generation of its use; a late
//! reply for an earlier use finds another generation and changes nothing. Slots are never freed: in
//! steady state an operation allocates nothing. What does not fit a word (an error's text, a reply
//! that is not a lock's) goes to the slot's `extras`, behind a lock that only such replies take.
//!
//! The races of the ballot are told in `ballot`, that of the free list in `slab`. One more:
//! - *Waker registered while deciding.* The waiting task registers its waker, then looks again;
//!   `AtomicWaker` guarantees that a wake between the two is not lost.

use std::task::{Context, Poll};
use std::time::Duration;

use quorlock_resp::Frame;

use super::ballot::{Ballot, Cast, Votes};
use super::tally::{Patience, Rule, Verdict, Vote};
use crate::clock::nanoseconds;
use crate::link::Ticket;
use crate::node_vote::NodeVote;
use crate::slab::Slab;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::sync::{AtomicWaker, Mutex, lock};

/// A vote and its round trip in one word: generation, round trip in units of 100 ns, vote.
#[derive(Clone, Copy)]
struct Detail(u64);

impl Detail {
    const RTT_MAX: u64 = (1 << 26) - 1;

    fn new(generation: u32, vote: NodeVote, rtt: u64) -> Self {
        let rtt = (rtt / 100).min(Self::RTT_MAX);
        Self(u64::from(generation) << 32 | rtt << 6 | vote as u64)
    }

    fn empty(generation: u32) -> Self {
        Self::new(generation, NodeVote::None, 0)
    }

    fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn vote(self) -> NodeVote {
        NodeVote::ALL.get((self.0 & 0b11_1111) as usize).copied().unwrap_or(NodeVote::None)
    }

    fn rtt(self) -> Duration {
        Duration::from_nanos(((self.0 >> 6) & Self::RTT_MAX) * 100)
    }
}

struct Slot {
    ballot: Ballot,
    /// The rule of the present use, packed.
    rule: AtomicU32,
    /// How long its nodes may take, in nanoseconds.
    allowed: AtomicU64,
    waker: AtomicWaker,
    /// One word per node.
    details: Box<[AtomicU64]>,
    /// Frames that callers want whole: generation, node, frame.
    extras: Mutex<Vec<(u32, u8, Frame)>>,
}

impl Slot {
    fn new(nodes: usize) -> Self {
        Self {
            ballot: Ballot::new(0),
            rule: AtomicU32::new(0),
            allowed: AtomicU64::new(0),
            waker: AtomicWaker::new(),
            details: (0..nodes).map(|_| AtomicU64::new(Detail::empty(0).0)).collect(),
            extras: Mutex::new(Vec::new()),
        }
    }
}

/// The slab.
pub(crate) struct Slots(Slab<Slot>);

impl Slots {
    pub(crate) fn new(nodes: usize) -> Self {
        Self(Slab::new(move || Slot::new(nodes)))
    }

    /// Claims a slot for an operation, whose nodes may take so long.
    pub(crate) fn claim(&self, rule: Rule, allowed: Duration) -> Ticket {
        let index = self.0.claim();
        let slot = self.0.get(index);
        // Ordering: the ticket reaches voters through a link's lock, which publishes this.
        slot.rule.store(pack(rule), Ordering::Relaxed);
        slot.allowed.store(nanoseconds(allowed), Ordering::Relaxed);
        Ticket(u64::from(slot.ballot.votes().generation()) << 32 | u64::from(index))
    }

    /// Gives the slot back; late votes for it are ignored from now on.
    pub(crate) fn release(&self, ticket: Ticket) {
        let (_, index) = parts(ticket);
        let slot = self.slot(index);
        let generation = slot.ballot.retire();
        for detail in &slot.details {
            // Ordering: as for the rule.
            detail.store(Detail::empty(generation).0, Ordering::Relaxed);
        }
        lock(&slot.extras).clear();
        slot.waker.clear();
        self.0.release(index);
    }

    /// Casts a node's vote, with its round trip in nanoseconds. `true`: it decided, and the caller
    /// of this wakes the ticket. Inlined, for every reply casts a vote.
    #[inline(always)]
    pub(crate) fn cast(&self, ticket: Ticket, node: usize, vote: NodeVote, rtt: u64) -> bool {
        let (generation, index) = parts(ticket);
        let slot = self.slot(index);
        let Some(detail) = slot.details.get(node) else { return false };
        // First the detail, and only for its own generation; the vote then publishes it.
        let _ = detail.compare_exchange(
            Detail::empty(generation).0,
            Detail::new(generation, vote, rtt).0,
            Ordering::Relaxed,
            Ordering::Relaxed,
        ); // a node that has voted keeps its first vote
        let rule = unpack(slot.rule.load(Ordering::Relaxed));
        slot.ballot.cast(generation, node, Vote::of(vote), rule) == Cast::Decided
    }

    /// Keeps a frame for the operation; before the vote that tells of it.
    pub(crate) fn keep(&self, ticket: Ticket, node: usize, frame: Frame) {
        let (generation, index) = parts(ticket);
        let slot = self.slot(index);
        let mut extras = lock(&slot.extras);
        if slot.ballot.votes().generation() == generation {
            extras.push((generation, u8::try_from(node).unwrap_or(u8::MAX), frame));
        }
    }

    /// Takes what [`Slots::keep`] kept of a node.
    pub(crate) fn take(&self, ticket: Ticket, node: usize) -> Option<Frame> {
        let (generation, index) = parts(ticket);
        let mut extras = lock(&self.slot(index).extras);
        let position = extras
            .iter()
            .position(|(of, from, _)| (*of, usize::from(*from)) == (generation, node))?;
        Some(extras.swap_remove(position).2)
    }

    /// Like [`Slots::take`], and leaves it there.
    pub(crate) fn peek(&self, ticket: Ticket, node: usize) -> Option<Frame> {
        let frame = self.take(ticket, node)?;
        self.keep(ticket, node, frame.clone());
        Some(frame)
    }

    /// Wakes the task that waits for the ticket.
    pub(crate) fn wake(&self, ticket: Ticket) {
        self.slot(parts(ticket).1).waker.wake();
    }

    /// The votes so far.
    pub(crate) fn votes(&self, ticket: Ticket) -> Votes {
        self.slot(parts(ticket).1).ballot.votes()
    }

    /// The rule; only for the holder of the ticket.
    pub(crate) fn rule(&self, ticket: Ticket) -> Rule {
        unpack(self.slot(parts(ticket).1).rule.load(Ordering::Relaxed))
    }

    /// How long the nodes may take; only for the holder of the ticket.
    pub(crate) fn allowed(&self, ticket: Ticket) -> Duration {
        Duration::from_nanos(self.slot(parts(ticket).1).allowed.load(Ordering::Relaxed))
    }

    /// What each node did, in their order, and how long it took; only for the holder of the ticket.
    pub(crate) fn details(&self, ticket: Ticket) -> impl Iterator<Item = (NodeVote, Duration)> {
        let (generation, index) = parts(ticket);
        let details = self.slot(index).details.iter();
        details.map(move |detail| match Detail(detail.load(Ordering::Relaxed)) {
            detail if detail.generation() == generation => (detail.vote(), detail.rtt()),
            _ => (NodeVote::None, Duration::ZERO),
        })
    }

    /// As [`details`](Self::details), of one node.
    pub(crate) fn detail(&self, ticket: Ticket, node: usize) -> (NodeVote, Duration) {
        self.details(ticket).nth(node).unwrap_or((NodeVote::None, Duration::ZERO))
    }

    /// Waits for the verdict. One task per ticket.
    pub(crate) fn poll_verdict(&self, ticket: Ticket, cx: &mut Context<'_>) -> Poll<Verdict> {
        let slot = self.slot(parts(ticket).1);
        if let Some(verdict) = slot.verdict() {
            return Poll::Ready(verdict);
        }
        slot.waker.register(cx.waker());
        slot.verdict().map_or(Poll::Pending, Poll::Ready)
    }

    #[cfg(all(test, quorlock_models))]
    pub(super) fn register(&self, ticket: Ticket, cx: &Context<'_>) {
        self.slot(parts(ticket).1).waker.register(cx.waker());
    }

    fn slot(&self, index: u32) -> &Slot {
        self.0.get(index)
    }
}

impl Slot {
    fn verdict(&self) -> Option<Verdict> {
        let votes = self.ballot.votes();
        if !votes.is_decided() {
            return None;
        }
        let rule = unpack(self.rule.load(Ordering::Relaxed));
        Some(rule.verdict(votes.granted(), votes.cast()))
    }
}

/// The generation and the index.
fn parts(ticket: Ticket) -> (u32, u32) {
    ((ticket.0 >> 32) as u32, ticket.0 as u32)
}

fn pack(rule: Rule) -> u32 {
    let patient = u32::from(rule.patience == Patience::All);
    u32::from(rule.voters) | u32::from(rule.needed) << 8 | patient << 16
}

fn unpack(packed: u32) -> Rule {
    let [voters, needed, patient, _] = packed.to_le_bytes();
    let patience = if patient == 0 { Patience::Early } else { Patience::All };
    Rule { voters, needed, patience }
}

#[cfg(all(test, not(quorlock_models)))]
mod tests {
    use bytes::Bytes;

    use super::*;

    const RULE: Rule = Rule { voters: 3, needed: 2, patience: Patience::Early };
    const RTT: Duration = Duration::from_micros(42);
    const NANOS: u64 = RTT.as_nanos() as u64;

    #[test]
    fn a_verdict_and_what_each_node_did() {
        let slots = Slots::new(3);
        let ticket = slots.claim(RULE, RTT);
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert!(slots.poll_verdict(ticket, &mut cx).is_pending());
        assert!(!slots.cast(ticket, 0, NodeVote::Held, NANOS));
        assert!(!slots.cast(ticket, 0, NodeVote::Granted, NANOS)); // a second vote of one node
        assert!(!slots.cast(ticket, 2, NodeVote::Granted, NANOS));
        assert!(slots.cast(ticket, 1, NodeVote::Granted, NANOS));
        assert_eq!(slots.poll_verdict(ticket, &mut cx), Poll::Ready(Verdict::Won));
        assert_eq!(slots.detail(ticket, 0), (NodeVote::Held, RTT));
        assert_eq!(slots.detail(ticket, 1), (NodeVote::Granted, RTT));
    }

    #[test]
    fn a_late_vote_does_not_touch_the_next_use() {
        let slots = Slots::new(3);
        let old = slots.claim(RULE, RTT);
        slots.keep(old, 0, Frame::Null);
        slots.release(old);
        let new = slots.claim(RULE, RTT);
        assert_ne!(old, new);
        assert_eq!(parts(old).1, parts(new).1, "the slot is used again");
        assert!(!slots.cast(old, 1, NodeVote::Granted, NANOS));
        slots.keep(old, 1, Frame::Null);
        assert_eq!(slots.detail(new, 1), (NodeVote::None, Duration::ZERO));
        assert_eq!((slots.take(new, 0), slots.take(new, 1)), (None, None));
        assert_eq!(slots.votes(new).cast(), 0);
    }

    #[test]
    fn frames_are_kept_by_node() {
        let slots = Slots::new(3);
        let ticket = slots.claim(RULE, RTT);
        slots.keep(ticket, 2, Frame::Integer(2));
        slots.keep(ticket, 1, Frame::Bulk(Bytes::from_static(b"one")));
        assert_eq!(slots.peek(ticket, 2), Some(Frame::Integer(2)));
        assert_eq!(slots.take(ticket, 2), Some(Frame::Integer(2)));
        assert_eq!(slots.take(ticket, 2), None);
        assert!(slots.take(ticket, 1).is_some());
    }

    #[test]
    fn rules_and_details_survive_packing() {
        for patience in [Patience::Early, Patience::All] {
            let rule = Rule { voters: 15, needed: 8, patience };
            assert_eq!(unpack(pack(rule)), rule);
        }
        for vote in NodeVote::ALL {
            let detail = Detail::new(u32::MAX, vote, u64::MAX);
            assert_eq!(detail.vote(), vote);
            assert!(detail.rtt() > Duration::from_secs(6));
        }
    }
}
