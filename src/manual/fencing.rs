//! Fences: the number that lets a store refuse a holder who comes too late.
//!
//! # The argument
//!
//! A lock with a time limit can end while its holder is stopped: by a pause of its process, by a
//! machine that is suspended, by a slow disk. The holder goes on and writes, and does not know.
//! Kleppmann's *How to do distributed locking* (2016) shows it of Redlock, and that better clocks
//! would not help, for the pause can fall between the last check and the write. His cure: each
//! holder gets a number above the one before, every write carries it, and the store refuses a
//! number below the highest that it has seen.
//!
//! Sanfilippo's reply, *Is Redlock safe?* (2016), grants the pause, and asks two things. Which
//! store can compare such a number, and could not as well compare a version, or the lock's random
//! value? And does the number have to rise in order, where any check at the store already excludes?
//! Both have a point: a store that can check makes a lock a matter of efficiency, and a lock
//! without such a store is never more than that.
//!
//! What a fence adds to a version column: it is known *before* anything is read, it is the same for
//! all that one holder writes, in several rows and several stores, and an old holder's write is
//! refused also where it does not overlap the new one's. **A version column is enough** where each
//! write replaces one row that the same holder has read; see
//! [`when_not_to_lock`](super::when_not_to_lock).
//!
//! # How to use it
//!
//! ```no_run
//! # async fn example(locker: quorlock::Locker) -> Result<(), quorlock::Error> {
//! let guard = locker.lock("order:42").fenced().await?;
//! if let Some(fence) = guard.fence() {
//!     println!("every write under this lock carries {fence}");
//! }
//! # Ok(()) }
//! ```
//!
//! [`LockerBuilder::fenced`](crate::LockerBuilder::fenced) does it for every lock, and for what is
//! adopted. `quorlock lock --fenced` tells its command, as `QUORLOCK_FENCE`.
//!
//! # The guarded write
//!
//! Beside the data the store keeps the highest fence that has come. Whatever is done under the lock
//! compares, in the same step: *not below it*, where one holder does several things; *above it*,
//! where it does one. What is refused by a higher number is no error of the store's: the lock was
//! lost, and whatever else was done under it is in doubt. Stop, and begin anew with a new lock.
//! What is refused by its own number was done before, or begun.
//!
//! **First the fence, then read, then write.** A later holder that has read, and has not brought
//! its fence to the store, stops no earlier one: that writes behind its back, and the later one
//! then writes over it. For a lock of several keys the fence goes to each of them.
//!
//! **PostgreSQL.** [`guarded::sql`](crate::guarded::sql) has the statements, for any driver, and
//! says which isolation is enough, and which limits keep a holder that is stopped in its
//! transaction from stopping all others. The example `examples/fenced_order` uses it, and its tests
//! try the statements on PostgreSQL 18, that of the table at each level of isolation.
//!
//! **Redis and Valkey.** [`guarded::Command`](crate::guarded::Command): a script compares, and
//! reads or writes, on any server, also on one that keeps no locks.
//!
//! **MySQL, MariaDB** (InnoDB). An upsert takes no condition, so the statements lock the fence's
//! row and then compare. Every level of isolation is enough if the fence is the transaction's first
//! statement. At `REPEATABLE READ`, the default, the first plain `SELECT`, of whatever table,
//! settles what all later ones see: with one before the fence, what is read *behind* the fence is
//! old as well, and the write succeeds all the same. Use `READ COMMITTED`, or read with `FOR
//! UPDATE`. (MariaDB's `innodb_snapshot_isolation`, on by default from 11.6.2, has the fence fail
//! then, at that level alone.)
//!
//! ```sql
//! CREATE TABLE quorlock_fences (resource varbinary(255) PRIMARY KEY, fence bigint NOT NULL);
//!
//! START TRANSACTION;
//! INSERT INTO quorlock_fences (resource, fence) VALUES (?, ?)
//!     ON DUPLICATE KEY UPDATE fence = GREATEST(fence, VALUES(fence));
//! SELECT fence FROM quorlock_fences WHERE resource = ? FOR UPDATE;
//! -- our own number: go on, read and write; a higher one, or no row: ROLLBACK
//! COMMIT;
//! ```
//!
//! A holder that is stopped in its transaction keeps that row locked: by default for eight hours,
//! while each other holder fails after 50 s. Set both limits for each session:
//! `idle_transaction_timeout = 5` (MySQL has only `wait_timeout`) and `innodb_lock_wait_timeout =
//! 5`. **Roll back after any error**: a lock timeout (1205) undoes its statement and not the
//! transaction. The tests of `examples/fenced_order` run these statements, and
//! `idle_transaction_timeout`, on MariaDB as Debian has it (10.11 at last). MySQL was not tried.
//!
//! The following are recipes that are not tried here.
//!
//! **Object stores** with conditional writes. Keep the fence *in the object's content*: read it
//! with its `ETag`, give up if its fence is higher than ours, else write it with our fence and
//! `If-Match: <ETag>`, or with `If-None-Match: *` where there was none. After `412 Precondition
//! Failed` or `409 Conflict` begin at the reading. Metadata will not do where the tag is a digest
//! of the content, as in S3: two objects that differ in their fence alone have the same one. Do not
//! delete such an object; leave an empty one with its fence. To bring the fence before reading is
//! to write the object once more as it is, with our fence.
//!
//! **A service of your own** takes the number as a parameter of each request, reads included,
//! compares it in the transaction in which it reads or writes, and answers `409 Conflict` with the
//! number that it has accepted.
//!
//! **Files.** A rename has no condition. Have one process write, which keeps the fence beside the
//! file, and others ask it; or take `flock` on a second file around reading the fence, comparing,
//! and renaming, where that file system has locks that work for all its clients.
//!
//! # What is promised
//!
//! | | |
//! |---|---|
//! | no two holders have the same fence | as long as nodes forget no fence, whatever clocks say |
//! | who asks for a lock after another got its fence gets a higher one | likewise |
//! | the same where a node forgets all it knows | if its clock is past the fences that it had |
//! | the same where a node goes back in time | no: a restore, a failover, a snapshot |
//! | the same where a node's clock is set back | by up to a week, if it has forgotten nothing |
//! | that a store refuses what is late | no: the store must compare |
//!
//! A node of a [`Volatile`](crate::Durability::Volatile) deployment that has forgotten all fences
//! takes no part until its clock is past them, unless that was set back before, or it was [put into
//! service](crate::Locker::initialise) by hand. One that is restarted from a snapshot has forgotten
//! some, and its fence may be too low.
//!
//! `tests/fence_model.rs` looks at every order of events with three nodes and two clients, each
//! message late, doubled or lost, and each lock ended at any moment, with two tokens for each and
//! with nodes that forget; it also leaves out five rules in turn, and prints what then goes
//! wrong. The week and clocks that are set back are not in it.
//!
//! The simulation breaks the assumptions of the leases, and so gives locks two holders: it sets the
//! clocks of a majority ahead, or has nodes forget that are away until their clocks are past the
//! fences; in half of the seeds the clocks of clients and nodes are wrong from the start, by up to
//! 50 ms or two seconds each (where nodes forget, theirs by no more than 50 ms); and it stops
//! holders, who then write without a look at their lock. A model of a store that compares the
//! fences has refused each write that came late. Where nodes forget while their clocks are set back
//! by seconds, fences are too low: a test finds that, too. So does it find nodes that compare no
//! tokens, nodes that begin at zero after they have forgotten, and a fence that only a minority has
//! taken.
//!
//! # How it works
//!
//! Each node keeps a fence beside the lock, under a key that ends in `quorlock:fence`, in the same
//! slot of a cluster. The nodes are asked to take a *token*: each takes it if the lock is held
//! there with our value, and if its fence is below. One script sets a lock of one key and takes its
//! token; where that is not so, the token follows right behind what acquires: for several keys, for
//! what was waited for in a queue, and for what is adopted. A token that a majority has taken is
//! the fence. Two such majorities share a node, and there one token came after the other and was
//! above it. The first token is of this process's clock in microseconds, a little ahead, so that as
//! a rule the first is taken, and the lock costs no more round trips than without a fence; where it
//! is too low, the nodes tell where they stand, the next one is above that, and the locker picks
//! higher ones from then on, up to five seconds ahead.
//!
//! A fence lives until the node's clock is past it by a week. One that is missing counts as that
//! clock's time: so dropping it changes nothing, unless the clock is set back by more than that. A
//! node takes no token that lies more than ten seconds ahead of its clock (or the longest TTL, if
//! that is less, of a `Volatile` deployment), and no first one, which is of a client's clock, that
//! lies more than half as far ahead: so a client or a node whose clock is wrong cannot carry the
//! fences with it. Wherever the clocks of a majority of the nodes that can be reached are no
//! further apart than that half, a fenced lock can be had, whatever clients' clocks say; where they
//! are further apart than the whole, it may not. Where clocks were set back by more, a node that
//! has missed the last fences takes none before its clock has caught up with them.
//!
//! # What it costs
//!
//! A script on each node in the place of `SET`, a key for each lock that was to be fenced within a
//! week, and the right to `TIME`. On five nodes of one machine an acquisition takes 69 µs then,
//! where it takes 46 without (`benches/record/fenced-2026-11-26.md`). A lock that is not fenced
//! costs and writes nothing of this.
