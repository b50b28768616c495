//! One cycle: a lock is asked for in one of the ways there are, worked under, and given up in one
//! of the ways there are. Chance decides, by the seed.

use std::sync::Arc;
use std::time::Duration;

use quorlock::{Error, Extend, Held, LockGuard, LockRequest, Locker, OnLoss, Release};
use tokio::time::{sleep, timeout};

use super::{Pen, Stop};
use crate::args::ClientArgs;
use crate::clock;
use crate::dice::Dice;
use crate::line::Line;

/// Keys with a long life, where what is left behind would stay and be seen.
const LONG_KEYS: u64 = 64;
const LONG_TTL: Duration = Duration::from_secs(60);

/// One task of a client.
pub(super) struct Worker {
    args: Arc<ClientArgs>,
    locker: Locker,
    pen: Pen,
    stop: Stop,
    dice: Dice,
}

/// What shows a hold's time: a guard, or what `run` lends.
trait Lease {
    fn is_valid(&self) -> bool;
    fn remaining(&self) -> Duration;
}

impl Lease for LockGuard {
    fn is_valid(&self) -> bool {
        Self::is_valid(self)
    }
    fn remaining(&self) -> Duration {
        Self::remaining(self)
    }
}

impl Lease for Held {
    fn is_valid(&self) -> bool {
        Self::is_valid(self)
    }
    fn remaining(&self) -> Duration {
        Self::remaining(self)
    }
}

impl Worker {
    pub(super) fn new(
        args: Arc<ClientArgs>,
        locker: Locker,
        pen: Pen,
        stop: Stop,
        task: u64,
    ) -> Self {
        let dice = Dice::new(args.seed, 1_000 * (1 + args.slot as u64) + task);
        Self { args, locker, pen, stop, dice }
    }

    /// Cycles until told to stop, at this task's share of the client's rate.
    pub(super) async fn run(mut self, tasks: u64) {
        let pause = Duration::from_secs(1).mul_f64(tasks as f64 / self.args.rate.max(0.1));
        while !self.stop.is_set() {
            let began = clock::now();
            self.cycle().await;
            self.pen.count("cycles");
            let pause = self.dice.between(pause / 2, pause * 3 / 2);
            sleep(pause.saturating_sub(clock::between(began, clock::now()))).await;
        }
    }

    async fn cycle(&mut self) {
        let ttl = Duration::from_millis(self.args.ttl_ms);
        let long = !self.args.volatile && self.args.long && self.dice.percent(15);
        let (key, ttl) = match long {
            true => (format!("long{}", self.dice.below(LONG_KEYS)), LONG_TTL),
            false => (format!("k{}", self.dice.below(self.args.keys)), ttl),
        };
        let overstays = !long && self.dice.percent(4);
        let extend = if overstays { Extend::Off } else { Extend::default() };
        let request = self.locker.lock(&key).ttl(ttl).extend(extend);
        let patience = self.dice.between(Duration::ZERO, ttl.min(Duration::from_secs(1)) / 4);
        let got = match self.dice.below(10) {
            0..=4 => request.try_acquire().await,
            5..=7 => request.await.map(Some),
            8 => match timeout(patience, request.into_future()).await {
                Ok(got) => got.map(Some),
                Err(_) => return self.pen.count("cancelled"),
            },
            _ => return self.run_under(&key, request).await,
        };
        match got {
            Ok(Some(guard)) => self.use_guard(&key, guard, overstays).await,
            Ok(None) => self.pen.count("busy"),
            Err(error) => self.tell(&error),
        }
    }

