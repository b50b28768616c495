//! Waiting for another process, in the queue that one node keeps for the key.
//!
//! ```text
//!  ask the pivot ──it is to wait──▶ handed over, or its turn ──▶ ask all nodes ──▶ a verdict
//!     ▲  ▲  └──granted──────────────────────────────────────────────▲
//!     │  └──────── a beat, the end of the key's life, or a change ─┤
//!     └──── watching: it is the first, and the holder may be deaf ──┘
//! ```
//!
//! The pivot (see [`pivot`](super::pivot)) hands the key over when it is released, and has this
//! process called. Neither that nor the pivot's own grant counts: what counts is the verdict of all
//! nodes, which are asked then, the pivot among them. An answer that is unknown ends the place in
//! the queue, for a value may stand in it that nothing is known of; the next one has another.
//!
//! The first in the queue does not rely on the holder, which may know nothing of queues, or may not
//! have heard in time. It watches the key: a command that asks how long that lives has the server
//! tell of the next change. It was asked before, so no change is missed: what came before the watch
//! is seen by its answer. And where the key just ends, a timer is there: servers tell late of that.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::calls::Call;
use super::claim::{Claim, Reply};
use super::context::LeaseContext;
use super::counters::Cause;
use super::key::Resource;
use super::leases::Leases;
use super::pause;
use super::pivot::Pivot;
use super::turns::Turn;
use crate::clock::Moment;
use crate::error::Error;
use crate::quorum::Election;

/// How often one that waits says that it lives. A third of what `turn_ask.lua` gives it.
/// No pause is longer behind a place that was lost.
pub(super) const BEAT: Duration = Duration::from_millis(500);

/// After so many beats all nodes are asked past the queue: what stands on the pivot alone, as after
/// the crash of one that was asking, keeps no majority from granting.
const BEATS: u32 = 8;

/// How often the pivot is asked at most between two beats. A lock that others change all the time,
/// and never let go of, is asked for no more often than that.
const ASKS_MAX: u32 = 16;

/// How long the holder has to hand the lock over, once it was told, before it is watched: longer
/// than most locks are held that are wanted by many.
const WATCHED_AFTER: Duration = Duration::from_millis(10);

/// Servers expire keys by the millisecond, and timers come by it.
const MILLISECOND: Duration = Duration::from_millis(1);

/// What has come of waiting.
pub(super) enum Ended {
    /// All nodes have been asked.
    Asked(Claim),
    /// They are to be asked past the queue; the place there is kept.
    Past(Place),
    /// The node has no queue to offer, or is silent.
    NoQueue,
    /// Another of this process has taken the turn.
    Overtaken,
    /// The wait is over, or the locker was shut down.
    Over,
}

/// A place in the queue.
pub(super) struct Place {
    claim: Claim,
    node: usize,
    /// It was there before the node was asked, so that no call is missed.
    call: Call,
    beats: u32,
    /// It was asked for again at once, with the script.
    is_repeated: bool,
}

impl Place {
    /// Asks for one, on the best node but for so many; `None` where there is none.
    pub(super) fn new(
        leases: &Leases,
        resource: &Resource,
        ttl: Duration,
        beyond: usize,
    ) -> Result<Option<Self>, Error> {
        let context = &leases.context;
        let Some(pivot) = Pivot::of(context, resource, beyond) else { return Ok(None) };
        let Some(key) = pivot.resource.keys().first() else { return Ok(None) };
        let nonce = context.nodes.entropy().nonce();
        let (node, call) = (pivot.node, context.calls.wait(&nonce, key));
        let now = context.nodes.clock().now();
        let claim = Claim::line_up(context, resource.clone(), pivot, (nonce, ttl), now)?;
        Ok(Some(Self { claim, node, call, beats: 0, is_repeated: false }))
    }

    /// Asks how long the lock lives, and has the node tell when it changes.
    fn watch(&self, context: &LeaseContext) -> Result<Option<Election>, Error> {
        let key = self.claim.resource.keys().first();
        key.map(|key| pause::watch(context, self.node, key)).transpose()
    }
}

/// What is awaited, and what is done next, and when.
struct Plan {
    /// The pivot's answer is awaited.
    is_asked: bool,
    /// When the pivot is asked again; or counts as silent, if it was.
    ask: Moment,
    /// When the lock is watched.
    watch: Moment,
    /// The answer is awaited that says how long it lives.
    watching: Option<Election>,
    /// How often the pivot was asked since the last beat.
    asks: u32,
    beat: Moment,
}

impl Plan {
    /// The pivot has just been asked.
    fn asked(now: Moment) -> Self {
        let beat = now.plus(BEAT);
        Self { is_asked: true, ask: beat, watch: Moment::NEVER, watching: None, asks: 1, beat }
    }

    /// The lock may be free: the pivot is asked, unless that was done too often.
    fn ask_at(&mut self, at: Moment) {
        self.ask = if self.asks < ASKS_MAX { at.min(self.beat) } else { self.beat };
    }

