//! Whether the machine let a process run: what is late for that reason is not the library's fault.
//!
//! Three things keep threads from their work. A thread that could run may have to wait for a
//! processor: the kernel adds up for how long, for each thread, in `/proc/…/schedstat`. And a whole
//! process may be stopped, by a signal or with its machine, for which nothing is added up: then a
//! thread that sleeps for a few milliseconds at a time finds that more have passed. And the rig's
//! own supervisor may be slow to read what a thread writes, who says so itself. Other time for
//! which a thread waits for another one is none of these: a library that blocks is late by itself.
//!
//! Where the kernel keeps no such sums, what passes beyond the sleeping thread's own sleep is all
//! that is known.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// What a sleeping thread's own looks and timers take, at most.
const SLACK: Duration = Duration::from_micros(2_500);

/// For how long stalls are remembered.
const KEPT: Duration = Duration::from_secs(30);

/// Each thread's waits for a processor, in nanoseconds, by the thread's number.
type Waits = BTreeMap<u64, u64>;

/// Adds up the waits of a process's threads.
#[derive(Debug)]
pub(super) struct RunQueue {
    tasks: PathBuf,
    known: Waits,
}

impl RunQueue {
    /// That of the process with this number.
    pub(super) fn of(process: u32) -> Self {
        let tasks = PathBuf::from(format!("/proc/{process}/task"));
        let known = waits(&tasks);
        Self { tasks, known }
    }

    /// For how long the threads have waited since the last call, all together.
    pub(super) fn waited(&mut self) -> Duration {
        let now = waits(&self.tasks);
        let waited = growth(&self.known, &now);
        self.known = now;
        waited
    }
}

/// The waits of all threads; none where the kernel does not tell them.
fn waits(tasks: &PathBuf) -> Waits {
    let threads = std::fs::read_dir(tasks).into_iter().flatten().filter_map(Result::ok);
    let of = |thread: std::fs::DirEntry| {
        let number = thread.file_name().to_str()?.parse().ok()?;
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        Some((number, parse(&text)?))
    };
    threads.filter_map(of).collect()
}

/// The second number of a `schedstat`: nanoseconds of waiting for a processor.
fn parse(text: &str) -> Option<u64> {
    text.split_whitespace().nth(1)?.parse().ok()
}

/// What was added between two looks. A thread that is new has waited since the one before; what
/// one that has ended has waited is not known.
fn growth(before: &Waits, now: &Waits) -> Duration {
    let grown = now
        .iter()
        .map(|(thread, waited)| waited.saturating_sub(before.get(thread).copied().unwrap_or(0)));
    Duration::from_nanos(grown.sum())
}

/// Notices when this whole process stood still, by a thread that sleeps again and again.
#[derive(Debug)]
struct Sleeper {
    last: Instant,
    waited: u64,
}

impl Sleeper {
    fn new() -> Self {
        Self { last: Instant::now(), waited: own_wait() }
    }

    /// Behind a sleep: the times of the last look and of this one, and for how long between them
    /// this process stood still.
    fn woke(&mut self, slept: Duration) -> (Instant, Instant, Duration) {
        let (now, waited) = (Instant::now(), own_wait());
        let last = std::mem::replace(&mut self.last, now);
        let before = std::mem::replace(&mut self.waited, waited);
        let queued = Duration::from_nanos(waited.saturating_sub(before));
        (last, now, stopped(now - last, slept, queued))
    }
}

/// The waits of the calling thread.
fn own_wait() -> u64 {
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|it| parse(&it))
        .unwrap_or(0)
}

/// What neither the sleep nor the wait for a processor explains.
fn stopped(elapsed: Duration, slept: Duration, queued: Duration) -> Duration {
    let beyond = elapsed.saturating_sub(slept).saturating_sub(queued);
    if beyond > SLACK { beyond } else { Duration::ZERO }
}

/// The stalls of this process, noted by a thread of their own.
#[derive(Clone, Debug, Default)]
pub(super) struct StallMonitor(Arc<Mutex<Observed>>);

#[derive(Debug, Default)]
struct Observed {
    /// From when to when, and for how long in between something was not let run.
    stalls: VecDeque<(Instant, Instant, Duration)>,
    last: Option<Instant>,
}

impl StallMonitor {
    /// Looks this often until it is dropped.
    pub(super) fn start(every: Duration) -> Self {
        let monitor = Self::default();
        let observed = Arc::downgrade(&monitor.0);
        std::thread::spawn(move || sample(&observed, every));
        monitor
    }