    /// By `run`, which releases by itself, or is dropped in the middle.
    async fn run_under(&mut self, key: &str, request: LockRequest) {
        let (pen, stop, mut dice) = (self.pen.clone(), self.stop.clone(), self.dice.clone());
        let worked = async |held: Held| {
            let Some(number) = begin(&pen, key, &held) else { return Ok(()) };
            let _ending = Ending { pen: &pen, number };
            work(&pen, &stop, &mut dice, number, &held, false).await;
            Ok::<_, Error>(())
        };
        let run = request.on_loss(OnLoss::Signal).run_async(worked);
        let patience = self.dice.between(Duration::ZERO, Duration::from_millis(400));
        match timeout(patience, run).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.tell(&error),
            Err(_) => self.pen.count("run-cancelled"),
        }
        self.dice.next();
    }

    async fn use_guard(&mut self, key: &str, guard: LockGuard, overstays: bool) {
        let Some(number) = begin(&self.pen, key, &guard) else { return };
        work(&self.pen, &self.stop, &mut self.dice, number, &guard, overstays).await;
        if self.dice.percent(20) {
            self.extend(number, &guard).await;
        }
        match self.dice.below(10) {
            0..=4 => {
                end(&self.pen, number, "release");
                self.tell_release(&guard.release().await);
            }
            5..=7 => {
                end(&self.pen, number, "drop");
                drop(guard);
            }
            8 => {
                end(&self.pen, number, "release-cancelled");
                // Sent at the first poll: the answer is what is not waited for.
                let _ = timeout(Duration::ZERO, guard.release()).await;
            }
            _ => {
                // Nobody holds it in between, and nobody else may.
                let token = guard.forget();
                match self.locker.adopt(key, &token).await {
                    Ok(guard) => {
                        self.pen.count("adopted");
                        end(&self.pen, number, "adopt-drop");
                        drop(guard);
                    }
                    Err(error) => {
                        self.pen.write(&Line::Spared(token.as_str().into()));
                        end(&self.pen, number, "forgotten");
                        self.tell(&error);
                    }
                }
            }
        }
    }

    /// By hand, sometimes without waiting for the answer.
    async fn extend(&mut self, number: u64, guard: &LockGuard) {
        let ttl = Duration::from_millis(self.args.ttl_ms);
        let patience = self.dice.choose(&[Duration::ZERO, Duration::from_secs(60)]);
        match timeout(patience, guard.extend(ttl)).await {
            Ok(Ok(())) => self.pen.count("extended"),
            Ok(Err(error)) => self.tell(&error),
            Err(_) => self.pen.count("extension-cancelled"),
        }
        see(&self.pen, number, guard);
    }

    fn tell(&self, error: &Error) {
        let kinds = [
            (error.is_contended(), "contended"),
            (error.is_unavailable(), "unavailable"),
            (error.is_too_slow(), "too-slow"),
            (error.is_unknown(), "unknown"),
            (error.is_lost(), "lost"),
            (error.is_closed(), "closed"),
            (error.is_full(), "full"),
        ];
        match kinds.iter().find(|(is, _)| *is) {
            Some((_, name)) => self.pen.count(name),
            // Misuse, a right that is missing, a key of another type: no fault explains it.
            None => self.pen.write(&Line::Broken(format!("no fault explains: {error}"))),
        }
    }

    fn tell_release(&self, release: &Result<Release, Error>) {
        match release {
            Ok(Release::Released) => self.pen.count("released"),
            Ok(Release::Expired) => self.pen.count("expired"),
            Ok(Release::Taken) => self.pen.count("taken"),
            Ok(_) => self.pen.count("release-unknown"),
            Err(error) => self.tell(error),
        }
    }
}

/// Writes down that a lock was obtained, and gives the hold its number.
fn begin(pen: &Pen, key: &str, lease: &impl Lease) -> Option<u64> {
    let at = clock::now();
    let remaining = lease.remaining();
    if remaining.is_zero() || !lease.is_valid() {
        // The clock is read after the deciding reply. The process may be stopped between that
        // reading and this one, but that is a matter of microseconds, and seldom.
        pen.count("late");
        return None;
    }
    let (hold, until) = (pen.number(), at + clock::nanos(remaining));
    pen.write(&Line::Granted { hold, key: key.into(), at, until });
    Some(hold)
}

/// Writes down that it is still held; false when it is not.
fn see(pen: &Pen, hold: u64, lease: &impl Lease) -> bool {
    let at = clock::now();
    let remaining = lease.remaining();
    let valid = !remaining.is_zero() && lease.is_valid();
    if valid {
        pen.write(&Line::Held { hold, at, until: at + clock::nanos(remaining) });
    }
    valid
}

/// Holds for a while, mostly a short one, and looks again and again.
async fn work(
    pen: &Pen,
    stop: &Stop,
    dice: &mut Dice,
    hold: u64,
    lease: &impl Lease,
    overstays: bool,
) {
    let longest = dice.choose(&[2, 2, 10, 10, 30, 30, 100, 1_200]);
    let length = dice.between(Duration::ZERO, Duration::from_millis(longest));
    let began = clock::now();
    let step = dice.between(Duration::from_millis(1), Duration::from_millis(15));
    while !stop.is_set() && (overstays || clock::between(began, clock::now()) < length) {
        sleep(step).await;
        if !see(pen, hold, lease) {
            pen.count(if overstays { "overstayed" } else { "found-lost" });
            return;
        }
    }
}

/// The work under `run`: it ends, or is dropped, before the lock is released.
struct Ending<'a> {
    pen: &'a Pen,
    number: u64,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        end(self.pen, self.number, "run");
    }
}

/// Writes down that the lock is about to be given up.
fn end(pen: &Pen, hold: u64, how: &str) {
    pen.write(&Line::Ended { hold, at: clock::now(), how: how.into() });
}