    /// The pivot is asked. Whether that is a beat.
    fn note_asked(&mut self, now: Moment) -> bool {
        let is_beat = now >= self.beat;
        if is_beat {
            (self.beat, self.asks) = (now.plus(BEAT), 0);
        }
        (self.is_asked, self.ask, self.watch) = (true, now.plus(BEAT), Moment::NEVER);
        // Its answer is the newer one. What the lock had left to live says nothing of when it comes.
        self.watching = None;
        self.asks += 1;
        is_beat
    }

    /// It is to wait, says the pivot. Where the lock cannot be watched, it is asked for again after
    /// this pause if the holder has not heard.
    fn wait(
        &mut self,
        left: Option<Duration>,
        is_heard: bool,
        poll: Option<Duration>,
        now: Moment,
    ) {
        self.is_asked = false;
        let expiry = left.map_or(self.beat, |left| now.plus(left + MILLISECOND));
        self.ask_at(expiry);
        match poll {
            None if !is_heard => self.watch = now,
            None if left.is_some() => self.watch = now.plus(WATCHED_AFTER),
            Some(pause) if !is_heard => self.ask_at(expiry.min(now.plus(pause.max(MILLISECOND)))),
            _ => {}
        }
    }

    /// The watched lock lives for so many milliseconds; −1: for ever, −2: it is free.
    fn watched(&mut self, millis: i64, now: Moment) {
        match u64::try_from(millis) {
            Ok(millis) => self.ask_at(now.plus(Duration::from_millis(millis) + MILLISECOND)),
            Err(_) if millis == -2 => self.ask_at(now),
            Err(_) => {}
        }
    }
}

/// Waits in the queue for who has this turn, but not behind `until`. Where no one tells when the
/// holder lets go, the pivot is asked after such pauses.
pub(super) async fn wait(
    leases: Arc<Leases>,
    mut place: Place,
    turn: Turn,
    until: Moment,
    pause: Duration,
) -> Result<Ended, Error> {
    let context = &leases.context;
    let clock = context.nodes.clock();
    let mut plan = Plan::asked(clock.now());
    loop {
        let woken = attend(context, &place, &plan, until).await?;
        let now = clock.now();
        match woken {
            Woken::Closed => return Ok(Ended::Over),
            Woken::HandedOver => {
                context.counters.note(Cause::HandedOver);
                break;
            }
            Woken::Changed => {
                context.counters.note(Cause::Changed);
                // What the lock had left to live is out of date, if the answer comes only now.
                plan.watching = None;
                plan.ask_at(now);
            }
            Woken::Watched => {
                let left = plan.watching.take().and_then(|it| it.take_frame(place.node));
                plan.watched(left.and_then(|left| left.as_integer().ok()).unwrap_or(-1), now);
            }
            Woken::ByTime if now >= until => return Ok(Ended::Over),
            Woken::ByTime if plan.is_asked => return Ok(Ended::NoQueue),
            Woken::ByTime if now < plan.ask => {
                plan.watch = Moment::NEVER;
                plan.watching = place.watch(context)?;
            }
            Woken::ByTime => {
                context.counters.note(Cause::ByTime);
                let is_beat = plan.note_asked(now);
                place.claim.ask_again(now)?;
                place.beats += u32::from(is_beat);
                if is_beat && place.beats % BEATS == 0 {
                    return Ok(Ended::Past(place));
                }
            }
            Woken::Answered => match place.claim.reply_in_turn() {
                Some(Reply::Granted { .. }) => break,
                Some(Reply::Wait { left, is_heard }) => {
                    if !context.turns().is_alive(turn, plan.beat) {
                        return Ok(Ended::Overtaken);
                    }
                    let is_told = context.nodes.tells_changes(place.node);
                    plan.wait(left, is_heard, (!is_told).then_some(pause), now);
                }
                None if place.claim.lacks_script_of_turn() && !place.is_repeated => {
                    place.is_repeated = true;
                    place.claim.ask_again(now)?;
                }
                None => return Ok(Ended::NoQueue),
            },
        }
    }
    place.claim.ask_all_in_turn(clock.now())?;
    Ok(Ended::Asked(place.claim))
}

/// What has ended a sleep.
enum Woken {
    /// The node has answered that keeps the queue.
    Answered,
    /// The key was handed over.
    HandedOver,
    /// The key may have changed.
    Changed,
    /// It is known how long the key lives.
    Watched,
    ByTime,
    /// The locker was shut down.
    Closed,
}

/// Sleeps until something is due, or comes.
async fn attend(
    context: &LeaseContext,
    place: &Place,
    plan: &Plan,
    until: Moment,
) -> Result<Woken, Error> {
    let mut timer = context.nodes.sleep_until(plan.ask.min(plan.watch).min(until))?;
    let mut handed_over = pin!(place.call.handed_over());
    let mut changed = pin!(place.call.changed());
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
            if place.claim.election.poll_verdict(cx).is_ready() {
                return Poll::Ready(Woken::Answered);
            }
        } else if changed.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Woken::Changed);
        }
        if plan.watching.as_ref().is_some_and(|it| it.poll_verdict(cx).is_ready()) {
            return Poll::Ready(Woken::Watched);
        }
        Pin::new(&mut timer).poll(cx).map(|()| Woken::ByTime)
    });
    Ok(woken.await)
}
