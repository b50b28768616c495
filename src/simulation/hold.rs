//! A guard in its holder's hand: what it is seen to say, and the work that is done under it.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use super::counts::Action;
use super::finality::Seen;
use super::handover;
use super::locker::owner;
use super::oracle::Grant;
use super::order::Had;
use super::places::Order;
use super::slots;
use super::task::ms;
use super::violation::Kind;
use super::worker::Worker;
use super::world::{Hub, World};
use crate::{Held, LockGuard, Loss};

/// A loss that follows a leap of the clocks is told so much later at most.
const TICK: u64 = 105;

/// A guard in its holder's hand. The oracle takes it for let go of when this is dropped, which must
/// be before the guard is.
pub(super) struct Hold {
    pub(super) hub: Arc<Hub>,
    pub(super) machine: usize,
    /// The guard's.
    pub(super) number: u64,
    pub(super) keys: Vec<String>,
    pub(super) value: String,
    pub(super) ttl: u64,
    pub(super) held: Held,
    /// Its guard is dropped next, and no one has asked to let go of the lock.
    pub(super) keeps_delay: AtomicBool,
}

impl Drop for Hold {
    fn drop(&mut self) {
        let is_delayed = self.keeps_delay.load(Ordering::SeqCst)
            && matches!(self.held.looks_lost(), Some(Loss::Expired | Loss::Revoked));
        // A lock that a shutdown has left may be another's, who has adopted it.
        self.hub.with(|world| match is_delayed && !world.oracle.is_left(&self.value) {
            true => world.oracle.end_delayed(world.nanos(), self.number),
            false => world.oracle.end(world.nanos(), self.number),
        });
    }
}

impl Hold {
    /// How long the machine has been at work.
    fn lived(&self) -> u64 {
        self.hub.with(|world| {
            let now = world.now();
            now - world.machines[self.machine].stood_still(now)
        })
    }

    /// Whether it is a read lock.
    pub(super) fn reads(&self) -> bool {
        is_read_lock(&self.held)
    }

    /// Whether it has slots.
    pub(super) fn has_slots(&self) -> bool {
        !self.held.slots().is_empty()
    }

    fn is_held(&self) -> bool {
        self.held.looks_left().is_some()
    }

    /// Does work that must take no step without the lock.
    pub(super) async fn guarded<W: Future<Output = ()> + Unpin>(&self, mut work: W) {
        poll_fn(|cx| {
            if !self.is_held() {
                let what = format!("guard {} was lost and its work went on", self.number);
                self.hub.with(|world| world.oracle.violate(Kind::Unprotected, what));
            }
            Pin::new(&mut work).poll(cx)
        })
        .await;
    }

    /// A lock is not valid any more, and its holder has not been told.
    fn check_lost(&self, late: u64) {
        self.hub.with(|world| {
            if late > TICK || !world.oracle.has_leapt(self.machine) {
                let what = format!("guard {} was lost, and its holder was not told", self.number);
                world.oracle.violate(Kind::LossNotTold, what);
            }
        });
    }
}

fn is_read_lock(held: &Held) -> bool {
    held.looks_token().as_str().starts_with("read:")
}

/// What tells a holder of the loss.
struct Watch<'a> {
    hold: &'a Hold,
    lost: Pin<Box<dyn Future<Output = ()> + Send + 'a>>,
    seen: Seen,
    #[cfg(feature = "tokio-util")]
    token: Option<tokio_util::sync::CancellationToken>,
    /// The lock is not valid since then.
    invalid_since: Option<u64>,
}

impl<'a> Watch<'a> {
    fn new(guard: &'a LockGuard, hold: &'a Hold, has_token: bool) -> Self {
        let seen = Seen { lost: false, token: None, invalid: false };
        #[cfg(feature = "tokio-util")]
        let token = has_token.then(|| guard.cancellation());
        #[cfg(not(feature = "tokio-util"))]
        let _ = has_token; // there are none
        Self {
            hold,
            lost: Box::pin(async {
                guard.lost().await;
            }),
            seen,
            #[cfg(feature = "tokio-util")]
            token,
            invalid_since: None,
        }
    }

