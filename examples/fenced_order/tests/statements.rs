//! The statements of `guarded::sql` on a real PostgreSQL: whatever order transactions come in, none
//! writes behind a later holder's.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests run holders as tasks, and fail on the spot"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use quorlock::guarded::sql::Table;
use support::{Postgres, eventually_async, need_postgres};
use tokio::sync::Barrier;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls, Transaction};

const ITEM: &str = "stock:7";

async fn connect(server: &Postgres) -> Client {
    let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Ten pieces, and no fence yet.
async fn stock(client: &Client) -> Table {
    let fences = Table::new("fences").unwrap();
    client.batch_execute(fences.create()).await.unwrap();
    client.batch_execute(fences.create()).await.unwrap();
    let stock = "CREATE TABLE stock (item text PRIMARY KEY, pieces bigint);
        INSERT INTO stock VALUES ('stock:7', 10);
        ALTER TABLE stock ADD COLUMN fence bigint NOT NULL DEFAULT 0";
    client.batch_execute(stock).await.unwrap();
    fences
}

async fn pieces(client: &Client) -> i64 {
    client.query_one("SELECT pieces FROM stock", &[]).await.unwrap().get(0)
}

async fn advance(work: &Transaction<'_>, fences: &Table, fence: i64) -> u64 {
    work.execute(fences.advance(), &[&ITEM, &fence]).await.unwrap()
}

async fn begin<'a>(client: &'a mut Client, isolation: &str) -> Transaction<'a> {
    let work = client.transaction().await.unwrap();
    work.batch_execute(&format!("SET TRANSACTION ISOLATION LEVEL {isolation}")).await.unwrap();
    work
}

const SELL: &str = "UPDATE stock SET pieces = pieces - 1";

#[tokio::test]
async fn a_fence_below_the_one_that_stands_changes_no_row() {
    let server = Postgres::start(&need_postgres!());
    let client = connect(&server).await;
    let fences = stock(&client).await;
    let several = [(42_i64, 1), (41, 0), (42, 1), (43, 1), (42, 0), (9_007_199_254_740_991, 1)];
    for (fence, rows) in several {
        let changed = client.execute(fences.advance(), &[&ITEM, &fence]).await.unwrap();
        assert_eq!(changed, rows, "{fence}");
    }
    for (fence, rows) in [(42_i64, 1), (42, 0), (41, 0), (43, 1)] {
        let changed = client.execute(fences.advance_once(), &[&"other", &fence]).await.unwrap();
        assert_eq!(changed, rows, "{fence}, once");
    }
    for (resource, stands) in [(ITEM, 9_007_199_254_740_991_i64), ("other", 43)] {
        let row = client.query_one(fences.accepted(), &[&resource]).await.unwrap();
        assert_eq!(row.get::<_, i64>(0), stands);
    }
}

/// The row of the fence is locked: the later holder waits for the one before, which has its turn.
#[tokio::test]
async fn the_next_holder_waits_for_a_transaction_that_is_under_way() {
    let server = Postgres::start(&need_postgres!());
    let (mut first, mut second, look) =
        (connect(&server).await, connect(&server).await, connect(&server).await);
    let fences = stock(&look).await;
    let before = begin(&mut first, "READ COMMITTED").await;
    assert_eq!(advance(&before, &fences, 5).await, 1);

    let later = fences.clone();
    let sold = tokio::spawn(async move {
        let work = begin(&mut second, "READ COMMITTED").await;
        assert_eq!(advance(&work, &later, 6).await, 1);
        // What it reads behind its fence is what the holder before has written.
        let left: i64 = work.query_one("SELECT pieces FROM stock", &[]).await.unwrap().get(0);
        work.execute("UPDATE stock SET pieces = $1", &[&(left - 1)]).await.unwrap();
        work.commit().await.unwrap();
    });
    eventually_async("the second to wait", async || {
        let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted";
        look.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) > 0
    })
    .await;
    before.execute(SELL, &[]).await.unwrap();
    before.commit().await.unwrap();
    sold.await.unwrap();
    assert_eq!(pieces(&look).await, 8);
    let late = begin(&mut first, "READ COMMITTED").await;
    assert_eq!(advance(&late, &fences, 5).await, 0);
}

/// A holder has begun, and read, and is stopped; another one sells. Whatever the isolation, the
/// first one writes nothing then, and is told so.
#[tokio::test]
async fn who_is_late_writes_nothing_at_any_isolation() {
    let server = Postgres::start(&need_postgres!());
    let (mut first, mut second) = (connect(&server).await, connect(&server).await);
    let fences = stock(&second).await;
    let mut left = 10;
    for isolation in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        let stopped = begin(&mut first, isolation).await;
        stopped.query_one("SELECT pieces FROM stock", &[]).await.unwrap();

        let fence = 100 - left;
        let work = begin(&mut second, isolation).await;
        assert_eq!(advance(&work, &fences, fence).await, 1);
        work.execute(SELL, &[]).await.unwrap();
        work.commit().await.unwrap();
        left -= 1;

        let late = stopped.execute(fences.advance(), &[&ITEM, &(fence - 1)]).await;
        if isolation == "READ COMMITTED" {
            assert_eq!(late.unwrap(), 0);
        } else {
            let why = late.unwrap_err();
            assert_eq!(why.code(), Some(&SqlState::T_R_SERIALIZATION_FAILURE), "{isolation}");
        }
        stopped.rollback().await.unwrap();
        let again = begin(&mut first, isolation).await;
        assert_eq!(advance(&again, &fences, fence - 1).await, 0, "{isolation}, begun anew");
        again.rollback().await.unwrap();
        assert_eq!(pieces(&second).await, left, "{isolation}");
    }
}

