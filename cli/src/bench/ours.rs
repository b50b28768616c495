//! Our lock, through the library's public API, with its default options.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quorlock::Locker;
use quorlock::report::NodeHealth;
use rustix::process::Signal;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::figures::Sample;
use super::sweep::Leftovers;
use super::timer::Timer;
use super::timetable::{Next, Round, Timetable, nanos};
use crate::clock;
use crate::exit::{Cause, Failure};
use crate::signals::{self, Signals};

/// A caller's pause after an error, so that the runtime has time to connect again.
const PAUSE: Duration = Duration::from_millis(10);

pub(crate) struct Ours<'a> {
    runtime: &'a Runtime,
    locker: Locker,
    signals: Signals,
    /// What the locker puts before each key.
    prefix: Vec<u8>,
    rounds: u64,
    unclean: Leftovers,
    last: Leftovers,
}

/// What the callers of one round share.
struct Shared {
    locker: Locker,
    table: Timetable,
    /// One for each start of an open loop that is due.
    due: Semaphore,
    started: AtomicU64,
    /// A signal has come: no new cycle begins.
    stop: AtomicBool,
}

/// What one caller did.
#[derive(Default)]
struct Calls {
    cycles_ns: Vec<(u64, u64)>,
    errors: u64,
    trouble: Option<Failure>,
    /// The keys of the cycles that had an error: some node may still hold them.
    unclean: Vec<String>,
    last: String,
}

impl<'a> Ours<'a> {
    /// Also starts to listen for signals.
    pub(crate) fn new(
        runtime: &'a Runtime,
        locker: Locker,
        prefix: &[u8],
    ) -> Result<Self, Failure> {
        let signals = runtime.block_on(async { Signals::listen() })?;
        let prefix = prefix.to_vec();
        let (unclean, last) = (Leftovers::new(), Leftovers::new());
        Ok(Self { runtime, locker, signals, prefix, rounds: 0, unclean, last })
    }

    /// One round. Each caller ends with a release.
    ///
    /// # Errors
    ///
    /// If no cycle succeeded, or a signal has arrived.
    pub(crate) fn run(&mut self, round: &Round) -> Result<Sample, Failure> {
        self.rounds += 1;
        let table = Timetable::new(round, clock::now());
        let shared = Arc::new(Shared {
            locker: self.locker.clone(),
            table,
            due: Semaphore::new(0),
            started: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        });
        let (runtime, signals, rounds) = (self.runtime, &mut self.signals, self.rounds);
        let calling = call_all(&shared, round.callers, rounds, signals);
        let (all, signal) = runtime.block_on(calling);
        let mut sample = Sample {
            elapsed: clock::now().saturating_duration_since(table.began),
            missed: table.starts.saturating_sub(shared.started.load(Ordering::Relaxed)),
            ..Sample::default()
        };
        self.last.clear();
        for calls in all {
            let full = |key: String| [&self.prefix, key.as_bytes()].concat();
            self.unclean.extend(calls.unclean.into_iter().map(full));
            self.last.push(full(calls.last));
            sample.cycles_ns.extend_from_slice(&calls.cycles_ns);
            sample.errors += calls.errors;
            sample.trouble = sample.trouble.or(calls.trouble);
        }
        if let Some(signal) = signal {
            return Err(Failure::new(signals::cause(signal), "stopped early; nothing is left"));
        }
        match sample.trouble {
            Some(trouble) if sample.cycles_ns.is_empty() => Err(trouble),
            _ => Ok(sample),
        }
    }

    /// Waits for the late replies of every node, within its deadline: an inspection is sent after
    /// all other commands on the connections, and is answered after them.
    pub(crate) fn settle(&self) {
        let answered = self.runtime.block_on(self.locker.inspect("settle"));
        // A node that is later than that is late in the next round as well.
        drop(answered);
    }

    /// What is known of each node by now.
    pub(crate) fn health(&self) -> Vec<NodeHealth> {
        self.locker.health()
    }

    /// The keys that a node may still hold: the last of each caller, and those with an error.
    pub(crate) fn leftovers(&self) -> Leftovers {
        [&self.unclean[..], &self.last].concat()
    }
}