    fn observed(&self) -> MutexGuard<'_, Observed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, last: Instant, now: Instant, stalled: Duration) {
        let mut observed = self.observed();
        if !stalled.is_zero() {
            observed.stalls.push_back((last, now, stalled));
        }
        while observed.stalls.front().is_some_and(|(_, end, _)| now - *end > KEPT) {
            observed.stalls.pop_front();
        }
        observed.last = Some(now);
    }

    /// A thread has waited for the supervisor from then until now.
    pub(super) fn note_blocked(&self, began: Instant, now: Instant) {
        let blocked = now - began;
        if blocked > SLACK {
            self.observed().stalls.push_back((began, now, blocked));
        }
    }

    /// Whether every stall before then is known.
    pub(super) fn knows(&self, then: Instant) -> bool {
        self.observed().last.is_some_and(|last| last > then)
    }

    /// For how long threads were not let run, in the looks that touch these times.
    pub(super) fn stalled(&self, from: Instant, to: Instant) -> Duration {
        let observed = self.observed();
        let touching = observed.stalls.iter().filter(|(begin, end, _)| *begin < to && *end > from);
        touching.map(|(_, _, stalled)| *stalled).sum()
    }

    /// Knows these stalls, and is not at work.
    #[cfg(test)]
    pub(super) fn of(stalls: &[(Instant, Instant, Duration)], last: Option<Instant>) -> Self {
        Self(Arc::new(Mutex::new(Observed { stalls: stalls.iter().copied().collect(), last })))
    }

    /// Learns of a stall as if it had just woken.
    #[cfg(test)]
    pub(super) fn learn(&self, (last, now, stalled): (Instant, Instant, Duration)) {
        self.note(last, now, stalled);
    }
}

fn sample(observed: &Weak<Mutex<Observed>>, every: Duration) {
    let (mut queue, mut sleeper) = (RunQueue::of(std::process::id()), Sleeper::new());
    loop {
        std::thread::sleep(every);
        let Some(observed) = observed.upgrade() else { return };
        let waited = queue.waited();
        let (last, now, stopped) = sleeper.woke(every);
        StallMonitor(observed).note(last, now, waited + stopped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn waits_of_threads_that_came_and_went_are_added_up() {
        let before = Waits::from([(1, 5_000), (2, 7_000)]);
        let now = Waits::from([(1, 6_000), (3, 400)]);
        assert_eq!(growth(&before, &now), Duration::from_nanos(1_400));
        assert_eq!(growth(&now, &now), Duration::ZERO);
        assert_eq!(growth(&Waits::new(), &Waits::new()), Duration::ZERO, "no sums here");
    }

    #[test]
    fn the_second_number_is_the_wait() {
        assert_eq!(parse("187182033 43756839 699\n"), Some(43_756_839));
        assert_eq!(parse("187182033"), None);
    }

    #[test]
    fn only_what_neither_sleep_nor_queue_explains_is_a_stop() {
        assert_eq!(stopped(ms(7), ms(5), ms(0)), ms(0), "a timer's slack");
        assert_eq!(stopped(ms(305), ms(5), ms(0)), ms(300), "a whole process stood still");
        assert_eq!(stopped(ms(305), ms(5), ms(299)), ms(0), "it waited for a processor");
    }

    #[test]
    fn a_wait_for_the_supervisor_is_a_stall_that_says_nothing_of_later_ones() {
        let (base, monitor) = (Instant::now(), StallMonitor::of(&[], None));
        monitor.note_blocked(base, base + ms(40));
        monitor.note_blocked(base + ms(50), base + ms(51));
        assert_eq!(monitor.stalled(base + ms(30), base + ms(90)), ms(40));
        assert!(!monitor.knows(base));
    }

    #[test]
    fn a_busy_machine_shows_in_the_run_queue() {
        if waits(&PathBuf::from("/proc/self/task")).values().all(|waited| *waited == 0) {
            return eprintln!("this kernel adds up no waits: what it lacks is left out");
        }
        // More work than processors: some of it waits.
        let workers = 2 * std::thread::available_parallelism().map_or(8, usize::from);
        let mut queue = RunQueue::of(std::process::id());
        let busy = move || {
            let began = Instant::now();
            while began.elapsed() < ms(200) {}
        };
        let all: Vec<_> = (0..workers).map(|_| std::thread::spawn(busy)).collect();
        std::thread::sleep(ms(150));
        let waited = queue.waited();
        assert!(waited > ms(50), "{workers} threads of work: {waited:?}");
        assert!(all.into_iter().all(|worker| worker.join().is_ok()));
    }
}
