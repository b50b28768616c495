//! What a lock promises, under which assumptions, and what is left when one of them fails.
//!
//! # The promise
//!
//! A lock here is a *lease*. From the return of `locker.lock(key).await` to the guard's
//! [`deadline`](crate::LockGuard::deadline), no other client that follows the same protocol on the
//! same nodes holds the key. After the deadline another client may hold it, whatever the first
//! holder is still doing. The promise rests on the assumptions below and on nothing else.
//!
//! The deadline errs on the safe side at each step:
//!
//! - Each node counts the TTL from the arrival of the command. We count it from before sending.
//! - Of the nodes that granted, the majority with the longest leases counts; the lock ends when the
//!   first of these leases ends.
//! - The drift margin is subtracted: 1 % of the TTL and 2 ms, unless
//!   [`drift`](crate::LockerBuilder::drift) says otherwise.
//! - The clock is read again after the reply that decided. A majority that came too late is no
//!   lock: it is released, and the error [`is_too_slow`](crate::Error::is_too_slow).
//!
//! # What you can rely on
//!
//! - **One holder at a time**, until the deadline, under the assumptions.
//! - **Failure leaves nothing behind.** An attempt that failed, timed out or was dropped is undone:
//!   at once on a node that can be reached, else when it can be, and at its TTL at the latest.
//! - **A release deletes our own value** and never a later holder's key. (`release_after` lets our
//!   key expire later instead. A node that was not reached keeps it for the rest of its TTL.)
//! - **An extension prolongs a key that is still ours.** It never shortens one. It sets a missing
//!   key again in one case only: a node came back empty, and a majority without that node has just
//!   proved to hold the lock. If an extension fails, what was valid before it stays valid.
//! - **A loss is reported before another client may hold the lock**, whatever the network does, and
//!   at once when a majority is known to be gone. `lost()`, `is_valid()` and a token agree on its
//!   instant, a margin before the deadline, and it is final. The margin is 3 to 20 ms, or 1 % of
//!   the TTL where that is more, or 10 µs for each lock that the locker holds where that is more,
//!   up to a quarter of the time: if all are lost together, the waiting tasks run one after the
//!   other. The report needs no task of ours: it does not wait for extensions, and it outlives the
//!   runtime that extended the lock.
//! - **A token adopts once.** Adopting a lock gives it a new value, so the token is useless
//!   afterwards, and late commands of the former holder delete nothing. After a failed adoption the
//!   token still holds the lock. Two guards are never valid at once, even if the former one still
//!   lives.
//! - **Waiting ends** at the requested time, plus a last try and a last look at the holder: a node
//!   timeout or two.
//! - **An error names every node** and what each of them did: [`nodes`](crate::Error::nodes).
//!
//! # What it does not promise
//!
//! - **That your work stops.** A lease ends by a clock. A thread that computes, a statement that
//!   the database has already received, a mail that is on its way: all of them go on.
//! - **An order.** Waiters come in the order of their arrival at the node that keeps the queue, as
//!   long as that can be reached: see [`choosing`](super::choosing) for who may come first.
//! - **A lock while a majority is away.** Then no client gets one. That is the price of exclusion.
//! - **An early end.** The lock of a crashed process is free when its TTL is over, not before.
//! - **Protection from clients that do not lock.** `DEL`, `FLUSHALL`, a `SET` without `NX`, a
//!   script that tidies up: the server executes them. We notice at the next extension or at the
//!   release. The same holds for a forced release, and for one by token from another process while
//!   the guard lives.
//! - **Reentrancy by itself.** A task that asks twice for the same key waits for itself, unless it
//!   asks [within](crate::LockRequest::within) the guard.
//! - **Anything about the store that you write to.** See the last section.
//!
//! # The assumptions, and what a breach of each costs
//!
//! - **Server clocks run at our rate**, within the drift margin. One that runs fast ends its key
//!   early. If a majority does, two clients hold the lock for as long as those clocks ran ahead.
//! - **No voting server's clock is set ahead.** Servers expire keys by the time of day. A step
//!   forward (an administrator's `date`, a time daemon that steps, a restored snapshot) ends keys
//!   at once on that server, as if it had forgotten them. On a majority that makes two holders
//!   until our deadline. With an odd number of servers a step on one can do it, too: a lock with a
//!   bare majority, because another server could not be reached, shares a single server with the
//!   next lock's majority. If that server's clock was set, both hold. (Of four servers, any two
//!   majorities share two.) The simulation finds this within some ten seeds:
//!   `one_clock_set_ahead_gives_away_a_lock_that_just_has_its_majority`. After a step backward,
//!   keys live longer: no client gets the lock, and exclusion holds. Seen on Redis 7.0.15: after a
//!   step of −1 h, a key of 30 s had 3,660 s to live; after +31 s it was gone.
//! - **A node that votes has not forgotten.** A restart without persistence, a power cut with
//!   `appendfsync everysec`, `FLUSHALL`, eviction, a failover to a replica: the node can grant
//!   again what it had granted. Two majorities then need not share a node that remembers: two
//!   holders, until the first one's deadline. [`Durability::Volatile`](crate::Durability) keeps
//!   such a node from voting for the longest TTL, if all clients name the same one. Against
//!   eviction it does not help, unless the epoch is evicted too. See [`choosing`](super::choosing).
//! - **The nodes fail independently.** Two on one machine, one disk or one switch fail as one. A
//!   single fault then takes two votes, or makes two nodes forget at the same time.
//! - **All clients name the same nodes and prefix.** Half-way through a change from `a, b, c` to
//!   `c, d, e`, one client holds `a, b` and another `d, e`: two holders, while the change lasts.
//! - **The holder checks before each step that others see**, and acts within the time it saw. A
//!   pause between the check and the step (a stopped process, a moved virtual machine, a slow disk)
//!   lets the step happen after the end: two writers.
//!
//! Two more, which many implementations need, are not needed here:
//!
//! - *A steady time of day on the client.* Validity is not computed from it. On Linux the lease
//!   runs on `CLOCK_BOOTTIME`, which goes on while the machine is suspended. The time of day is
//!   watched as well: a jump forward ends the lease early, a step backward changes nothing.
//! - *Timers that are punctual.* [`is_valid`](crate::LockGuard::is_valid) reads the clocks at the
//!   moment of the call. It is right even when every timer of the process is late.
//!
//! # Yes, no, and unknown
//!
//! A command to a server has three outcomes. Taking the third for the second is the most common
//! defect of lock clients.
//!
//! | outcome | what came back | what follows |
//! |---|---|---|
//! | granted | `+OK`, `:1` | the vote counts |
//! | refused | a nil, or an error raised before anything was done | nothing to undo |
//! | unknown | silence, a broken connection, any other error | it is undone |
//!
//! The errors that count as a refusal are a closed list (`OOM`, `READONLY`, `LOADING`, `NOAUTH` and
//! their like). An error that is not on it may have come after the write.
//!
//! The undo is a compare-and-delete, sent behind its command on the same connection, so it cannot
//! arrive first. If that connection dies, the next one has the server end the old one before it
//! undoes anything. [`Outcome`](crate::report::Outcome) shows which of the three each node had.
//!
//! A release answers about the past:
//!
//! | [`Release`](crate::Release) | a majority says | so the work |
//! |---|---|---|
//! | `Released` | the key was ours and is deleted | was alone to the end |
//! | `Expired` | there is no such key | may have overlapped |
//! | `Taken` | the key has another client's value | has probably overlapped |
//! | `Unknown` | nothing: too few answered | is not known to have been alone |
//!
//! # Loss
//!
//! A lock is lost when its time has run out, or when a majority no longer holds it. Ways to handle
//! that, the most convenient first:
//!
//! - `run(…)` drops the work at an await point and returns an error that
//!   [`is_lost`](crate::Error::is_lost). With `.on_loss(OnLoss::Signal)` it only signals the work.
//! - `guard.protect(future).await` does the same for one future.
//! - `guard.lost().await` in a `select!`, or the token from `guard.cancellation()` (feature
//!   `tokio-util`), for work that has its own way to stop.
//! - [`is_valid`](crate::LockGuard::is_valid) before each step that others can see.
//!
//! Dropped work stops *here*. A statement that the database has received goes on there: give it a
//! time limit below [`remaining`](crate::LockGuard::remaining).
//!
//! # The last gap, and fencing
//!
//! ```text
//! A: is_valid() is true
//! A: (stopped for a minute)
//!                               B: takes the lock, writes, releases
//! A: writes over it
//! ```
//!
//! No lock closes this gap, because the check and the write are two steps, and any amount of time
//! fits between them. Kleppmann's *How to do distributed locking* (2016) says it of Redlock. The
//! Redis documentation, in *Distributed Locks with Redis*, links that analysis and the reply to it,
//! and advises the cure: a *fencing token*, a number that grows with every holder and that the
//! store compares before it writes.
//!
//! A lock that is asked for as [`fenced`](crate::LockRequest::fenced) has such a number, its
//! [`fence`](crate::LockGuard::fence); the chapter [`fencing`](super::fencing) says what it
//! promises. Without it, the store's own check is the last line: a version, a condition, a unique
//! key. The chapter [`when_not_to_lock`](super::when_not_to_lock) shows the statements.
//!
//! A holder's [`owner_token`](crate::LockGuard::owner_token) is **not** such a number. It is
//! random: it can be compared for equality, and for nothing else.
