//! A client that writes under fenced locks, and never looks at a lock once it has it.

use std::sync::Arc;
use std::time::Duration;

use quorlock::guarded::{self, Command, sql};
use quorlock::{Extend, Fence};
use tokio::time::sleep;
use tokio_postgres::NoTls;
use tokio_postgres::error::SqlState;

use super::lease::tell;
use super::{Journal, inbox};
use crate::Failure;
use crate::args::ClientArgs;
use crate::clock;
use crate::line::Line;
use crate::random::Random;
use crate::stores::{Address, list};

/// The writes of one holder, at most.
const WRITES: u64 = 4;

/// Both stores, as a client has them.
struct Stores {
    postgres: tokio_postgres::Client,
    redis: quorlock::Client,
    fences: sql::Table,
    compares: bool,
}

/// A write, and the holder's.
struct Write<'a> {
    key: &'a str,
    fence: Fence,
    asked: u64,
    got: u64,
}

/// What became of it in a store.
enum Outcome {
    Done,
    Refused,
    /// The store has ended the session, or did not answer in time: this client was stopped.
    Failed,
    /// No fault explains it.
    Odd(String),
}

pub(super) async fn work(args: Arc<ClientArgs>) -> Result<(), Failure> {
    let address = args.store.as_deref().and_then(Address::parse).ok_or("no store was named")?;
    let mut stores = Stores::open(&address).await?;
    let locker = super::locker(&args)?.fenced(true).auto_extend(Extend::Off).build()?;
    let (journal, (stop, _)) = (Journal::default(), inbox::listen());
    let mut random = Random::new(args.seed, 30_000 + args.slot as u64);
    let ttl = Duration::from_millis(args.ttl_ms);
    while !stop.is_set() {
        let (key, asked) = (format!("w{}", random.below(args.keys)), clock::now());
        let guard = match locker.lock(&key).await {
            Ok(guard) => guard,
            Err(error) => {
                tell(&journal, &error);
                continue;
            }
        };
        let (got, fence) = (clock::now(), guard.fence().ok_or("a lock has no fence")?);
        journal.count("granted");
        for _ in 0..=random.below(WRITES) {
            sleep(random.between(Duration::ZERO, ttl / 4)).await;
            let write = Write { key: &key, fence, asked, got };
            let outcome = stores.in_redis(&write).await;
            tell_outcome(&journal, "Redis", outcome);
            let outcome = stores.in_postgres(&write).await;
            if matches!(outcome, Outcome::Failed) {
                stores = Stores::open(&address).await?;
            }
            tell_outcome(&journal, "PostgreSQL", outcome);
        }
        drop(guard);
        journal.count("cycles");
    }
    let shutdown = locker.shutdown(super::SETTLE).await?;
    journal.count(if shutdown.is_complete() { "settled" } else { "unsettled" });
    Ok(())
}

fn tell_outcome(journal: &Journal, store: &str, outcome: Outcome) {
    let what = match outcome {
        Outcome::Done => "written in",
        Outcome::Refused => "refused by",
        Outcome::Failed => "failed in",
        Outcome::Odd(why) => return journal.write(&Line::Broken(format!("{store}: {why}"))),
    };
    journal.write(&Line::Count(format!("{what} {store}")));
}

impl Stores {
    async fn open(address: &Address) -> Result<Self, Failure> {
        let (postgres, connection) = tokio_postgres::connect(&address.postgres, NoTls).await?;
        tokio::spawn(connection);
        let limits = "SET idle_in_transaction_session_timeout = '1s'; SET lock_timeout = '5s'";
        postgres.batch_execute(limits).await?;
        let redis = quorlock::Client::new(&*address.redis)?.timeout(Duration::from_secs(5));
        let fences = sql::Table::new("fences")?;
        Ok(Self { postgres, redis, fences, compares: address.compares })
    }

    async fn in_redis(&self, write: &Write<'_>) -> Outcome {
        let Write { key, fence, asked, got } = write;
        let (list, value) = (list(key), format!("{fence} {asked} {got}"));
        if !self.compares {
            let pushed = self.redis.command(["RPUSH", &list, &value]).await;
            return if pushed.is_ok() { Outcome::Done } else { Outcome::Failed };
        }
        let push = "return redis.call('RPUSH', KEYS[1], ARGV[1])";
        let push = match Command::eval(push, [list], [value], *fence) {
            Ok(push) => push,
            Err(error) => return Outcome::Odd(error.to_string()),
        };
        match push.send(&self.redis).await {
            Ok(_) => Outcome::Done,
            Err(guarded::Error::Stale(_)) => Outcome::Refused,
            Err(guarded::Error::Client(_)) => Outcome::Failed,
            Err(odd) => Outcome::Odd(odd.to_string()),
        }
    }

    async fn in_postgres(&mut self, write: &Write<'_>) -> Outcome {
        match self.transaction(write).await {
            Ok(true) => Outcome::Done,
            Ok(false) => Outcome::Refused,
            Err(error) => match error.code() {
                // The session's own limits, or its connection has ended by them.
                None
                | Some(
                    &SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT | &SqlState::LOCK_NOT_AVAILABLE,
                ) => Outcome::Failed,
                Some(_) => Outcome::Odd(error.to_string()),
            },
        }
    }

    async fn transaction(&mut self, write: &Write<'_>) -> Result<bool, tokio_postgres::Error> {
        let Write { key, fence, asked, got } = write;
        let fence = i64::from(*fence);
        let work = self.postgres.transaction().await?;
        if self.compares && work.query_opt(self.fences.advance(), &[key, &fence]).await?.is_none() {
            return Ok(false);
        }
        let insert = "INSERT INTO writes (key, fence, asked, got) VALUES ($1, $2, $3, $4)";
        work.execute(insert, &[key, &fence, &(*asked as i64), &(*got as i64)]).await?;
        work.commit().await?;
        Ok(true)
    }
}
