//! Waiting for another process, in the queue that one node keeps for the key.
//!
//! ```text
//!  ask the queue's node ──wait──▶ handed over, or its turn ──▶ ask all nodes ──▶ a verdict
//!     ▲  ▲  └──granted──────────────────────────────────────────▲
//!     │  └────── a beat, the end of the key's life, a change ─┤
//!     └─── watching: it is first, and the holder may be deaf ─┘
//! ```
//!
//! The queue's node (see [`queue_node`](super::queue_node)) hands the key over when it is released,
//! and has this process told so. Neither that nor this node's own grant counts: what counts is the
//! verdict of all nodes, which are asked then, the queue's node among them. After an unknown answer
//! the place is given up: its value may stay on the node, so the next one has another.
//!
//! The first in the queue also watches the key, for the holder may know nothing of queues, or may
//! not have heard in time. `PTTL` with tracking returns the key's life and has the server report
//! the next change, in one step, so no change is missed. And where the key just expires there is a
//! timer: servers report that late.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::claim::{Claim, Reply};
use super::command::NO_PLACE;
use super::context::LeaseContext;
use super::counters::{Cause, Waiter};
use super::gate::Gate;
use super::leases::Leases;
use super::notices::Registration;
use super::pause::{self, MILLISECOND};
use super::queue_node::QueueNode;
pub(super) use super::queue_plan::HEARTBEAT;
use super::queue_plan::Plan;
use super::resource::Resource;
use super::search::Search;
use super::turns::Turn;
use super::watch;
use crate::clock::Moment;
use crate::error::Error;
use crate::quorum::{Election, NodeMask, Verdict};

/// After so many heartbeats the first in the queue asks all nodes, past it: a value that was left
/// on the queue's node alone, as by one that crashed while it asked, must not keep others from a
/// lock that is free.
pub(super) const ASKS_ALL_EVERY: u32 = 8;

/// How often the others are asked again that have refused what the queue's node has granted, and
/// after how long for the first time: then twice as long, and so on. The last holder's release may
/// still be on its way to them.
const REASKS_MAX: u32 = 3;
const REASK_AFTER: Duration = MILLISECOND;

/// What has come of waiting.
pub(super) enum Ended {
    /// All nodes were asked, the last time then, and this is what they say.
    Asked { claim: Claim, verdict: Verdict, sent: Moment },
    /// All nodes are to be asked past the queue; the place there is kept.
    Past(Place),
    /// This node has no queue to offer, or is silent.
    NoQueue(usize),
    /// The user may not ask for slots there.
    Denied,
    /// Too few slots are free, and it does not wait.
    Refused,
    /// Another of this process has taken the turn.
    Overtaken,
    /// The wait is over, or the locker was shut down.
    Over,
}

/// How one waits.
pub(super) struct Wait {
    /// Its turn among those of this locker, if it has to have one.
    pub(super) turn: Option<Turn>,
    /// It is a writer, and readers were in its way.
    pub(super) has_met_readers: bool,
    /// What keeps readers out that come later; none has it who reads, or asks for slots.
    pub(super) gate: Option<Arc<Gate>>,
    /// Until then, and no longer.
    pub(super) until: Moment,
    /// After such pauses the queue's node is asked again, where nothing tells when the holder lets
    /// go.
    pub(super) pause: Duration,
    /// The observers have not been told that it waits, since then.
    pub(super) untold: Option<Moment>,
    /// The lock is to have a fence.
    pub(super) is_fenced: bool,
    /// It asks here first, and not all nodes.
    pub(super) is_fair: bool,
    /// It asks for slots, and does not wait in the queue.
    pub(super) is_once: bool,
}

impl Wait {
    /// If readers are in its way, it waits for them, and for no more of them but those that were
    /// before it in the queue of this name, in which it is the first now.
    pub(super) fn note_readers(&mut self, are_there: bool, queue: u64) {
        if are_there {
            self.has_met_readers = true;
            self.shut_gate(queue);
        }
    }

    /// Keeps its turn until then, if it has to have one. Whether it has it.
    pub(super) fn renew_turn(&self, context: &LeaseContext, until: Moment) -> bool {
        self.turn.is_none_or(|turn| context.turns().renew(turn, until))
    }

