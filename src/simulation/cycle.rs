//! What a worker does again and again: it takes a lock and lets go of it, in every way there is.

use std::future::IntoFuture;
use std::pin::pin;
use std::sync::atomic::Ordering::SeqCst;

use super::counts::Action;
use super::handover;
use super::hold::Hold;
use super::places::Order;
use super::plan::Waits;
use super::slots;
use super::task::{cut, ms};
use super::violation::Kind;
use super::waiting::Waiting;
use super::worker::{Acquiring, Asking, Worker};
use crate::{Error, Extend, Held, LockGuard, LockRequest, Locker, OwnerToken, Release};

/// What a wait may take beyond what was asked for: a last try, and a last look at the holder.
const LAST_TRY: u64 = 1_500;

impl Worker {
    pub(super) async fn run(mut self) {
        let plan = self.hub.with(|world| world.plan.clone());
        while !self.hub.with(|world| world.is_over) {
            // Never none: who tries without success, again and again, must not stop time by that.
            let pause = self.chance.between(1, plan.think.max(1));
            self.hub.sleep(pause).await;
            let keys = plan.draw_keys(&mut self.chance, self.takes_several);
            let ttl = self.chance.pick(&plan.ttls);
            let Some((locker, number)) = self.locker() else { continue };
            if self.chance.percent(plan.actors.guarded) {
                self.run_under(&locker, number, &keys, ttl).await;
                continue;
            }
            let acquiring = Acquiring::begin(&self, number);
            let acquired = self.acquire(&locker, &keys, ttl).await;
            drop(acquiring);
            let Some(guard) = acquired else { continue };
            let keys = slots::keys_of(&keys, &guard.slots());
            self.hold(guard, number, &keys, ttl).await;
        }
    }

    /// A lock is asked for, in some way; with it, how long it is waited for.
    fn request(
        &mut self,
        locker: &Locker,
        keys: &[String],
        ttl: u64,
    ) -> (LockRequest, Option<u64>) {
        // Who stands in a queue waits for as long as it takes: `None`.
        let (queues, waits) = self.hub.with(|world| (world.plan.queues, world.plan.waits));
        let wait = match queues && self.chance.percent(50) {
            true => None,
            false if waits == Waits::Short => Some(self.chance.pick(&[0, 50, 400, 1_200])),
            false => Some(self.chance.pick(&[400, 2_000, 4_000, 6_000])),
        };
        let are_alone = waits == Waits::Alone && self.hub.with(|world| world.plan.clients) > 1;
        // Of two that are alone, each waits for the other's release: who waits behind it hears of
        // an end by time at its next beat.
        let is_off = self.chance.percent(50) && !are_alone;
        let extend = if is_off { Extend::Off } else { Extend::Forever };
        let mut is_plain = false;
        let request = if self.takes_several {
            locker.lock_all(keys)
        } else if let Some((count, weight)) = self.takes_slots() {
            locker.slots(&keys[0], count).acquire_many(weight)
        } else if self.reads() {
            locker.read(&keys[0])
        } else {
            is_plain = true;
            locker.lock(&keys[0])
        };
        let request =
            request.ttl(ms(ttl)).auto_extend(extend).unavailable_wait(std::time::Duration::MAX);
        self.delay = self.draw_delay(ttl);
        let request = request.lock_delay(ms(self.delay));
        let is_fair = wait != Some(0) && !self.takes_several && self.is_fair();
        let request = if is_fair { request.fair() } else { request };
        let is_strict = is_plain && wait != Some(0) && self.is_strict();
        let request = if is_strict { request.fair_strict() } else { request };
        self.order = Order::of(is_fair, is_strict);
        let request = match wait {
            Some(wait) => request.wait(ms(wait)),
            None => request.wait_forever(),
        };
        self.asked = self.hub.with(|world| world.nanos());
        // In nanoseconds, and by a clock that may run fast.
        let until = |wait: u64| self.asked + wait * 990_000;
        self.asks_until = wait.map_or(u64::MAX, until);
        self.tell(format_args!("asks for {}, ttl {ttl}", keys.join(", ")));
        (request, wait)
    }

    /// For how long others are to stay out behind the next lock's lease.
    fn draw_delay(&mut self, ttl: u64) -> u64 {
        let (share, longest) = self.hub.with(|world| (world.plan.delayed, world.plan.longest_ttl));
        if share == 0 || !self.chance.percent(share) {
            return 0;
        }
        let room = longest.map_or(u64::MAX, |longest| longest.saturating_sub(ttl));
        self.chance.pick(&[20, 200, 1_000]).min(room)
    }

