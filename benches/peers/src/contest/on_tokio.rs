//! What the asynchronous contestants share: a runtime of their own, callers, their samples.

#![expect(clippy::disallowed_methods, reason = "a benchmark's callers are tasks of its own")]

use std::fmt::Write as _;
use std::future::Future;
use std::time::{Duration, Instant};

use super::{Contestant, Failure, Open, Runtime, Yield, open};
use crate::clock;

/// How long a runtime is driven for what is still on its way. Loopback takes microseconds.
const SETTLING: Duration = Duration::from_millis(5);

/// Worker threads of the multi-threaded runtime.
pub(crate) const WORKERS: usize = 2;

/// A lock client.
pub(crate) trait Lock: Clone + Send + Sync + 'static {
    /// What holds a lock.
    type Held: Send;

    /// Acquires the lock of a key that is free.
    fn acquire(&mut self, key: &str) -> impl Future<Output = Result<Self::Held, Failure>> + Send;

    /// Releases it, and knows that it was held until then.
    fn release(&mut self, held: Self::Held) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Waits until every node is usable. Most contestants never lose one.
    fn recover(&mut self) -> impl Future<Output = Result<(), Failure>> + Send {
        std::future::ready(Ok(()))
    }
}

/// Where a caller runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// In a task of its own.
    Spawned,
    /// In the body of `block_on`, as what `#[tokio::main]` makes of `main`.
    Body,
}

/// A lock client on a runtime.
pub(crate) struct OnTokio<L> {
    lock: L,
    runtime: tokio::runtime::Runtime,
    place: Place,
    /// Each caller's samples, kept for their memory.
    samples: Vec<Vec<u32>>,
    /// Runs so far: keys are never used twice.
    runs: u32,
}

impl<L: Lock> OnTokio<L> {
    /// Makes the runtime and connects on it.
    pub(crate) fn start<C>(runtime: Runtime, place: Place, connect: C) -> Result<Self, Failure>
    where
        C: AsyncFnOnce() -> Result<L, Failure>,
    {
        let mut builder = match runtime {
            Runtime::Multi => tokio::runtime::Builder::new_multi_thread(),
            Runtime::Current | Runtime::Thread => tokio::runtime::Builder::new_current_thread(),
        };
        let runtime = builder.worker_threads(WORKERS).enable_all().build()?;
        let lock = runtime.block_on(connect())?;
        Ok(Self { lock, runtime, place, samples: Vec::new(), runs: 0 })
    }
}

impl<L: Lock> Contestant for OnTokio<L> {
    fn run(&mut self, callers: usize, time: Duration) -> Result<Yield, Failure> {
        self.runs += 1;
        self.samples.resize_with(callers, Vec::new);
        let Self { lock, runtime, place, samples, runs } = self;
        let end = clock::now() + time;
        let calls = samples.iter_mut().enumerate().map(|(number, samples)| {
            let mut samples = std::mem::take(samples);
            samples.clear();
            call(lock.clone(), format!("bench:{runs}:{number}:"), end, samples)
        });
        let done: Vec<Result<Vec<u32>, Failure>> = runtime.block_on(async {
            let mut done = Vec::with_capacity(callers);
            match place {
                Place::Body => {
                    for call in calls {
                        done.push(call.await);
                    }
                }
                Place::Spawned => {
                    let tasks: Vec<_> = calls.map(tokio::spawn).collect();
                    for task in tasks {
                        done.push(task.await.unwrap_or_else(|panic| Err(panic.into())));
                    }
                }
            }
            done
        });
        let mut acquires_ns = Vec::new();
        for (samples, done) in self.samples.iter_mut().zip(done) {
            *samples = done?;
            acquires_ns.extend_from_slice(samples);
        }
        Ok(Yield { acquires_ns })
    }

    fn run_at(&mut self, rate: u32, time: Duration) -> Result<Open, Failure> {
        self.runs += 1;
        let keys = format!("bench:{}:open:", self.runs);
        self.runtime.block_on(open::run(self.lock.clone(), keys, rate, time))
    }

    fn settle(&mut self) -> Result<(), Failure> {
        let Self { runtime, lock, .. } = self;
        runtime.block_on(async {
            tokio::time::sleep(SETTLING).await;
            lock.recover().await
        })
    }
}

/// One caller: acquire, release, again, until the time is up.
async fn call<L: Lock>(
    mut lock: L,
    mut key: String,
    end: Instant,
    mut samples: Vec<u32>,
) -> Result<Vec<u32>, Failure> {
    let prefix = key.len();
    for cycle in 0_u32.. {
        key.truncate(prefix);
        write!(key, "{cycle}")?;
        let began = clock::now();
        if began >= end {
            break;
        }
        let held = lock.acquire(&key).await?;
        samples.push(u32::try_from(began.elapsed().as_nanos()).unwrap_or(u32::MAX));
        lock.release(held).await?;
    }
    Ok(samples)
}