/// Runs the callers to their end; a signal makes it an early one.
async fn call_all(
    shared: &Arc<Shared>,
    callers: usize,
    round: u64,
    signals: &mut Signals,
) -> (Vec<Calls>, Option<Signal>) {
    // Ends with this function.
    let mut pacer = JoinSet::new();
    if shared.table.is_open() {
        pacer.spawn(pace(shared.clone(), callers));
    }
    let mut tasks = JoinSet::new();
    for caller in 0..callers {
        tasks.spawn(call(shared.clone(), format!("ours:{round}:{caller}:")));
    }
    let (mut all, mut ended_by) = (Vec::with_capacity(callers), None);
    loop {
        tokio::select! {
            done = tasks.join_next() => match done {
                Some(Ok(calls)) => all.push(calls),
                // The panic hook has printed it.
                Some(Err(panic)) => all.push(Calls {
                    trouble: Some(Failure::new(Cause::Internal, panic.to_string())),
                    ..Calls::default()
                }),
                None => return (all, ended_by),
            },
            signal = signals.next() => {
                shared.stop.store(true, Ordering::Relaxed);
                // Wakes callers that wait for a start.
                shared.due.add_permits(callers);
                ended_by = Some(signal);
            }
        }
    }
}

/// One caller: acquire, release, again, until there is no further start.
async fn call(shared: Arc<Shared>, mut key: String) -> Calls {
    let mut calls = Calls::default();
    let stem = key.len();
    for cycle in 0_u64.. {
        let Some(start) = shared.next().await else { break };
        key.truncate(stem);
        // Writing to a string cannot fail.
        let _ = write!(key, "{cycle}");
        match once(&shared.locker, &key).await {
            Ok((granted, released)) => {
                calls.cycles_ns.push((nanos(start, granted), nanos(granted, released)));
            }
            Err(failure) => {
                calls.errors += 1;
                calls.unclean.push(key.clone());
                let is_hopeless = failure.cause == Cause::Denied;
                calls.trouble = calls.trouble.or(Some(failure));
                if is_hopeless {
                    break;
                }
                clock::sleep(PAUSE).await;
            }
        }
    }
    calls.last = key;
    calls
}

/// One cycle; when it was granted, and when it was released.
async fn once(locker: &Locker, key: &str) -> Result<(Instant, Instant), Failure> {
    let Some(guard) = locker.lock(key).try_acquire().await? else {
        return Err(Failure::new(Cause::Busy, "another client holds a key of this run"));
    };
    let granted = clock::now();
    let release = guard.release().await?;
    if !release.is_released() {
        let what = "a release was not confirmed by a majority in time";
        return Err(Failure::new(Cause::Unavailable, what));
    }
    Ok((granted, clock::now()))
}

impl Shared {
    /// The start of the next cycle; `None` when there is none.
    async fn next(&self) -> Option<Instant> {
        let mut number = 0;
        if self.table.is_open() {
            // It is never closed.
            self.due.acquire().await.ok()?.forget();
            number = self.started.fetch_add(1, Ordering::Relaxed);
        }
        let next = if self.stop.load(Ordering::Relaxed) {
            Next::Over
        } else {
            self.table.next(number, clock::now())
        };
        match next {
            // The pacer has let it through, so it is due even if the clock reads a little less
            // here.
            Next::Start(start) | Next::At(start) => Some(start),
            Next::Over => {
                if self.table.is_open() {
                    self.started.fetch_sub(1, Ordering::Relaxed);
                }
                None
            }
        }
    }
}

/// Lets each start through when it is due. At the end it wakes every caller, so that they stop.
async fn pace(shared: Arc<Shared>, callers: usize) {
    let (timer, mut number) = (Timer::new(), 0);
    loop {
        match shared.table.next(number, clock::now()) {
            Next::Start(_) => {
                shared.due.add_permits(1);
                number += 1;
            }
            Next::At(moment) => timer.wait_until(moment).await,
            Next::Over => break,
        }
    }
    shared.due.add_permits(callers);
}