    fn is_fair(&mut self) -> bool {
        let share = self.hub.with(|world| world.plan.fair);
        share > 0 && self.chance.percent(share)
    }

    fn is_strict(&mut self) -> bool {
        let share = self.hub.with(|world| world.plan.strict);
        share > 0 && self.chance.percent(share)
    }

    /// Whether the next lock is to be some of a key's slots: how many it has, and how many of them.
    /// Who comes from a newer deployment knows of one more.
    fn takes_slots(&mut self) -> Option<(u16, u16)> {
        let (slots, share, waits) =
            self.hub.with(|world| (world.plan.slots, world.plan.slotted, world.plan.waits));
        self.asks_for_slots = slots > 0 && self.chance.percent(share);
        self.asks_for_slots.then(|| {
            let is_newer = waits != Waits::Alone && self.chance.percent(10);
            let weight = self.chance.pick(&[1, 1, 2]);
            (slots + u16::from(is_newer), weight.min(slots))
        })
    }

    /// Whether the next lock is to be a read lock.
    fn reads(&mut self) -> bool {
        let share = self.hub.with(|world| world.plan.readers);
        // Where there are none, nothing is drawn.
        share > 0 && self.chance.percent(share)
    }

    /// Asks for a lock, and may give up before there is an answer.
    async fn acquire(&mut self, locker: &Locker, keys: &[String], ttl: u64) -> Option<LockGuard> {
        let (request, wait) = self.request(locker, keys, ttl);
        let are_long = self.hub.with(|world| world.plan.waits == Waits::Long);
        let (polls, millis) = if are_long { (40, 2_500) } else { (5, 60) };
        let polls = self.chance.percent(15).then(|| self.chance.between(0, polls));
        let patience = self.chance.percent(15).then(|| self.chance.between(0, millis));
        let waits_for = match self.asks_for_slots {
            true => slots::slots_of(&keys[0]),
            false => keys[0].clone(),
        };
        let asking = (!self.takes_several).then(|| Asking::begin(self, &keys[0]));
        let waiting = (!self.takes_several).then(|| Waiting::begin(self, &waits_for));
        let (began, stood) = self.hub.with(|world| {
            let now = world.now();
            (now, world.machines[self.machine].stood_still(now))
        });
        let outcome = cut(&self.hub, (polls, patience), request.into_future()).await;
        drop((waiting, asking));
        if are_long && outcome.is_none() {
            self.count(Action::WaiterDropped);
        }
        self.hub.with(|world| {
            let now = world.now();
            let stood = world.machines[self.machine].stood_still(now) - stood;
            let waited = now - began - stood;
            let number = self.number;
            if let Some(wait) = wait.filter(|wait| waited > wait + LAST_TRY) {
                let what = format!("w{number} asked for {wait} ms and waited {waited} ms");
                world.oracle.violate(Kind::LongWait, what);
            }
            match &outcome {
                None => world.tell(format_args!("w{number} gives up")),
                Some(Ok(_)) => world.tell(format_args!("w{number} has {}", keys.join(", "))),
                Some(Err(error)) => world.tell(format_args!("w{number} failed: {error}")),
            }
        });
        outcome?.ok()
    }

    /// How long it works with a lock.
    fn work_time(&mut self, ttl: u64) -> u64 {
        match self.chance.below(5) {
            // When all is over, those who queue get their turns soon.
            _ if self.is_in_haste() => 0,
            0 => 0,
            1 => self.chance.between(0, 20),
            2 => self.chance.between(0, ttl.min(2_000)),
            3 => self.chance.between(0, (2 * ttl).min(3_000)),
            // Until it is lost, where nothing extends it.
            _ => (ttl + 100).min(2_000),
        }
    }

    fn is_in_haste(&self) -> bool {
        self.hub.with(|world| world.plan.is_patient() && world.is_over)
    }

    /// Takes a lock for some work, and may give up before it is done.
    async fn run_under(&mut self, locker: &Locker, number: u64, keys: &[String], ttl: u64) {
        let (request, _) = self.request(locker, keys, ttl);
        let cuts = (self.cuts(12), self.chance.percent(10).then(|| self.chance.between(0, 200)));
        let work = self.work_time(ttl);
        let this = &*self;
        let ran = request.run(|held| async move {
            let keys = slots::keys_of(keys, held.slots());
            let hold = this.enter(held, number, &keys, ttl);
            hold.keeps_delay.store(true, SeqCst);
            let mut sleep = pin!(this.hub.sleep(work));
            hold.guarded(sleep.as_mut()).await;
            hold.keeps_delay.store(false, SeqCst);
            drop(hold);
            Ok::<_, Error>(())
        });
        let acquiring = Acquiring::begin(this, number);
        let asking = (!self.takes_several).then(|| Asking::begin(this, &keys[0]));
        let outcome = cut(&self.hub, cuts, ran).await;
        drop((acquiring, asking));
        self.count(match &outcome {
            None => Action::RunDropped,
            Some(Err(error)) if error.is_lost() => Action::RunLost,
            Some(Err(_)) => Action::RunFailed,
            Some(Ok(())) => Action::Ran,
        });
        let (keys, ran) = (keys.join(", "), outcome.map(|ran| ran.is_ok()));
        self.tell(format_args!("ran under {keys}: {ran:?}"));
    }

