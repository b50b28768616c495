//! A shop that sells pieces under a lock: a holder that was stopped for longer than its lock lasted
//! sells nothing, because the database refuses it.
//!
//! ```sh
//! cargo run -p quorlock-example-fenced-order -- postgres://shop@127.0.0.1/shop
//! ```
//!
//! It makes a schema there, `quorlock_example`, and drops it at the end. The locks are on nodes of
//! its own, inside this process.

#![expect(clippy::disallowed_methods, reason = "the database's connection is a task of its own")]

use std::error::Error;
use std::fmt;
use std::time::Duration;

use quorlock::guarded::{Stale, sql};
use quorlock::testing::Nodes;
use quorlock::{Extend, Fence};
use tokio_postgres::{Client, NoTls};

const ITEM: &str = "stock:7";

struct Shop {
    database: Client,
    fences: sql::Table,
}

/// Why nothing was sold.
enum NotSold {
    /// A later holder of the lock has come.
    Stale(Stale),
    Database(tokio_postgres::Error),
}

impl From<tokio_postgres::Error> for NotSold {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error)
    }
}

impl fmt::Display for NotSold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale(stale) => stale.fmt(f),
            Self::Database(error) => error.fmt(f),
        }
    }
}

impl Shop {
    async fn open(url: &str) -> Result<Self, Box<dyn Error>> {
        let (database, connection) = tokio_postgres::connect(url, NoTls).await?;
        tokio::spawn(connection);
        // A holder that is stopped in its transaction keeps others waiting for no longer than this.
        let limits = "SET idle_in_transaction_session_timeout = '5s'; SET lock_timeout = '5s'";
        database.batch_execute(limits).await?;
        database.batch_execute("CREATE SCHEMA quorlock_example").await?;
        let fences = sql::Table::new("quorlock_example.fences")?;
        database.batch_execute(fences.create()).await?;
        let stock = "SET search_path TO quorlock_example;
            CREATE TABLE stock (item text PRIMARY KEY, pieces bigint NOT NULL);
            INSERT INTO stock VALUES ('stock:7', 10)";
        database.batch_execute(stock).await?;
        Ok(Self { database, fences })
    }

    /// Sells one piece, and tells how many are left. The fence is the first thing that the
    /// transaction brings: what follows is done only if no later holder has come.
    async fn sell(&mut self, fence: Fence) -> Result<i64, NotSold> {
        let work = self.database.transaction().await?;
        let fresh = work.query_opt(self.fences.advance(), &[&ITEM, &i64::from(fence)]).await?;
        if fresh.is_none() {
            let accepted = work.query_one(self.fences.accepted(), &[&ITEM]).await?.get(0);
            return Err(NotSold::Stale(Stale::new(fence, accepted)));
        }
        let sale = "UPDATE stock SET pieces = pieces - 1 WHERE item = $1 RETURNING pieces";
        let left = work.query_one(sale, &[&ITEM]).await?.get(0);
        work.commit().await?;
        Ok(left)
    }

    async fn left(&self) -> Result<i64, tokio_postgres::Error> {
        let left = "SELECT pieces FROM stock WHERE item = $1";
        Ok(self.database.query_one(left, &[&ITEM]).await?.get(0))
    }

    async fn close(self) -> Result<(), tokio_postgres::Error> {
        self.database.batch_execute("DROP SCHEMA quorlock_example CASCADE").await
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let Some(url) = std::env::args().nth(1) else {
        return Err("give the URL of a PostgreSQL, as in postgres://shop@127.0.0.1/shop".into());
    };
    let mut shop = Shop::open(&url).await?;
    let nodes = Nodes::new(3);
    let locker = |name| nodes.locker().prefix("shop:").owner(name).fenced(true).build();
    let (alice, bob) = (locker("alice")?, locker("bob")?);

    let short = alice.lock(ITEM).ttl(Duration::from_secs(1)).auto_extend(Extend::Off);
    let first = short.await?;
    let late = first.fence().ok_or("the locker was built without `fenced`")?;
    println!("alice has the lock with fence {late}, and is stopped before she sells");

    let second = bob.lock(ITEM).await?;
    let fence = second.fence().ok_or("the locker was built without `fenced`")?;
    match shop.sell(fence).await {
        Ok(left) => println!("bob has the lock with fence {fence}, and sells: {left} left"),
        Err(why) => println!("bob sells nothing: {why}"),
    }

    // She has looked at her lock before she was stopped: nothing here could tell her.
    match shop.sell(late).await {
        Ok(left) => println!("alice goes on, and sells too: {left} left"),
        Err(why) => println!("alice goes on, and sells nothing: {why}"),
    }
    println!("{} left", shop.left().await?);
    shop.close().await?;
    Ok(())
}
