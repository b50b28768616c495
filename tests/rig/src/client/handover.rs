//! Handing locks over between processes: a giver and an adopter, each with a locker of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quorlock::{LockGuard, Locker, OwnerToken, report::Outcome};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::lease::{begin, end, see, tell, tell_release, word, work};
use super::stalls::StallMonitor;
use super::{Journal, Stop};
use crate::args::{self, ClientArgs};
use crate::clock;
use crate::line::{Copies, Handed, Line, Order, Source};
use crate::random::Random;

/// The keys of locks that change hands; the other tasks ask for them too.
pub(super) const KEYS: u64 = 64;

/// How many hand-overs a client has under way, for each of which a lock is held.
const UNDER_WAY: usize = 12;

/// How often a giver asks for a free key before it gives up.
const TRIES: u64 = 20;

/// How long a locker may take to leave its locks: what is left of them must be worth adopting.
const LEAVING: Duration = Duration::from_millis(200);

/// How often the monitor looks that knows when an adopter was not let run: leases are compared with
/// that.
const SAMPLE_EVERY: Duration = Duration::from_millis(20);

/// What a client needs to give and to adopt.
#[derive(Clone)]
pub(super) struct Hands {
    args: Arc<ClientArgs>,
    locker: Locker,
    journal: Journal,
    stop: Stop,
    monitor: StallMonitor,
    /// How many tokens have been handed over.
    handed: Arc<AtomicU64>,
}

/// An answer to a try to adopt, and what else is known then.
#[derive(Clone, Copy, Debug)]
struct Refusal {
    /// The error in one word.
    word: &'static str,
    /// The nodes say that the lock is not there any more.
    is_lost: bool,
    /// It makes no sense to ask again: the time is over, or the locker is closed.
    is_over: bool,
    /// The client is to end.
    is_stopped: bool,
    /// How long ago a try was cut.
    since_cut: Option<Duration>,
}

impl Refusal {
    /// What is reported, if this is the last answer. A try that was cut puts back what it has set,
    /// for which it needs its time; before that *lost* may be its own doing, and it asks again.
    fn report(self, undone_after: Duration) -> Option<&'static str> {
        let is_undone = self.since_cut.is_none_or(|since| since > undone_after);
        let is_last = self.is_over || self.is_stopped || self.is_lost && is_undone;
        is_last.then_some(match (self.is_stopped, is_undone) {
            (true, _) => "stopped",
            (_, false) => "cancelled",
            _ => self.word,
        })
    }
}

/// An order to adopt, and when it came.
struct Asked {
    order: Order,
    at: u64,
    /// The same on the monitor's clock.
    instant: Instant,
    /// What tries were answered, and when, after which it asked again.
    answers: Vec<(&'static str, u64)>,
}

impl Asked {
    fn earlier(&self) -> String {
        let answers = self.answers.iter().map(|(word, at)| format!("{word}@{at}"));
        let answers: Vec<_> = answers.collect();
        if answers.is_empty() { "none".into() } else { answers.join(",") }
    }
}

/// A lock that is held and told of.
struct Holding {
    guard: LockGuard,
    key: String,
    number: u64,
    since: u64,
}

impl Hands {
    pub(super) fn new(args: Arc<ClientArgs>, locker: Locker, journal: Journal, stop: Stop) -> Self {
        Self {
            args,
            locker,
            journal,
            stop,
            monitor: StallMonitor::start(SAMPLE_EVERY),
            handed: Arc::default(),
        }
    }

    fn ttl(&self) -> Duration {
        Duration::from_millis(self.args.ttl_ms)
    }

    /// Hands locks over at the client's rate, until told to stop.
    pub(super) async fn give(self) {
        let mean = Duration::from_secs(60).div_f64(self.args.handovers.max(0.001));
        let stream = 50_000 + 1_000 * self.args.slot as u64;
        let mut random = Random::new(self.args.seed, stream);
        let (mut under_way, began) = (JoinSet::new(), clock::now());
        for number in 1.. {
            // Where a lock could not be had another is asked for sooner, so that the mean is kept.
            let wanted = clock::between(began, clock::now()).div_duration_f64(mean) as u64;
            let there = self.handed.load(Ordering::Relaxed) + under_way.len() as u64;
            let pause = if there < wanted { mean / 4 } else { mean };
            sleep(random.between(pause / 2, pause * 3 / 2)).await;
            while under_way.try_join_next().is_some() {}
            while under_way.len() >= UNDER_WAY {
                under_way.join_next().await;
            }
            if self.stop.is_set() {
                break;
            }
            let random = Random::new(self.args.seed, stream + number);
            under_way.spawn(self.clone().give_one(random));
        }
        under_way.join_all().await;
    }

