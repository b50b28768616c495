//! When not to lock, and what belongs behind every lock.
//!
//! A lock costs a round trip before the work and another after it, one more thing that can be down,
//! and a wait for all other clients. Often the place where the data lives can do the same, exactly
//! and for less. Ask two questions first:
//!
//! 1. *What happens if two run at once?* If the answer is "a little work is wasted", a lock is a
//!    good tool and its rare failure is harmless. If it is "money is wrong", a lock can be the
//!    first line, and must not be the last.
//! 2. *Where is the thing that must not be done twice?* If it is in one database, that database
//!    already has the means to exclude. If it is in two places, or is a call to another party's
//!    service, a lock helps where nothing else is shared.
//!
//! | you want | use |
//! |---|---|
//! | the same request twice to count once | an idempotency key with a unique index |
//! | a counter, a stock, a balance to be right | one `UPDATE` with a condition |
//! | an edit not to overwrite another's | a version column |
//! | several rows to change together | a transaction with `SELECT … FOR UPDATE` |
//! | each job to be done by one worker | a queue, or `FOR UPDATE SKIP LOCKED` |
//! | one thing to exist | a `UNIQUE` constraint |
//! | one process of many to do a periodic job | a lock |
//! | one process to fill a cache | a lock, and a second look at the cache |
//! | not to call a slow service twice at once | a lock, and that service's idempotency key |
//!
//! # Idempotent interfaces
//!
//! A client that got no reply will ask again, minutes later, from another machine. No lock spans
//! that. A key that the client chooses, and keeps for its retries, does:
//!
//! ```sql
//! CREATE TABLE payment (
//!     request_key text PRIMARY KEY,      -- from the client; the same on every retry
//!     amount      bigint NOT NULL,
//!     outcome     text
//! );
//!
//! INSERT INTO payment (request_key, amount) VALUES ($1, $2)
//! ON CONFLICT (request_key) DO NOTHING;  -- 1 row: we do it; 0 rows: read what came of it
//! ```
//!
//! Keep the row for as long as a client may retry. A key with a TTL in a cache is the same idea
//! with a gap: the retry that comes after the TTL is done again.
//!
//! # Conditions instead of check and act
//!
//! Read, decide, write is a race with or without a lock. Put the decision into the write:
//!
//! ```sql
//! UPDATE item SET stock = stock - 1 WHERE id = $1 AND stock > 0;
//! -- 1 row: sold; 0 rows: sold out
//! ```
//!
//! This cannot sell the last piece twice, with or without a lock. Repeat it in the table, for a
//! statement written by hand next year: `CHECK (stock >= 0)`.
//!
//! # Optimistic versions
//!
//! For an edit that takes a person minutes, or a computation that reads much and writes little:
//!
//! ```sql
//! SELECT body, version FROM document WHERE id = $1;
//! -- … the edit …
//! UPDATE document SET body = $2, version = version + 1 WHERE id = $1 AND version = $3;
//! -- 0 rows: another was faster; read again, or show both
//! ```
//!
//! No client waits, nothing expires, no closed laptop holds anything. Where conflicts are frequent
//! and the work before the write is expensive, a lock in front saves wasted tries; keep the
//! version.
//!
//! # `SELECT … FOR UPDATE`
//!
//! ```sql
//! BEGIN;
//! SELECT balance FROM account WHERE id IN ($1, $2) ORDER BY id FOR UPDATE;
//! UPDATE account SET balance = balance - $3 WHERE id = $1;
//! UPDATE account SET balance = balance + $3 WHERE id = $2;
//! COMMIT;
//! ```
//!
//! The row locks end with the transaction, which ends with the session: no TTL, no clock, no lost
//! lock. Lock rows in one order (`ORDER BY id`), or two transfers meet in a deadlock. Keep calls to
//! other services out of the transaction: they hold the rows for as long as they take. There, put a
//! lock of ours in front of a short transaction.
//!
//! # Queues
//!
//! "Each worker locks the job it takes" is a queue made by hand. A queue gives the job to one
//! worker, gives it to another when that one dies, and counts the failures. A table can be one:
//!
//! ```sql
//! UPDATE job SET state = 'running', taken_at = now()
//! WHERE id = (SELECT id FROM job WHERE state = 'ready'
//!             ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
//! RETURNING id, payload;
//! ```
//!
//! A queue delivers at least once. So the handler is idempotent, or has one of the conditions
//! above. Work on one entity that must happen in order belongs to a partition, not to a lock: a
//! lock gives no order.
//!
//! # The last line, behind any lock
//!
//! A lock makes overlap rare. Only the store makes it harmless; [`promises`](super::promises) shows
//! the gap. So write the work as if there were no lock; the lock only keeps the conditions from
//! failing often:
//!
//! ```no_run
//! # struct Db;
//! # struct Order { version: i64 }
//! # type Result<T> = std::result::Result<T, quorlock::Error>;
//! # impl Db {
//! #     async fn read(&self, _: u64) -> Result<Order> { Ok(Order { version: 1 }) }
//! #     async fn execute(&self, _: &str, _: [i64; 2]) -> Result<u64> { Ok(1) }
//! # }
//! # async fn charge(_: &Order, _: String) -> Result<()> { Ok(()) }
//! # async fn example(locker: quorlock::Locker, db: Db) -> Result<bool> {
//! # let (db, locker) = (&db, &locker);
//! let id = 42_u64;
//! let written = locker
//!     .lock(format!("order:{id}"))
//!     .run(|held| async move {
//!         let order = db.read(id).await?;
//!         charge(&order, format!("charge-{id}")).await?; // idempotent by that key
//!         if !held.is_valid() {
//!             return Ok(0); // no sense in going on; the condition below would tell, too
//!         }
//!         let statement = "UPDATE orders SET state = 'paid', version = version + 1 \
//!                          WHERE id = $1 AND version = $2";
//!         db.execute(statement, [42, order.version]).await
//!     })
//!     .await?;
//! # Ok(written == 1) }
//! ```
//!
//! Three lines of defence, in the order in which they fail: the lock (a lease that can end), the
//! check of the clock (which a pause can follow), the version (which no pause can break). Zero rows
//! is an answer that the program has to expect, and to count: it is how often the other two failed.
//!
//! Where the store has no conditions (a file, a mail, a device), let the lock choose *who
//! prepares*, and make the visible step small and repeatable: write a new file and rename it, send
//! with a message id that the receiver drops when it comes twice.
//!
//! # Where a lock is right
//!
//! - Work that is expensive, and harmless when doubled: a report, a reindexing, a cache entry.
//! - A periodic job that any of many processes may run and one should.
//! - Steps in several systems that have no transaction in common, each of them idempotent.
//! - Another party's quota: one caller at a time to an interface that handles two badly.
//! - In front of a version or a condition, where conflicts would waste too much.