    fn shut_gate(&self, queue: u64) {
        if let Some(gate) = &self.gate {
            gate.shut(queue);
        }
    }

    /// Until when it waits. As a first try, the first question of a fair lock is not cut short.
    pub(super) fn until_with(&self, plan: &Plan) -> Moment {
        if self.is_fair && !plan.has_place { Moment::LAST } else { self.until }
    }
}

/// What an acquisition knows of queues.
pub(super) struct Queueing {
    /// Its place, while all nodes are asked past the queue. In a box, for few have one, and every
    /// acquisition moves this.
    kept: Option<Box<Place>>,
    /// Nodes whose queue was of no use.
    avoided: NodeMask,
    /// The last try came from the queue and failed: others hold the key, and the queue does not
    /// know it.
    pub(super) was_refused: bool,
    /// It has waited in a queue.
    pub(super) has_waited: bool,
    /// No node has had a queue to offer since all nodes were asked.
    pub(super) has_found_none: bool,
    /// It is a writer, and readers were in its way.
    pub(super) has_met_readers: bool,
    /// What keeps readers out while a writer waits, once it does.
    gate: Option<Arc<Gate>>,
    /// Where it looks for free slots.
    pub(super) search: Search,
}

impl Queueing {
    pub(super) const NOT_YET: Self = Self {
        kept: None,
        avoided: NodeMask::NONE,
        was_refused: false,
        has_waited: false,
        has_found_none: false,
        has_met_readers: false,
        gate: None,
        search: Search::NOT_YET,
    };

    /// A place to wait in; `None` where no node has one to offer, or the last try came from there.
    pub(super) fn place(
        &mut self,
        leases: &Leases,
        resource: &Resource,
        ttl: Duration,
    ) -> Result<Option<Place>, Error> {
        if std::mem::take(&mut self.was_refused) {
            return Ok(None);
        }
        let place = match self.kept.take() {
            None => Place::new(leases, resource, ttl, self.avoided)?,
            Some(kept) => Some(*kept),
        };
        if place.is_none() {
            self.avoided = NodeMask::NONE; // after a pause all may be of use again
        }
        self.has_waited |= place.is_some();
        Ok(place)
    }

    /// All nodes are asked, and the place is kept meanwhile. A better node may be there by then.
    pub(super) fn keep(&mut self, place: Place) {
        (self.kept, self.avoided) = (Some(Box::new(place)), NodeMask::NONE);
    }

    /// The queue of this node is of no use for now.
    pub(super) fn avoid(&mut self, node: usize) {
        self.avoided = self.avoided.with(node);
    }

    /// Whether it has a place, while all nodes are asked.
    pub(super) fn has_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// Leaves the queue.
    pub(super) fn leave(&mut self) {
        self.kept = None;
    }

    /// The gate of its lock, if it may shut that: the same one each time.
    pub(super) fn gate(&mut self, leases: &Arc<Leases>, resource: &Resource) -> Option<Arc<Gate>> {
        let is_writer = resource.primitive.holders.is_one();
        let new = || Arc::new(Gate::new(leases.clone(), resource));
        is_writer.then(|| self.gate.get_or_insert_with(new).clone())
    }

    /// The acquisition ends, and the readers that it kept out may come.
    pub(super) fn open_gate(&mut self) {
        if let Some(gate) = self.gate.take() {
            gate.open();
        }
    }
}

/// A place in the queue.
pub(super) struct Place {
    pub(super) claim: Claim,
    pub(super) node: usize,
    /// It was there before the node was asked, so that no notice is missed.
    registration: Registration,
    pub(super) beats: u32,
    /// It was asked for again at once, with the script.
    pub(super) is_repeated: bool,
    /// Of one that wants slots, as soon as it waits for them.
    pub(super) waiter: Option<Waiter>,
}

