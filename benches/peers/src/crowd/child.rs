//! What a process of a crowd does: takes the lock, holds it, releases it, and takes it again.

#![expect(clippy::disallowed_methods, reason = "who holds a lock sleeps in real time")]

use std::io::{BufRead, Write, stdin, stdout};
use std::time::Duration;

use quorlock::report::WaitStats;
use quorlock::{Locker, Release};
use tokio::runtime::{Builder, Runtime};

use super::{Shift, Tally, sleep_until};
use crate::clock;
use crate::contest::{Failure, TTL};
use crate::hand_over::Bare;
use crate::waiting::Waiting;

const KEY: &str = "crowd";

/// How long the nodes may take to be connected: many processes start at once.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process with its connections.
enum Member {
    Ours { runtime: Runtime, locker: Locker, waiting: Waiting },
    Floor(Bare),
}

/// Takes part as `name`, told on the standard input, until that ends.
pub(crate) fn run(name: &str, urls: &[String]) -> Result<(), Failure> {
    let mut member = match (name, Waiting::of(name)) {
        ("floor", _) => Member::Floor(Bare::connect(urls)?),
        (_, Some(waiting)) => Member::connect(urls, waiting)?,
        _ => return Err(format!("who is `{name}`?").into()),
    };
    let mut output = stdout().lock();
    writeln!(output, "{}", clock::shared())?;
    output.flush()?;
    for line in stdin().lock().lines() {
        let shift: Shift = line?.parse()?;
        sleep_until(shift.begin);
        let tally = member.work(shift)?;
        writeln!(output, "{tally}")?;
        output.flush()?;
    }
    Ok(())
}

impl Member {
    fn connect(urls: &[String], waiting: Waiting) -> Result<Self, Failure> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        // By a script, as the floor deletes.
        let locker = Locker::quorum(urls)?.ttl(TTL).native_commands(false).build()?;
        runtime.block_on(locker.ready(PATIENCE))?;
        Ok(Self::Ours { runtime, locker, waiting })
    }

    fn work(&mut self, shift: Shift) -> Result<Tally, Failure> {
        match self {
            Self::Ours { runtime, locker, waiting } => {
                // As a task of the runtime's, where most users' code runs.
                let (locker, waiting) = (locker.clone(), *waiting);
                runtime
                    .block_on(runtime.spawn(async move { work(&locker, waiting, shift).await }))?
            }
            Self::Floor(bare) => {
                let mut tally = Tally::default();
                while clock::shared() < shift.end {
                    let began = clock::shared();
                    bare.acquire()?;
                    tally.note(began, shift);
                    bare.release()?;
                }
                Ok(tally)
            }
        }
    }
}

impl Tally {
    /// An acquisition that began then has ended now.
    fn note(&mut self, began: u64, shift: Shift) {
        let now = clock::shared();
        if now >= shift.count {
            self.longest = self.longest.max(now.min(shift.end) - began);
            self.acquisitions += u64::from(now < shift.end);
        }
    }
}

async fn work(locker: &Locker, waiting: Waiting, shift: Shift) -> Result<Tally, Failure> {
    let mut tally = Tally::default();
    let mut before = None;
    loop {
        let began = clock::shared();
        if began >= shift.count {
            before.get_or_insert_with(|| locker.stats());
        }
        if began >= shift.end {
            break;
        }
        let request = locker.lock(KEY).wait(Duration::from_nanos(shift.end - began));
        let guard = match waiting.ask(request).await {
            Ok(guard) => guard,
            Err(error) if error.is_contended() && clock::shared() >= shift.end => {
                tally.note(began, shift);
                break;
            }
            // A crowd may be more than this machine bears.
            Err(error) if error.is_unavailable() => {
                tally.failures += 1;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        tally.note(began, shift);
        let parts = shift.work.extensions + 1;
        for part in 0..parts {
            if !shift.work.hold.is_zero() {
                tokio::time::sleep(shift.work.hold / parts).await;
            }
            if part + 1 < parts {
                guard.extend(TTL).await?;
            }
        }
        match guard.release().await? {
            Release::Released => {}
            Release::Unknown(_) => tally.failures += 1,
            found => return Err(format!("not released: {found:?}").into()),
        }
    }
    let before = before.unwrap_or_default();
    let WaitStats { handed_over, changed, by_time, .. } = locker.stats();
    tally.handed_over = handed_over - before.handed_over;
    tally.changed = changed - before.changed;
    tally.by_time = by_time - before.by_time;
    Ok(tally)
}