    async fn give_one(self, mut random: Random) {
        let source = match random.below(20) {
            0 => Source::Left,
            1..=13 => Source::Forgotten,
            _ => Source::Living,
        };
        let source = self.chosen(source, Source::ALL, Source::name, &mut random);
        if source == Source::Left {
            return self.leave(&mut random).await;
        }
        let Some(holding) = self.hold(&self.locker, &mut random).await else { return };
        sleep(random.between(Duration::ZERO, Duration::from_millis(30))).await;
        match source {
            Source::Living => self.lend(holding, &mut random).await,
            _ => self.forget(holding, &mut random),
        }
    }

    /// What was drawn, or another where the command line leaves that out.
    fn chosen<T: Copy>(
        &self,
        drawn: T,
        all: [T; 3],
        name: impl Fn(T) -> &'static str,
        random: &mut Random,
    ) -> T {
        let named = |it: &T| self.args.handing.iter().any(|word| word == name(*it));
        let named: Vec<T> = all.into_iter().filter(named).collect();
        match named.is_empty() || named.iter().any(|it| name(*it) == name(drawn)) {
            true => drawn,
            false => random.choose(&named),
        }
    }

    /// Takes a lock that is free.
    async fn hold(&self, locker: &Locker, random: &mut Random) -> Option<Holding> {
        for _ in 0..TRIES {
            let key = format!("h{}", random.below(KEYS));
            match locker.lock(&key).try_acquire().await {
                Ok(Some(guard)) => return self.note(key, guard),
                Ok(None) => self.journal.count("busy"),
                Err(error) => tell(&self.journal, &error),
            }
            sleep(Duration::from_millis(2)).await;
            if self.stop.is_set() {
                return None;
            }
        }
        self.journal.count("no-free-key");
        None
    }

    fn note(&self, key: String, guard: LockGuard) -> Option<Holding> {
        let since = clock::now();
        let number = begin(&self.journal, (&key, false), &guard)?;
        Some(Holding { guard, key, number, since })
    }

    /// What is told of a hand-over; nothing for a lock that has little time left.
    fn handed(&self, holding: &Holding, source: Source, random: &mut Random) -> Option<Handed> {
        let Holding { guard, key, number, since } = holding;
        let (at, remaining) = (clock::now(), guard.remaining());
        if remaining < self.ttl() / 2 {
            self.journal.count("too-little-left");
            return None;
        }
        let votes = guard.votes();
        let copies = match random.below(20) {
            0..=11 => Copies::One,
            12..=15 => Copies::Two,
            _ => Copies::Again,
        };
        let granted = votes.iter().enumerate().filter(|(_, vote)| vote.outcome == Outcome::Granted);
        Some(Handed {
            hold: *number,
            since: *since,
            at,
            until: at + clock::nanos(remaining),
            nodes: granted.fold(0, |mask, (node, _)| mask | 1 << node),
            source,
            copies: self.chosen(copies, Copies::ALL, Copies::name, random),
            key: key.clone(),
            token: guard.owner_token().as_str().to_owned(),
        })
    }

    /// Forgets a lock, and hands its token over.
    fn forget(&self, holding: Holding, random: &mut Random) {
        let handed = self.handed(&holding, Source::Forgotten, random);
        end(&self.journal, holding.number, "forgotten");
        let Some(mut handed) = handed else { return drop(holding) };
        let token = holding.guard.forget();
        self.journal.write(&Line::Spared(token.value().to_owned()));
        handed.token = token.as_str().to_owned();
        self.hand_over(handed);
    }

    fn hand_over(&self, handed: Handed) {
        // Ordering: a counter and nothing else; no memory is published through it.
        self.handed.fetch_add(1, Ordering::Relaxed);
        self.journal.write(&Line::Handed(handed));
    }

