//! The statements that the manual has for MariaDB and MySQL, on a real MariaDB.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests run holders as tasks, and fail on the spot"
)]

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder};
use support::{Mariadb, eventually_async, need_mariadb};

const ITEM: &str = "stock:7";

const SELL: &str = "UPDATE stock SET pieces = pieces - 1";

/// The statements, as the manual has them.
struct Statements {
    create: String,
    advance: String,
    accepted: String,
}

impl Statements {
    fn of_the_manual() -> Self {
        let manual = include_str!("../../../src/manual/fencing.rs");
        let blocks = manual.split("//! ```sql\n").skip(1);
        let block = blocks.filter_map(|block| block.split("//! ```").next());
        let text: Vec<String> = block
            .filter(|block| block.contains("ON DUPLICATE KEY"))
            .map(|block| block.replace("//!", ""))
            .collect();
        let [text] = &text[..] else { panic!("the manual has one such block: {text:?}") };
        let statement = |first: &str| {
            let mut all = text.split(';').map(str::trim);
            all.find(|statement| statement.starts_with(first)).unwrap().to_owned()
        };
        Self {
            create: statement("CREATE TABLE"),
            advance: statement("INSERT INTO"),
            accepted: statement("SELECT fence"),
        }
    }

    /// Brings a fence to the table, in a transaction. Returns the one that stands.
    async fn advance(&self, work: &mut Conn, fence: u64) -> u64 {
        work.exec_drop(&self.advance, (ITEM, fence)).await.unwrap();
        work.exec_first(&self.accepted, (ITEM,)).await.unwrap().unwrap()
    }
}

async fn connect(server: &Mariadb) -> Conn {
    let at = OptsBuilder::default().ip_or_hostname("127.0.0.1").tcp_port(server.port());
    let mut conn = Conn::new(at.prefer_socket(false)).await.unwrap();
    conn.query_drop("CREATE DATABASE IF NOT EXISTS shop").await.unwrap();
    conn.query_drop("USE shop").await.unwrap();
    conn
}

/// Ten pieces, and no fence yet.
async fn stock(conn: &mut Conn) -> Statements {
    let statements = Statements::of_the_manual();
    conn.query_drop(&statements.create).await.unwrap();
    conn.query_drop("CREATE TABLE stock (item varbinary(255) PRIMARY KEY, pieces bigint)")
        .await
        .unwrap();
    conn.query_drop("INSERT INTO stock VALUES ('stock:7', 10)").await.unwrap();
    statements
}

async fn pieces(conn: &mut Conn) -> u64 {
    conn.query_first("SELECT pieces FROM stock").await.unwrap().unwrap()
}

async fn begin(conn: &mut Conn, isolation: &str) {
    let set = format!("SET TRANSACTION ISOLATION LEVEL {isolation}");
    conn.query_drop(set).await.unwrap();
    conn.query_drop("START TRANSACTION").await.unwrap();
}

const LEVELS: [&str; 4] = ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];

#[tokio::test]
async fn the_highest_fence_stands_whatever_order_they_come_in() {
    let server = Mariadb::start(&need_mariadb!());
    let mut conn = connect(&server).await;
    let statements = stock(&mut conn).await;
    let highest = 9_007_199_254_740_991;
    for isolation in LEVELS {
        conn.query_drop("DELETE FROM quorlock_fences").await.unwrap();
        for (fence, stands) in [(42, 42), (41, 42), (42, 42), (43, 43), (highest, highest)] {
            begin(&mut conn, isolation).await;
            assert_eq!(statements.advance(&mut conn, fence).await, stands, "{isolation}");
            conn.query_drop("COMMIT").await.unwrap();
        }
    }
}

/// The row of the fence is locked: the later holder waits for the one before, which has its turn;
/// and one that comes behind the later one finds a higher number than its own.
#[tokio::test]
async fn the_next_holder_waits_for_a_transaction_that_is_under_way() {
    let server = Mariadb::start(&need_mariadb!());
    for isolation in LEVELS {
        let (mut first, mut second, mut look) =
            (connect(&server).await, connect(&server).await, connect(&server).await);
        look.query_drop("DROP TABLE IF EXISTS stock, quorlock_fences").await.unwrap();
        let statements = stock(&mut look).await;
        begin(&mut first, isolation).await;
        assert_eq!(statements.advance(&mut first, 5).await, 5);

        begin(&mut second, isolation).await;
        let sold = tokio::spawn(async move {
            let statements = Statements::of_the_manual();
            assert_eq!(statements.advance(&mut second, 6).await, 6);
            // What it reads behind its fence is what the holder before has written.
            let left = pieces(&mut second).await;
            second.exec_drop("UPDATE stock SET pieces = ?", (left - 1,)).await.unwrap();
            second.query_drop("COMMIT").await.unwrap();
        });
        eventually_async("the second to wait", async || {
            let waits = "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'";
            look.query_first::<(String, u64), _>(waits).await.unwrap().unwrap().1 > 0
        })
        .await;
        first.query_drop(SELL).await.unwrap();
        first.query_drop("COMMIT").await.unwrap();
        sold.await.unwrap();
        assert_eq!(pieces(&mut look).await, 8, "{isolation}");

        begin(&mut first, isolation).await;
        assert_eq!(statements.advance(&mut first, 5).await, 6, "{isolation}: it is too late");
        first.query_drop("ROLLBACK").await.unwrap();
    }
}