impl Place {
    /// Asks for one, on the best node but for those avoided; `None` where there is none.
    fn new(
        leases: &Leases,
        resource: &Resource,
        ttl: Duration,
        avoided: NodeMask,
    ) -> Result<Option<Self>, Error> {
        let context = &leases.context;
        let Some(queue_node) = QueueNode::of(context, resource, avoided) else { return Ok(None) };
        let Some(key) = queue_node.resource.keys().first() else { return Ok(None) };
        let nonce = context.nodes.entropy().nonce();
        let node = queue_node.node;
        let registration = context.notices.register(&nonce, key, NodeMask::only(node));
        let now = context.nodes.clock().now();
        let claim = Claim::enqueue(context, resource.clone(), queue_node, (nonce, ttl), now)?;
        let (beats, is_repeated, waiter) = (0, false, None);
        Ok(Some(Self { claim, node, registration, beats, is_repeated, waiter }))
    }

    /// What one that waits there listens to.
    pub(super) fn listening(&self) -> (&Claim, &Registration) {
        (&self.claim, &self.registration)
    }

    /// Whether no node ranks higher by now.
    pub(super) fn is_at_best(&self, leases: &Leases, resource: &Resource) -> bool {
        let best = QueueNode::of(&leases.context, resource, NodeMask::NONE);
        best.is_none_or(|best| best.node == self.node)
    }

    /// The key was handed over. Whether others still wait is in the answer of the queue's node, and
    /// a release may come before that.
    fn note_handed_over(&self, context: &LeaseContext, now: Moment) {
        context.counters.note(Cause::HandedOver);
        context.contention.note(self.claim.resource.affinity(), now);
    }

    /// Asks how long the lock lives, and has the node tell when it changes.
    fn watch(&self, context: &LeaseContext) -> Result<Option<Election>, Error> {
        let key = self.claim.resource.keys().first();
        key.map(|key| watch::ask(context, self.node, key)).transpose()
    }
}

/// Waits in the queue, and asks all nodes when the key was handed over, or is free.
pub(super) async fn wait(
    leases: Arc<Leases>,
    mut place: Place,
    mut wait: Wait,
) -> Result<Ended, Error> {
    let context = &leases.context;
    let clock = context.nodes.clock();
    let mut plan = Plan::asked(clock.now());
    loop {
        let until = wait.until_with(&plan);
        let woken = attend(context, place.listening(), &plan, until).await?;
        let now = clock.now();
        match woken {
            Woken::Closed => return Ok(Ended::Over),
            Woken::HandedOver => {
                place.note_handed_over(context, now);
                break;
            }
            Woken::Changed => {
                context.counters.note(Cause::Changed);
                // What the lock had left to live is out of date, if the answer comes only now.
                (plan.watching, plan.has_changed) = (None, true);
                plan.ask_at(now);
            }
            Woken::Watched => {
                let left = plan.watching.take().and_then(|it| it.take_frame(place.node));
                plan.watched(left.and_then(|left| left.as_integer().ok()).unwrap_or(-1), now);
            }
            Woken::ByTime if now >= until => return Ok(Ended::Over),
            Woken::ByTime if plan.is_asked => return Ok(Ended::NoQueue(place.node)),
            Woken::ByTime if now < plan.ask => {
                plan.watch = Moment::NEVER;
                plan.watching = place.watch(context)?;
            }
            Woken::ByTime => {
                if !std::mem::take(&mut plan.has_changed) {
                    context.counters.note(Cause::ByTime);
                }
                let is_beat = plan.note_asked(now);
                place.claim.ask_again(now)?;
                place.beats += u32::from(is_beat);
                if is_beat && plan.is_first && place.beats % ASKS_ALL_EVERY == 0 {
                    return Ok(Ended::Past(place));
                }
            }
            Woken::Answered => match place.claim.queue_reply() {
                Some(Reply::Granted { .. }) => break,
                Some(Reply::Wait { left, is_heard, is_read }) => {
                    if !wait.renew_turn(context, plan.beat) {
                        return Ok(Ended::Overtaken);
                    }
                    wait.note_readers(is_read, place.claim.queue_name());
                    context.note_wait(&place.claim.resource, wait.untold.take(), now);
                    let is_told = context.nodes.tells_changes(place.node);
                    plan.wait(left, is_heard, (!is_told).then_some(wait.pause), now);
                }
                None if place.claim.lacks_queue_script() && !place.is_repeated => {
                    place.is_repeated = true;
                    place.claim.ask_again(now)?;
                }
                // A server that is busy for a moment, as with a snapshot, keeps its queue.
                None if place.claim.is_queue_late() && plan.may_be_late() => {
                    plan.ask_late(now);
                }
                None => return Ok(Ended::NoQueue(place.node)),
            },
        }
    }
    ask_all(&leases, place.claim, &wait).await
}