    /// Hands over the token of a guard that lives on, mostly until another has adopted the lock.
    async fn lend(&self, holding: Holding, random: &mut Random) {
        let Some(handed) = self.handed(&holding, Source::Living, random) else {
            return end(&self.journal, holding.number, "drop");
        };
        self.hand_over(handed);
        let lets_go = random.percent(20);
        let most = if lets_go { self.ttl() } else { self.ttl() * 4 };
        let (began, length) = (clock::now(), random.between(most / 2, most));
        let step = random.between(Duration::from_millis(2), Duration::from_millis(10));
        let Holding { guard, number, .. } = holding;
        while clock::between(began, clock::now()) < length && !self.stop.is_set() {
            sleep(step).await;
            if !see(&self.journal, number, &guard) {
                self.journal.count("lender-lost");
                return end(&self.journal, number, "found-lost");
            }
        }
        if random.percent(50) {
            end(&self.journal, number, "let-go-release");
            tell_release(&self.journal, &guard.release().await);
        } else {
            end(&self.journal, number, "let-go-drop");
            drop(guard);
        }
    }

    /// Holds some locks by a locker of its own, shuts that down, and hands over what it left.
    async fn leave(&self, random: &mut Random) {
        let locker = match super::locker(&self.args).map(|builder| builder.build()) {
            Ok(Ok(locker)) => locker,
            Ok(Err(error)) => return tell(&self.journal, &error),
            Err(error) => return self.journal.write(&Line::Broken(error.to_string())),
        };
        let mut held = Vec::new();
        for _ in 0..1 + random.below(3) {
            held.extend(self.hold(&locker, random).await);
        }
        let mut all = Vec::new();
        for holding in &held {
            all.extend(self.handed(holding, Source::Left, random));
            end(&self.journal, holding.number, "left");
        }
        match locker.shutdown_leaving(LEAVING).await {
            Ok(shutdown) => {
                self.journal.count("shut-down-leaving");
                // Told as left behind, they are adopted at once.
                for left in shutdown.left {
                    // Also one that had too little time left to be handed over: it may have been
                    // extended since.
                    self.journal.write(&Line::Spared(left.token.value().to_owned()));
                    let same = |it: &&mut Handed| it.key.as_bytes() == &left.key[..];
                    for handed in all.iter_mut().filter(same) {
                        handed.token = left.token.as_str().to_owned();
                    }
                }
            }
            Err(error) => return tell(&self.journal, &error),
        }
        all.into_iter().for_each(|handed| self.hand_over(handed));
    }

    /// Adopts a lock as it was ordered to, and works under it.
    pub(super) async fn adopt(self, order: Order) {
        let stream = 90_000 + order.delivery;
        let mut random = Random::new(self.args.seed, stream);
        let Some(holding) = self.take_over(order, &mut random).await else { return };
        let Holding { number, guard, .. } = &holding;
        work(&self.journal, &self.stop, &mut random, *number, guard, false).await;
        match random.below(20) {
            0..=2 if self.hands_on() && guard.is_valid() => self.forget(holding, &mut random),
            3..=10 => {
                end(&self.journal, *number, "release");
                tell_release(&self.journal, &holding.guard.release().await);
            }
            _ => {
                end(&self.journal, *number, "drop");
                drop(holding);
            }
        }
    }

    /// Whether an adopted lock may be forgotten and handed over again.
    fn hands_on(&self) -> bool {
        let sources = &mut self
            .args
            .handing
            .iter()
            .filter(|word| Source::ALL.iter().any(|source| source.name() == &***word));
        let forgotten = Source::Forgotten.name();
        sources.clone().count() == 0 || sources.any(|word| word == forgotten)
    }