/// Why the fence comes first. By PostgreSQL's own isolation what was read before it may be old, and
/// a sale is then written over; by the others the transaction fails.
#[tokio::test]
async fn what_is_read_before_the_fence_is_not_protected() {
    let server = Postgres::start(&need_postgres!());
    let (mut first, mut second) = (connect(&server).await, connect(&server).await);
    let fences = stock(&second).await;
    for (isolation, is_noticed) in [("READ COMMITTED", false), ("REPEATABLE READ", true)] {
        second.execute("UPDATE stock SET pieces = 10", &[]).await.unwrap();
        let too_early = begin(&mut first, isolation).await;
        let read: i64 = too_early.query_one("SELECT pieces FROM stock", &[]).await.unwrap().get(0);

        let before = begin(&mut second, isolation).await;
        assert_eq!(advance(&before, &fences, 5).await, 1);
        before.execute(SELL, &[]).await.unwrap();
        before.commit().await.unwrap();

        let advanced = too_early.execute(fences.advance(), &[&ITEM, &6_i64]).await;
        assert_eq!(advanced.is_err(), is_noticed, "{isolation}");
        if advanced.is_ok() {
            too_early.execute("UPDATE stock SET pieces = $1", &[&(read - 1)]).await.unwrap();
            too_early.commit().await.unwrap();
        } else {
            too_early.rollback().await.unwrap();
        }
        assert_eq!(pieces(&second).await, 9, "{isolation}");
        second.execute("DELETE FROM fences", &[]).await.unwrap();
    }
}

/// The fence as a column of the row that is written, by one statement.
#[tokio::test]
async fn a_column_guards_its_own_row() {
    let server = Postgres::start(&need_postgres!());
    let (mut first, second) = (connect(&server).await, connect(&server).await);
    stock(&second).await;
    let sell = "UPDATE stock SET pieces = pieces - 1, fence = $2 WHERE item = $1 AND fence <= $2";
    for (fence, rows) in [(5_i64, 1), (5, 1), (4, 0), (7, 1), (6, 0)] {
        assert_eq!(second.execute(sell, &[&ITEM, &fence]).await.unwrap(), rows, "{fence}");
    }
    assert_eq!(pieces(&second).await, 7);

    // One that finds the row being written waits, and then compares with what was written.
    let work = begin(&mut first, "READ COMMITTED").await;
    assert_eq!(work.execute(sell, &[&ITEM, &9_i64]).await.unwrap(), 1);
    let late = tokio::spawn(async move {
        let rows = second.execute(sell, &[&ITEM, &8_i64]).await.unwrap();
        (rows, second)
    });
    let look = connect(&server).await;
    eventually_async("the other to wait", async || {
        let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted";
        look.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) > 0
    })
    .await;
    work.commit().await.unwrap();
    let (rows, second) = late.await.unwrap();
    assert_eq!((rows, pieces(&second).await), (0, 6));
}

/// A holder is stopped in its transaction, and keeps the fence's row locked: its session's limit
/// ends that, and nothing of it is written.
#[tokio::test]
async fn who_is_stopped_in_its_transaction_keeps_no_one_waiting_for_good() {
    let server = Postgres::start(&need_postgres!());
    let (mut first, mut second) = (connect(&server).await, connect(&server).await);
    let fences = stock(&second).await;
    let limit = "SET idle_in_transaction_session_timeout = '100ms'";
    first.batch_execute(limit).await.unwrap();
    let stopped = begin(&mut first, "READ COMMITTED").await;
    assert_eq!(advance(&stopped, &fences, 5).await, 1);
    stopped.execute(SELL, &[]).await.unwrap();

    let work = begin(&mut second, "READ COMMITTED").await;
    assert_eq!(advance(&work, &fences, 6).await, 1);
    work.commit().await.unwrap();
    assert!(stopped.commit().await.is_err());
    assert_eq!(pieces(&second).await, 10);
}

/// Many holders, who write when they come to it: what was written rises.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_many_holders_write_rises() {
    let server = Postgres::start(&need_postgres!());
    let client = connect(&server).await;
    let fences = stock(&client).await;
    let log = "CREATE TABLE log (id bigserial PRIMARY KEY, fence bigint)";
    client.batch_execute(log).await.unwrap();
    let (last, all) = (Arc::new(AtomicI64::new(0)), Arc::new(Barrier::new(8)));
    let mut writers = Vec::new();
    for _ in 0..8 {
        let (mut client, fences) = (connect(&server).await, fences.clone());
        let (last, all) = (last.clone(), all.clone());
        writers.push(tokio::spawn(async move {
            let mut refused = 0;
            for _ in 0..50 {
                // Ordering: a counter, and nothing is published through it.
                let fence = last.fetch_add(1, Ordering::Relaxed) + 1;
                // Each has its fence before the first of them writes.
                all.wait().await;
                let work = client.transaction().await.unwrap();
                if advance(&work, &fences, fence).await == 1 {
                    work.execute("INSERT INTO log (fence) VALUES ($1)", &[&fence]).await.unwrap();
                    work.commit().await.unwrap();
                } else {
                    refused += 1;
                }
            }
            refused
        }));
    }
    let mut refused = 0;
    for writer in writers {
        refused += writer.await.unwrap();
    }
    let rows = client.query("SELECT fence FROM log ORDER BY id", &[]).await.unwrap();
    let written: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
    assert!(written.is_sorted(), "{written:?}");
    assert_eq!(written.len() + refused, 400);
    assert!(refused > 0, "there was nothing to refuse");
    assert_eq!(written.last(), Some(&400), "the highest is never refused");
}