    /// Has the lock, and lets go of it in some way.
    pub(super) async fn hold(&mut self, guard: LockGuard, locker: u64, keys: &[String], ttl: u64) {
        let hold = self.enter(Held::new(&guard), locker, keys, ttl);
        let guard = self.change_handles(guard, &hold).await;
        let work = self.work_time(ttl);
        let actors = self.hub.with(|world| world.plan.actors.clone());
        if self.chance.percent(actors.guarded) {
            self.protect(&guard, &hold, work).await;
        } else {
            self.work(&guard, &hold, work).await;
        }
        let (number, value) = (hold.number, hold.value.clone());
        if self.downgrades(&hold) {
            drop(hold);
            return Box::pin(self.downgrade(guard, locker, keys, ttl)).await;
        }
        self.tell(format_args!("lets go of {}", keys.join(", ")));
        let in_haste = self.is_in_haste();
        let is_handed = self.chance.percent(actors.handed) && !in_haste;
        let end = if in_haste { 0 } else { self.chance.below(10) };
        hold.keeps_delay.store(!is_handed && (5..=8).contains(&end), SeqCst);
        drop(hold); // before its guard
        match end {
            _ if is_handed => {
                let token = self.forget(guard, &value);
                handover::send(self, (&keys[0], &token, ttl));
            }
            0..=4 => self.release(guard, number, locker, &value).await,
            5..=8 => drop(guard),
            _ if self.hub.with(|world| world.plan.waits == Waits::Alone) => drop(guard),
            _ => drop(self.forget(guard, &value)),
        }
    }

    /// Whether a lock is to become a read lock.
    fn downgrades(&mut self, hold: &Hold) -> bool {
        let share = self.hub.with(|world| world.plan.readers);
        let is_writer = !hold.reads() && !hold.has_slots();
        share > 0 && !self.takes_several && is_writer && self.chance.percent(30)
    }

    /// Makes a read lock of a lock, works with that, and lets go of it.
    async fn downgrade(&mut self, guard: LockGuard, locker: u64, keys: &[String], ttl: u64) {
        let polls = self.cuts(3);
        let outcome = cut(&self.hub, (polls, None), guard.downgrade()).await;
        self.count(match &outcome {
            None => Action::DowngradeDropped,
            Some(Err(_)) => Action::DowngradeFailed,
            Some(Ok(_)) => Action::Downgraded,
        });
        self.tell(format_args!("downgraded: {:?}", outcome.as_ref().map(Result::is_ok)));
        if let Some(Ok(guard)) = outcome {
            self.hold(guard, locker, keys, ttl).await;
        }
    }

    fn forget(&self, guard: LockGuard, value: &str) -> OwnerToken {
        // The guard's lock may be the shutdown's by now, which has left or released it.
        self.hub.with(|world| world.oracle.leave_lock(value));
        guard.forget()
    }

    async fn release(&mut self, guard: LockGuard, number: u64, locker: u64, value: &str) {
        let polls = self.cuts(3);
        self.hub.with(|world| world.oracle.releasing(value));
        let outcome = cut(&self.hub, (polls, None), guard.release()).await;
        let Some(released) = outcome else {
            self.count(Action::ReleaseDropped);
            return self.hub.with(|world| world.oracle.abandon_release(value));
        };
        let what = match &released {
            Ok(Release::Unknown(_)) => "unknown".into(),
            Ok(release) => format!("{release:?}"),
            Err(error) => error.to_string(),
        };
        self.tell(format_args!("released: {what}"));
        self.hub.with(|world| {
            let is_closed = world.machines[self.machine].has_closed(locker);
            match &released {
                // While there has been no fault, a client that asks is told.
                Ok(Release::Unknown(_)) | Err(_) if world.must_answer() && !is_closed => {
                    let what = format!("the release of guard {number}: {what}, without a fault");
                    world.oracle.violate(Kind::FalseRelease, what);
                }
                Ok(release) => world.oracle.released(number, value, release),
                Err(_) => world.oracle.abandon_release(value),
            }
        });
    }
}
