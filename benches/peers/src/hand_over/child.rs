//! What a process does that takes part: takes the lock, waiting, and releases it, as it is told.

use std::io::{BufRead, Write, stdin, stdout};
use std::time::Duration;

use quorlock::{Extend, LockGuard, Locker, LockerBuilder};
use rslock::LockManager;
use tokio::runtime::{Builder, Runtime};

use super::bare::Bare;
use crate::clock;
use crate::contest::{Failure, TTL};
use crate::waiting::Waiting;

pub(crate) const KEY: &str = "hand-over";

/// How long the nodes may take to be connected.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long the lock lives of one that is to be killed, and does not extend it.
pub(crate) const BRIEF: Duration = Duration::from_secs(1);

trait Contestant {
    /// Takes the lock, waiting for it.
    fn acquire(&mut self) -> Result<(), Failure>;

    fn release(&mut self) -> Result<(), Failure>;
}

/// Takes part as `name`, told on the standard input, until that ends.
pub(crate) fn run(name: &str, urls: &[String]) -> Result<(), Failure> {
    let mut contestant: Box<dyn Contestant> = match (name, Waiting::of(name)) {
        (_, Some(waiting)) => Box::new(Ours::connect(urls, waiting)?),
        ("floor", _) => Box::new(Bare::connect(urls)?),
        ("ours-brief", _) => Box::new(Ours::brief(urls)?),
        ("rslock", _) => Box::new(Rslock::connect(urls)?),
        _ => return Err(format!("who is `{name}`?").into()),
    };
    let (input, mut output) = (stdin().lock(), stdout().lock());
    for line in input.lines() {
        let at = match line?.as_str() {
            "a" => {
                contestant.acquire()?;
                clock::shared()
            }
            _ => {
                let at = clock::shared();
                contestant.release()?;
                at
            }
        };
        writeln!(output, "{at}")?;
        output.flush()?;
    }
    Ok(())
}

/// This library, with its defaults but for how it waits.
struct Ours {
    runtime: Runtime,
    locker: Locker,
    waiting: Waiting,
    held: Option<LockGuard>,
}

impl Ours {
    fn connect(urls: &[String], waiting: Waiting) -> Result<Self, Failure> {
        Self::with(Self::builder(urls)?.ttl(TTL), waiting)
    }

    fn brief(urls: &[String]) -> Result<Self, Failure> {
        Self::with(Self::builder(urls)?.ttl(BRIEF).auto_extend(Extend::Off), Waiting::Usual)
    }

    /// It deletes by a script, as all the others do.
    fn builder(urls: &[String]) -> Result<LockerBuilder, Failure> {
        Ok(Locker::quorum(urls)?.native_commands(false))
    }

    fn with(builder: LockerBuilder, waiting: Waiting) -> Result<Self, Failure> {
        let locker = builder.build()?;
        // While it holds the lock it must hear that it is waited for.
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        runtime.block_on(locker.ready(PATIENCE))?;
        Ok(Self { runtime, locker, waiting, held: None })
    }
}

impl Contestant for Ours {
    fn acquire(&mut self) -> Result<(), Failure> {
        let request = self.locker.lock(KEY).wait(PATIENCE);
        let request = self.waiting.ask(request);
        self.held = Some(self.runtime.block_on(async { request.await })?);
        Ok(())
    }

    fn release(&mut self) -> Result<(), Failure> {
        let Some(guard) = self.held.take() else { return Ok(()) };
        let found = self.runtime.block_on(guard.release())?;
        if found.is_released() { Ok(()) } else { Err(format!("not released: {found:?}").into()) }
    }
}

struct Rslock {
    runtime: Runtime,
    manager: LockManager,
    held: Option<rslock::Lock>,
}

impl Rslock {
    fn connect(urls: &[String]) -> Result<Self, Failure> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime, manager: LockManager::new(urls.to_vec()), held: None })
    }
}

impl Contestant for Rslock {
    /// It tries a few times, and is asked again.
    fn acquire(&mut self) -> Result<(), Failure> {
        let manager = &self.manager;
        self.held = Some(self.runtime.block_on(async {
            loop {
                if let Ok(lock) = manager.lock(KEY.as_bytes(), TTL).await {
                    return lock;
                }
            }
        }));
        Ok(())
    }

    fn release(&mut self) -> Result<(), Failure> {
        if let Some(lock) = self.held.take() {
            self.runtime.block_on(self.manager.unlock(&lock));
        }
        Ok(())
    }
}

impl Contestant for Bare {
    fn acquire(&mut self) -> Result<(), Failure> {
        Self::acquire(self)
    }

    fn release(&mut self) -> Result<(), Failure> {
        Self::release(self)
    }
}