/// Asks all nodes; and where that which keeps the queue grants, and too few others do, asks those
/// again. It runs a script, and so often answers last.
pub(super) async fn ask_all(
    leases: &Arc<Leases>,
    mut claim: Claim,
    wait: &Wait,
) -> Result<Ended, Error> {
    let context = &leases.context;
    let clock = context.nodes.clock();
    let (mut sent, mut reasks, mut has_repeated) = (clock.now(), 0, false);
    // Of what is granted so much may be over before the rest is.
    let patience = sent.plus(claim.ttl() / 3);
    claim.ask_all_from_queue(sent)?;
    if wait.is_fenced {
        claim.ask_fence()?;
    }
    loop {
        let verdict = poll_fn(|cx| claim.election.poll_verdict(cx)).await;
        let now = clock.now();
        let may_repeat = verdict != Verdict::Won && !has_repeated && claim.is_granted_by_queue();
        if may_repeat && claim.do_others_lack_script() {
            (has_repeated, sent) = (true, now);
            claim.ask_others_again(now)?; // and brings it, at once: also without a wait
            continue;
        }
        if verdict != Verdict::Won && wait.has_met_readers {
            // They may be on the others alone, and no more of them shall come there. It has left
            // the queue, so those that stand there now came later.
            wait.shut_gate(NO_PLACE);
        }
        let is_worth_it = reasks < REASKS_MAX || wait.has_met_readers && now < patience;
        let may_reask = is_worth_it && claim.may_queue_grant() && now < wait.until;
        if verdict == Verdict::Won || !may_reask {
            return Ok(Ended::Asked { claim, verdict, sent });
        }
        let pause = REASK_AFTER.saturating_mul(1 << reasks.min(9)).min(HEARTBEAT);
        pause::plain(leases.clone(), pause.min(wait.until.since(now))).await;
        context.check_not_closed()?;
        if claim.is_granted_by_queue() {
            sent = clock.now();
            claim.ask_others_again(sent)?;
        }
        reasks += 1;
    }
}

/// What has ended a sleep.
pub(super) enum Woken {
    /// The node has answered that keeps the queue.
    Answered,
    /// The key was handed over.
    HandedOver,
    /// The key may have changed, or the node tells of no change any more.
    Changed,
    /// It is known how long the key lives.
    Watched,
    ByTime,
    /// The locker was shut down.
    Closed,
}

/// Sleeps until something is due, or comes.
pub(super) async fn attend(
    context: &LeaseContext,
    (claim, registration): (&Claim, &Registration),
    plan: &Plan,
    until: Moment,
) -> Result<Woken, Error> {
    let due = plan.ask.min(plan.watch).min(until);
    // A timer would come a millisecond later. An answer that is awaited comes first.
    let is_due = !plan.is_asked && due <= context.nodes.clock().now();
    let mut timer = context.nodes.sleep_until(due)?;
    let mut handed_over = pin!(registration.handed_over());
    let mut changed = pin!(registration.changed());
    let mut closed = pin!(context.closed());
    let woken = poll_fn(|cx| {
        if closed.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Woken::Closed);
        }
        if handed_over.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Woken::HandedOver);
        }
        if plan.is_asked {
            // A change that comes meanwhile is kept: the answer may be older.
            if claim.election.poll_verdict(cx).is_ready() {
                return Poll::Ready(Woken::Answered);
            }
        } else if changed.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Woken::Changed);
        }
        if plan.watching.as_ref().is_some_and(|it| it.poll_verdict(cx).is_ready()) {
            return Poll::Ready(Woken::Watched);
        }
        if is_due {
            return Poll::Ready(Woken::ByTime);
        }
        Pin::new(&mut timer).poll(cx).map(|()| Woken::ByTime)
    });
    Ok(woken.await)
}