    /// Tries until the lock is its own, is lost, or can no longer be there.
    async fn take_over(&self, order: Order, random: &mut Random) -> Option<Holding> {
        let token = OwnerToken::from(order.token.clone());
        let cancels = random.percent(6);
        let patience = random.between(Duration::ZERO, Duration::from_millis(10));
        let (at, instant) = (clock::now(), Instant::now());
        let mut asked = Asked { order, at, instant, answers: Vec::new() };
        let key = &asked.order.key.clone();
        let mut cut = None;
        for tries in 1.. {
            let adopted = match cancels && tries == 1 {
                true => match timeout(patience, self.locker.adopt(key, &token)).await {
                    Ok(adopted) => adopted,
                    Err(_) => {
                        cut = Some(clock::now());
                        asked.answers.push(("cut", clock::now()));
                        continue;
                    }
                },
                false => self.locker.adopt(key, &token).await,
            };
            let error = match adopted {
                Ok(guard) => return self.adopted(&asked, guard, tries).await,
                Err(error) => error,
            };
            let now = clock::now();
            let Some(word) = word(&error) else {
                tell(&self.journal, &error);
                self.refuse(&asked, now, "broken").await;
                return None;
            };
            let since_cut = cut.map(|cut| clock::between(cut, now));
            let refusal = Refusal {
                word,
                is_lost: error.is_lost(),
                is_over: error.is_closed() || clock::between(asked.at, now) > self.ttl() * 5 / 2,
                is_stopped: self.stop.is_set(),
                since_cut,
            };
            if let Some(why) = refusal.report(self.undone_after()) {
                self.refuse(&asked, now, why).await;
                return None;
            }
            self.journal.count("adoption-again");
            asked.answers.push((word, now));
            let pause = random.between(Duration::from_millis(2), Duration::from_millis(20));
            let undo = since_cut.filter(|_| error.is_lost());
            let undo = undo.map(|since| self.undone_after().saturating_sub(since));
            sleep(pause.max(undo.unwrap_or_default())).await;
        }
        None
    }

    /// By when a try that was cut is undone: its undo follows it on the same connections, and each
    /// may take as long as a node's answer. Where one takes longer, a fault is known.
    fn undone_after(&self) -> Duration {
        2 * args::node_timeout(self.args.node_timeout_ms, self.ttl())
    }

    async fn adopted(&self, asked: &Asked, guard: LockGuard, tries: u64) -> Option<Holding> {
        let at = clock::now();
        let holding = self.note(asked.order.key.clone(), guard);
        let Some(holding) = holding else {
            self.refuse(asked, at, "late").await;
            return None;
        };
        let (delivery, hold) = (asked.order.delivery, holding.number);
        let waited = at.saturating_sub(asked.at);
        self.journal.write(&Line::Adopted { delivery, hold, at, waited, tries });
        self.journal.count("adopted-from-another");
        Some(holding)
    }

    /// Tells why a token was not adopted, and for how long the process was not let run meanwhile.
    async fn refuse(&self, asked: &Asked, at: u64, why: &str) {
        let now = Instant::now();
        while !self.monitor.knows(now) {
            sleep(SAMPLE_EVERY / 4).await;
        }
        let stalled = clock::nanos(self.monitor.stalled(asked.instant, now));
        let (delivery, earlier, why) = (asked.order.delivery, asked.earlier(), why.to_owned());
        self.journal.count(&format!("not-adopted-{why}"));
        let asked = asked.at;
        self.journal.write(&Line::NotAdopted { delivery, asked, at, stalled, why, earlier });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNDO: Duration = Duration::from_millis(100);

    fn lost(since_cut: Option<u64>) -> Refusal {
        let since_cut = since_cut.map(Duration::from_millis);
        Refusal { word: "lost", is_lost: true, is_over: false, is_stopped: false, since_cut }
    }

    #[test]
    fn a_lock_is_told_as_lost_unless_a_cut_try_may_still_be_undone() {
        assert_eq!(lost(None).report(UNDO), Some("lost"), "no try was cut");
        assert_eq!(lost(Some(30)).report(UNDO), None, "it waits for the undo, and asks again");
        assert_eq!(lost(Some(101)).report(UNDO), Some("lost"), "the cut try is undone");
    }

    #[test]
    fn a_last_answer_says_what_it_found() {
        let over = |since_cut| Refusal {
            word: "contended",
            is_lost: false,
            is_over: true,
            ..lost(since_cut)
        };
        assert_eq!(over(None).report(UNDO), Some("contended"));
        assert_eq!(over(Some(2_500)).report(UNDO), Some("contended"));
        assert_eq!(over(Some(30)).report(UNDO), Some("cancelled"));
        let stopped = Refusal { is_stopped: true, ..lost(None) };
        assert_eq!(stopped.report(UNDO), Some("stopped"));
        let goes_on = Refusal { is_over: false, ..over(None) };
        assert_eq!(goes_on.report(UNDO), None);
    }
}