    /// `true`: it has just been told by `lost()`.
    fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        let news = !self.seen.lost && self.lost.as_mut().poll(cx).is_ready();
        self.seen.lost |= news;
        if news {
            self.hold.hub.with(|world| world.count(Action::LossTold));
        }
        self.look();
        news
    }

    /// Waits for so long, or until `lost()` tells.
    async fn wait(&mut self, millis: u64) {
        let mut pause = pin!(self.hold.hub.sleep(millis));
        poll_fn(|cx| match self.poll(cx) {
            true => Poll::Ready(()),
            false => pause.as_mut().poll(cx),
        })
        .await;
        self.look();
    }

    /// Looks at all signs, and has the oracle compare them.
    fn look(&mut self) {
        let hold = self.hold;
        #[cfg(feature = "tokio-util")]
        if let Some(token) = &self.token {
            let is_cancelled = token.is_cancelled();
            if is_cancelled && self.seen.token != Some(true) {
                hold.hub.with(|world| world.count(Action::TokenCancelled));
            }
            self.seen.token = Some(is_cancelled);
        }
        self.seen.invalid = !hold.held.looks_valid();
        let (at, seen) = (hold.lived(), self.seen);
        hold.hub.with(|world| {
            let slack = if world.oracle.has_leapt(hold.machine) { TICK } else { 0 };
            world.oracle.observe(hold.number, at, seen, slack);
        });
        if seen.invalid && !seen.lost {
            let since = *self.invalid_since.get_or_insert(at);
            hold.check_lost(at - since);
        }
    }
}

/// Counts a guard's slots, if these are slots, and serves those that wait for some of that lock.
fn count_slots(world: &mut World, guard: u64, (slot, are_several): (&str, bool), now: u64) {
    let Some(key) = slots::key_of(slot) else { return };
    world.waiters.served(&slots::slots_of(key));
    world.count(Action::SlotTaken);
    if are_several {
        world.count(Action::SlotsTaken);
    }
    if world.oracle.are_beside(guard, slot, now) {
        world.count(Action::SlotShared);
    }
}

impl Worker {
    /// Enters a guard that was given for this lock: from here on it is held.
    pub(super) fn enter(&self, held: Held, locker: u64, keys: &[String], ttl: u64) -> Hold {
        let (machine, token) = (self.machine, held.looks_token());
        let number = self.hub.with(|world| {
            let (now, rate) = (world.nanos(), world.machines[machine].rate);
            let owner = &owner(machine, locker);
            let (copy, value) = (held.clone(), token.value());
            let reads = is_read_lock(&held);
            let delay = self.delay;
            let grant = Grant { machine, keys, value, held: copy, rate, reads, delay, owner };
            if !reads && world.oracle.is_handed_on(&grant) {
                world.count(Action::HandedOn);
            }
            let number = world.oracle.acquire(now, grant);
            if keys.len() > 1 && held.slots().is_empty() {
                world.count(Action::SeveralTaken);
            }
            keys.iter().for_each(|key| world.waiters.served(key));
            if self.order == Order::Strict {
                world.count(Action::InOrder);
            }
            let (order, asked) = (self.order, self.asked);
            world.look_at_order(&Had { key: &keys[0], value, machine, order, asked, reads });
            if let Some(fence) = held.fence() {
                let (fence, times) = (fence.number(), (self.asked, now));
                let begin = |key: &String| world.protected.begin(key, fence, times);
                let wrong: Vec<_> = keys.iter().filter_map(begin).collect();
                wrong.into_iter().for_each(|wrong| world.oracle.add(wrong));
            }
            world.look();
            if reads {
                world.count(Action::Read);
            }
            if reads && world.oracle.are_several(&keys[0], now) {
                world.count(Action::ReadTogether);
            }
            if let [slot, more @ ..] = keys {
                count_slots(world, number, (slot, !more.is_empty()), now);
            }
            number
        });
        let (hub, keys, value) = (self.hub.clone(), keys.to_vec(), token.value().to_owned());
        let keeps_delay = AtomicBool::new(false);
        Hold { hub, machine, number, keys, value, ttl, held, keeps_delay }
    }