/// Why the fence comes first. What a plain `SELECT` has read before it may be old, and a sale is
/// written over; where snapshots are isolated, as MariaDB has it from 11.6.2 on, the fence fails.
#[tokio::test]
async fn what_is_read_before_the_fence_is_not_protected() {
    let server = Mariadb::start(&need_mariadb!());
    let (mut first, mut second) = (connect(&server).await, connect(&server).await);
    let statements = stock(&mut second).await;
    let levels = ["READ COMMITTED", "REPEATABLE READ"];
    for (is_isolated, level) in levels.into_iter().flat_map(|level| [(0, level), (1, level)]) {
        let set = format!("SET SESSION innodb_snapshot_isolation = {is_isolated}");
        first.query_drop(set).await.unwrap();
        second.query_drop("UPDATE stock SET pieces = 10").await.unwrap();
        second.query_drop("DELETE FROM quorlock_fences").await.unwrap();
        statements.advance(&mut second, 4).await;
        begin(&mut first, level).await;
        let read = pieces(&mut first).await;

        begin(&mut second, level).await;
        assert_eq!(statements.advance(&mut second, 5).await, 5);
        second.query_drop(SELL).await.unwrap();
        second.query_drop("COMMIT").await.unwrap();

        let advanced = first.exec_drop(&statements.advance, (ITEM, 6)).await;
        let fails = is_isolated == 1 && level == "REPEATABLE READ";
        assert_eq!(advanced.is_err(), fails, "{level}: {advanced:?}");
        if advanced.is_ok() {
            // The first `SELECT` has settled what all see that come behind it, the fence or not.
            let behind = if level == "REPEATABLE READ" { read } else { read - 1 };
            assert_eq!(pieces(&mut first).await, behind, "{level}");
            first.exec_drop("UPDATE stock SET pieces = ?", (read - 1,)).await.unwrap();
        }
        first.query_drop("COMMIT").await.unwrap();
        assert_eq!(pieces(&mut second).await, 9, "{level}: one of two sales, or the only one");
    }
}

/// Why the fence is read `FOR UPDATE`: a plain `SELECT` would answer from the snapshot before it.
#[tokio::test]
async fn a_late_holder_that_has_read_before_its_fence_is_told_the_higher_one() {
    let server = Mariadb::start(&need_mariadb!());
    let (mut late, mut later) = (connect(&server).await, connect(&server).await);
    let statements = stock(&mut later).await;
    late.query_drop("SET SESSION innodb_snapshot_isolation = 0").await.unwrap();
    statements.advance(&mut later, 4).await;
    begin(&mut late, "REPEATABLE READ").await;
    pieces(&mut late).await;
    statements.advance(&mut later, 6).await;
    assert_eq!(statements.advance(&mut late, 5).await, 6);
}

/// A holder is stopped in its transaction, and keeps the fence's row locked.
#[tokio::test]
async fn the_idle_limit_ends_a_stopped_transaction_and_nothing_of_it_is_written() {
    let server = Mariadb::start(&need_mariadb!());
    let (mut first, mut second) = (connect(&server).await, connect(&server).await);
    let statements = stock(&mut second).await;
    first.query_drop("SET SESSION idle_transaction_timeout = 1").await.unwrap();
    begin(&mut first, "REPEATABLE READ").await;
    assert_eq!(statements.advance(&mut first, 5).await, 5);
    first.query_drop(SELL).await.unwrap();

    begin(&mut second, "REPEATABLE READ").await;
    assert_eq!(statements.advance(&mut second, 6).await, 6);
    second.query_drop("COMMIT").await.unwrap();
    assert!(first.query_drop("COMMIT").await.is_err());
    assert_eq!(pieces(&mut second).await, 10);
}
