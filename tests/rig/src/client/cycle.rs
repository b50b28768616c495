//! One cycle: a lock is asked for in one of the ways there are, worked under, and given up in one
//! of the ways there are. Chance decides, by the seed.

use std::sync::Arc;
use std::time::Duration;

use quorlock::{Error, Extend, Held, LockGuard, LockRequest, Locker, OnLoss, Release};
use tokio::time::{sleep, timeout};

use super::lease::{Ending, Lease, begin, end, see, tell, tell_release, work};
use super::{Journal, Stop, handover, latch, revoking, several};
use crate::args::ClientArgs;
use crate::clock;
use crate::history::EXPIRED;
use crate::line::Line;
use crate::random::Random;

/// Keys with a long life, where what is left behind would stay and be seen.
const LONG_KEYS: u64 = 64;
const LONG_TTL: Duration = Duration::from_secs(60);

/// For how long others are to stay out of a lock with a lock-delay that has expired.
const DELAY: Duration = Duration::from_millis(300);

/// What is asked for of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Lock,
    Read,
    /// So many slots at once.
    Slots(u16),
}

/// One task of a client.
pub(super) struct Worker {
    args: Arc<ClientArgs>,
    locker: Locker,
    journal: Journal,
    stop: Stop,
    random: Random,
}

impl Worker {
    pub(super) fn new(
        args: Arc<ClientArgs>,
        locker: Locker,
        journal: Journal,
        stop: Stop,
        task: u64,
    ) -> Self {
        let random = Random::new(args.seed, 1_000 * (1 + args.slot as u64) + task);
        Self { args, locker, journal, stop, random }
    }

    /// Cycles until told to stop, at this task's share of the client's rate.
    pub(super) async fn run(mut self, tasks: u64) {
        let pause = Duration::from_secs(1).mul_f64(tasks as f64 / self.args.rate.max(0.1));
        while !self.stop.is_set() {
            let began = clock::now();
            self.cycle().await;
            self.journal.count("cycles");
            let pause = self.random.between(pause / 2, pause * 3 / 2);
            sleep(pause.saturating_sub(clock::between(began, clock::now()))).await;
        }
    }

    async fn cycle(&mut self) {
        let ttl = Duration::from_millis(self.args.ttl_ms);
        if self.random.percent(self.args.latches) {
            return latch::turn(&self.locker, &self.journal, &mut self.random, ttl).await;
        }
        if self.random.percent(self.args.several) {
            let (first, keys) = (self.random.below(self.args.keys), self.args.keys);
            let wanted = self.random.below((keys - 1).min(2)) + 2;
            let keys = (0..wanted).map(|next| format!("k{}", (first + next) % keys)).collect();
            let told = (&self.journal, &self.stop);
            return several::turn(&self.locker, told, &mut self.random, (keys, ttl)).await;
        }
        if self.random.percent(self.args.revoked) {
            let key = format!("k{}", self.random.below(self.args.keys));
            let patience = self.random.between(Duration::ZERO, ttl / 2);
            return revoking::revoke(&self.locker, &self.journal, key, patience).await;
        }
        let long = !self.args.volatile && self.args.long && self.random.percent(15);
        let (key, ttl) = match long {
            true => (format!("long{}", self.random.below(LONG_KEYS)), LONG_TTL),
            // Locks that change hands have others who want them.
            false if self.args.handovers > 0.0 && self.random.percent(30) => {
                (format!("h{}", self.random.below(handover::KEYS)), ttl)
            }
            false => (format!("k{}", self.random.below(self.args.keys)), ttl),
        };
        let overstays = !long && self.random.percent(4);
        let extend = if overstays { Extend::Off } else { Extend::default() };
        let wish = if !long && key.starts_with('k') { self.wish() } else { Wish::Lock };
        let request = match wish {
            Wish::Lock => self.locker.lock(&key),
            Wish::Read => self.locker.read(&key),
            Wish::Slots(weight) => self.locker.slots(&key, self.args.slots).acquire_many(weight),
        };
        let request = request.ttl(ttl).auto_extend(extend);
        // A single try takes no notice of it.
        let request = if self.random.percent(self.args.fair) { request.fair() } else { request };
        let is_strict = wish == Wish::Lock && self.random.percent(self.args.strict);
        let request = if is_strict { request.fair_strict() } else { request };
        let is_delayed = wish == Wish::Lock && self.random.percent(self.args.delayed);
        let request = if is_delayed { request.lock_delay(DELAY) } else { request };
        let patience = self.random.between(Duration::ZERO, ttl.min(Duration::from_secs(1)) / 4);
        let got = match self.random.below(10) {
            0..=4 => request.try_acquire().await,
            5..=7 => request.await.map(Some),
            8 => match timeout(patience, request.into_future()).await {
                Ok(got) => got.map(Some),
                Err(_) => return self.journal.count("cancelled"),
            },
            // What `run` drops has no delay that could be told.
            _ => return self.run_under(&key, wish, request.lock_delay(Duration::ZERO)).await,
        };
        match got {
            Ok(Some(guard)) if wish == Wish::Lock => {
                self.use_guard((&key, is_delayed), guard, overstays).await;
            }
            Ok(Some(guard)) => self.use_shared(&key, wish, guard, overstays).await,
            Ok(None) => self.journal.count("busy"),
            Err(error) => tell(&self.journal, &error),
        }
    }