    /// Works for so long, or until the lock is lost; some go on for a while then, some extend the
    /// lock themselves, and some give its token away.
    pub(super) async fn work(&mut self, guard: &LockGuard, hold: &Hold, work: u64) {
        let end = self.hub.now() + work;
        let careless = if self.chance.percent(30) { self.chance.between(0, 300) } else { 0 };
        let mut watch = Watch::new(guard, hold, self.chance.percent(50));
        let handed_alive = self.hub.with(|world| world.plan.actors.handed_alive);
        let mut is_handed = false;
        // Some let go of a lock when they are asked to.
        let mut heeds = None;
        // Some extend a lock when it is all but over.
        let mut brink = self.chance.percent(25).then(|| self.chance.between(3, 60));
        loop {
            let now = self.hub.now();
            let left = u64::try_from(hold.held.remaining().as_millis()).unwrap_or(0);
            let next = left + 1 - brink.filter(|brink| *brink <= left).unwrap_or(0);
            let step = end.saturating_sub(now).min(next).clamp(1, 50);
            watch.wait(step).await;
            let (now, told) = (self.hub.now(), watch.seen.lost);
            self.write(hold);
            if now >= end + if told { careless } else { 0 } || (told && careless == 0) {
                return;
            }
            if hold.held.is_revoked() && *heeds.get_or_insert_with(|| self.chance.percent(50)) {
                self.count(Action::RevocationHeeded);
                return;
            }
            if !told && !is_handed && self.chance.percent(handed_alive) {
                is_handed = true;
                self.count(Action::HandedAlive);
                handover::send(self, (&hold.keys[0], &guard.owner_token(), hold.ttl));
            }
            let left = u64::try_from(hold.held.remaining().as_millis()).unwrap_or(0);
            let is_due = brink.take_if(|brink| left <= *brink).is_some();
            if !told && (is_due || self.chance.percent(3)) {
                self.extend(guard, &mut watch).await;
            }
        }
    }

    /// Writes to what the lock protects, whatever has become of the lock meanwhile: who has looked
    /// at it may be stopped before it writes.
    fn write(&self, hold: &Hold) {
        let Some(fence) = hold.held.fence() else { return };
        self.hub.with(|world| {
            let write = |key: &String| world.protected.write(key, fence.number());
            let wrong: Vec<_> = hold.keys.iter().filter_map(write).collect();
            wrong.into_iter().for_each(|wrong| world.oracle.add(wrong));
        });
    }

    /// Extends a lock, while its loss may be told.
    async fn extend(&mut self, guard: &LockGuard, watch: &mut Watch<'_>) {
        let hold = watch.hold;
        let mut polls = self.cuts(4);
        let mut extension = pin!(guard.extend(ms(hold.ttl)));
        let extended = poll_fn(|cx| {
            // What it tells before the extension is done is final.
            watch.poll(cx);
            if polls == Some(0) {
                return Poll::Ready(None);
            }
            polls = polls.map(|polls| polls - 1);
            extension.as_mut().poll(cx).map(Some)
        })
        .await;
        self.count(match &extended {
            None => Action::ExtensionDropped,
            Some(Ok(())) => Action::Extended,
            Some(Err(_)) => Action::ExtensionFailed,
        });
        if let Some(Ok(())) = &extended {
            self.hub.with(|world| world.oracle.extended(hold.number));
        }
        let ok = extended.map(|extended| extended.is_ok());
        self.hub.with(|world| world.tell(format_args!("guard {} extended: {ok:?}", hold.number)));
    }

    /// Works for so long under `protect`, which drops the work when the lock is lost.
    pub(super) async fn protect(&mut self, guard: &LockGuard, hold: &Hold, work: u64) {
        let sleep = pin!(self.hub.sleep(work));
        let mut protected = pin!(guard.protect(hold.guarded(sleep)));
        let mut invalid_since = None;
        let done = loop {
            let mut pause = pin!(self.hub.sleep(50));
            let done = poll_fn(|cx| match protected.as_mut().poll(cx) {
                Poll::Ready(done) => Poll::Ready(Some(done.is_ok())),
                Poll::Pending => pause.as_mut().poll(cx).map(|()| None),
            })
            .await;
            if let Some(done) = done {
                break done;
            }
            if !hold.is_held() {
                let lived = hold.lived();
                hold.check_lost(lived - *invalid_since.get_or_insert(lived));
            }
        };
        self.count(if done { Action::Protected } else { Action::ProtectedLost });
        self.tell(format_args!("worked under guard {}: {done}", hold.number));
    }
}