    /// What is asked for of a key that others fight for.
    fn wish(&mut self) -> Wish {
        match self.args.slots {
            0 if self.random.percent(self.args.readers) => Wish::Read,
            0 => Wish::Lock,
            1 => Wish::Slots(1),
            _ => Wish::Slots(1 + u16::from(self.random.percent(20))),
        }
    }

    /// By `run`, which releases by itself, or is dropped in the middle.
    async fn run_under(&mut self, key: &str, wish: Wish, request: LockRequest) {
        let (journal, stop, mut random) =
            (self.journal.clone(), self.stop.clone(), self.random.clone());
        let (reads, count) = (wish == Wish::Read, self.args.slots);
        let worked = async |held: Held| {
            check_slots(&journal, (wish, count), &held);
            let Some(number) = begin(&journal, (key, reads), &held) else { return Ok(()) };
            let _ending = Ending { journal: &journal, number };
            work(&journal, &stop, &mut random, number, &held, false).await;
            Ok::<_, Error>(())
        };
        let run = request.on_loss(OnLoss::Signal).run_async(worked);
        let patience = self.random.between(Duration::ZERO, Duration::from_millis(400));
        match timeout(patience, run).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tell(&self.journal, &error),
            Err(_) => self.journal.count("run-cancelled"),
        }
        self.random.next();
    }

    /// A read lock, which was a writer's lock before or not, or slots: what is not adopted.
    async fn use_shared(&mut self, key: &str, wish: Wish, guard: LockGuard, overstays: bool) {
        check_slots(&self.journal, (wish, self.args.slots), &guard);
        let lock = (key, wish == Wish::Read);
        let Some(number) = self.work_under(lock, &guard, overstays).await else { return };
        match self.random.below(10) {
            0..=4 => self.release(number, guard).await,
            5..=7 => {
                end(&self.journal, number, "drop");
                drop(guard);
            }
            8 => self.release_unheard(number, guard).await,
            _ => {
                self.journal.write(&Line::Spared(guard.owner_token().value().into()));
                end(&self.journal, number, "forgotten");
                drop(guard.forget());
            }
        }
    }

    async fn use_guard(
        &mut self,
        (key, is_delayed): (&str, bool),
        guard: LockGuard,
        overstays: bool,
    ) {
        let Some(number) = begin(&self.journal, (key, false), &guard) else { return };
        if is_delayed {
            self.journal.write(&Line::Delayed { hold: number, delay: clock::nanos(DELAY) });
        }
        self.work(number, &guard, overstays).await;
        let guard = match self.random.percent(self.args.handles) {
            true => self.change_handles(key, number, guard).await,
            false => guard,
        };
        if self.args.readers > 0 && key.starts_with('k') && self.random.percent(20) {
            end(&self.journal, number, "downgrade");
            return match guard.downgrade().await {
                Ok(guard) => {
                    self.journal.count("downgraded");
                    self.use_shared(key, Wish::Read, guard, overstays).await;
                }
                Err(error) => tell(&self.journal, &error),
            };
        }
        match self.random.below(10) {
            0..=4 => self.release(number, guard).await,
            5..=7 => {
                let is_over = is_delayed && !guard.is_valid() && !guard.is_revoked();
                end(&self.journal, number, if is_over { EXPIRED } else { "drop" });
                drop(guard);
            }
            8 => self.release_unheard(number, guard).await,
            _ => {
                // No guard holds it in between, and no other client may.
                let token = guard.forget();
                match self.locker.adopt(key, &token).await {
                    Ok(guard) => {
                        self.journal.count("adopted");
                        end(&self.journal, number, "adopt-drop");
                        drop(guard);
                    }
                    Err(error) => {
                        self.journal.write(&Line::Spared(token.value().into()));
                        end(&self.journal, number, "forgotten");
                        tell(&self.journal, &error);
                    }
                }
            }
        }
    }

    /// Works under a lock, and extends it now and then; the number of the hold.
    async fn work_under(
        &mut self,
        lock: (&str, bool),
        guard: &LockGuard,
        overstays: bool,
    ) -> Option<u64> {
        let number = begin(&self.journal, lock, guard)?;
        self.work(number, guard, overstays).await;
        Some(number)
    }

    async fn work(&mut self, number: u64, guard: &LockGuard, overstays: bool) {
        work(&self.journal, &self.stop, &mut self.random, number, guard, overstays).await;
        if self.random.percent(20) {
            self.extend(number, guard).await;
        }
    }

    /// Gets another handle of a lock, gives the first one up, and works on under the other: the
    /// lock is held all the time.
    async fn change_handles(&mut self, key: &str, number: u64, guard: LockGuard) -> LockGuard {
        let other = match self.random.percent(50) {
            true => guard.share(),
            // Asked for again, where it has been lost meanwhile: then it is another lock.
            false => match self.locker.lock(key).within(&guard).await {
                Ok(other) if other.owner_token().value() == guard.owner_token().value() => other,
                Ok(another) => {
                    self.journal.count("within-another");
                    drop(another);
                    return guard;
                }
                Err(error) => {
                    tell(&self.journal, &error);
                    return guard;
                }
            },
        };
        match guard.release().await {
            Ok(Release::Shared) => self.journal.count("handles-changed"),
            Ok(told) => {
                let what = format!("a handle that was not the last one told {told:?}");
                self.journal.write(&Line::Broken(what));
            }
            Err(error) => tell(&self.journal, &error),
        }
        self.work(number, &other, false).await;
        other
    }

    async fn release(&self, number: u64, guard: LockGuard) {
        end(&self.journal, number, "release");
        tell_release(&self.journal, &guard.release().await);
    }

    /// Sent at the first poll: the answer is what is not waited for.
    async fn release_unheard(&self, number: u64, guard: LockGuard) {
        end(&self.journal, number, "release-cancelled");
        // Whether it was answered at once is all that this could say.
        let _ = timeout(Duration::ZERO, guard.release()).await;
    }

    /// By hand, sometimes without waiting for the answer.
    async fn extend(&mut self, number: u64, guard: &LockGuard) {
        let ttl = Duration::from_millis(self.args.ttl_ms);
        let patience = self.random.choose(&[Duration::ZERO, Duration::from_secs(60)]);
        match timeout(patience, guard.extend(ttl)).await {
            Ok(Ok(())) => self.journal.count("extended"),
            Ok(Err(error)) => tell(&self.journal, &error),
            Err(_) => self.journal.count("extension-cancelled"),
        }
        see(&self.journal, number, guard);
    }
}

/// As many slots as were asked for, all different, and with numbers below their number. Else more
/// could hold the key than it has slots, though no slot has two holders.
fn check_slots(journal: &Journal, (wish, count): (Wish, u16), lease: &impl Lease) {
    let Wish::Slots(weight) = wish else { return };
    if !are_slots(lease.slots(), weight, count) {
        let what = format!("{weight} of {count} slots were asked for; got {:?}", lease.slots());
        journal.write(&Line::Broken(what));
    }
}

fn are_slots(mut numbers: Vec<u16>, weight: u16, count: u16) -> bool {
    numbers.sort_unstable();
    numbers.dedup();
    numbers.len() == usize::from(weight) && numbers.iter().all(|number| *number < count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_so_many_different_ones_below_their_number() {
        assert!(are_slots(vec![1], 1, 2) && are_slots(vec![1, 0], 2, 2));
        assert!(!are_slots(vec![], 1, 2) && !are_slots(vec![0, 1], 1, 2));
        assert!(!are_slots(vec![1, 1], 2, 2) && !are_slots(vec![2], 1, 2));
    }
}
