//! What a lock promises, under which assumptions, and what is left when one of them fails.
//!
//! # The promise
//!
//! A lock here is a *lease*. From the return of `locker.lock(key).await` to the guard's
//! [`deadline`](crate::LockGuard::deadline), no other client that follows the same protocol on the
//! same nodes holds the key. After the deadline everything is open again, whatever the first holder
//! is still doing. The promise stands on the assumptions below and on nothing else.
//!
//! The deadline errs on the safe side at each step:
//!
//! - Each node counts the TTL from the arrival of the command. We count it from before the sending.
//! - Of the nodes that granted, as many as make a majority are counted, those whose leases last
//!   longest; the lock ends when the first of these leases does.
//! - The drift margin is taken off: 1 % of the TTL and 2 ms, unless
//!   [`drift`](crate::LockerBuilder::drift) says otherwise.
//! - The clock is read again after the reply that decided. A majority that came too late is no
//!   lock: it is given back, and the error [`is_too_slow`](crate::Error::is_too_slow).
//!
//! # What you can rely on
//!
//! - **One holder at a time**, until the deadline, under the assumptions.
//! - **Failure leaves nothing behind.** An attempt that failed, timed out or was dropped is undone:
//!   at once on a node that can be reached, else when it can be, and at its TTL at the latest.
//! - **A release deletes our own value** and never the key of whoever came after us.
//!   (`release_after` lets our key expire later instead. A node that was not reached keeps it for
//!   the rest of its TTL.)
//! - **An extension prolongs a key that is still ours.** It never shortens one. A key that is gone
//!   it does not make again, but for one case: a node came back empty, and a majority without that
//!   node has just proved to hold the lock. If an extension fails, what was valid before it stays
//!   valid.
//! - **A loss is told before another client may hold the lock**, whatever the network does, and at
//!   once when a majority is known to be gone. `lost()`, `is_valid()` and a token agree on its
//!   instant, a margin before the deadline, and it is final. The margin is 3 to 20 ms, or 1 % of
//!   the TTL where that is more, or 10 µs for each lock that the locker holds where that is more,
//!   up to a quarter of the time: if all are lost together, the tasks that wait have to be run one
//!   after the other. No task of ours has to run for it: it does not wait for extensions, and it
//!   outlives the runtime that extended the lock.
//! - **A lock is handed over once.** Adopting gives it a value of its own, so the token is worth
//!   nothing afterwards, and what the former holder still owes deletes nothing. An adoption that
//!   fails leaves the lock to its token. Two guards are never valid at once, also where the former
//!   one still lives.
//! - **Waiting ends** at the time that was asked for, plus what a last try and a last look at the
//!   holder take: a node timeout or two.
//! - **An error names every node** and what each of them did: [`nodes`](crate::Error::nodes).
//!
//! # What it does not promise
//!
//! - **That your work stops.** A lease ends by a clock. A thread that computes, a statement that
//!   the database has already received, a mail that is on its way: none of them notices.
//! - **An order.** Waiters retry after random pauses; who has waited longest need not be next.
//! - **A lock while a majority is away.** Then nobody gets one. That is the price of exclusion.
//! - **An early end.** The lock of a crashed process is free when its TTL is over, not before.
//! - **Protection from those who do not ask.** `DEL`, `FLUSHALL`, a `SET` without `NX`, a script
//!   that tidies up: the server executes them. We notice at the next extension or at the release.
//!   So it is with a release by force, and with one by its token from another process, while its
//!   guard lives.
//! - **Reentrancy.** A task that asks twice for the same key waits for itself.
//! - **Anything about the place that you write to.** That is the last section.
//!
//! # The assumptions, and what a breach of each costs
//!
//! - **Server clocks run at our rate**, within the drift margin. One that runs fast ends its key
//!   early. If a majority does, two clients hold the lock for as long as those clocks ran ahead.
//! - **No voting server's clock is set ahead.** Servers expire keys by the time of day. Forward
//!   (an administrator's `date`, a time daemon that steps, a restored snapshot), and keys end at
//!   once on that server, as if it had forgotten them. On a majority that is two holders until our
//!   deadline. On a single server it can be, too, where their number is odd: a lock that just has
//!   its majority, because another server was not to be reached, meets the next one's majority in
//!   one server alone. If that is the one whose clock was set, both hold. (Of four servers, any two
//!   majorities share two.) The simulation finds it within some ten seeds:
//!   `one_clock_set_ahead_gives_away_a_lock_that_just_has_its_majority`. Backward, and keys live
//!   on: nobody gets the lock, and exclusion holds. Seen on Redis 7.0.15: after a step of −1 h, a
//!   key of 30 s had 3,660 s to live; after +31 s it was gone.
//! - **A node that votes has not forgotten.** A restart without persistence, a power cut with
//!   `appendfsync everysec`, `FLUSHALL`, eviction, a failover to a replica: the node can grant
//!   again what it had granted. Two majorities then need not meet in a node that remembers: two
//!   holders, until the first one's deadline. [`Durability::Volatile`](crate::Durability) keeps
//!   such a node from voting for the longest TTL, if all clients name the same one. Against
//!   eviction it does not help, unless the epoch is evicted too. See [`choosing`](super::choosing).
//! - **The nodes fail independently.** Two on one machine, one disk or one switch are one node in
//!   two places. One fault then takes two votes, or makes two nodes forget at the same time.
//! - **All clients name the same nodes and prefix.** Half-way through a change from `a, b, c` to
//!   `c, d, e`, one client holds `a, b` and another `d, e`: two holders, while the change lasts.
//! - **The holder looks before each step that others see**, and acts within the time it saw. A
//!   pause between the look and the step (a stopped process, a moved virtual machine, a slow disk)
//!   lets the step land after the end: two writers.
//!
//! Two more, which many implementations need, are not needed here:
//!
//! - *A steady time of day on the client.* Validity is not computed from it. On Linux the lease
//!   runs on `CLOCK_BOOTTIME`, which counts on while the machine is suspended. The time of day is
//!   watched beside it: a jump forward ends the lease early, a step backward changes nothing.
//! - *Timers that are punctual.* [`is_valid`](crate::LockGuard::is_valid) reads the clocks at the
//!   moment of the call. It is right even when every timer of the process is late.
//!
//! # Yes, no, and unknown
//!
//! A command to a server has three outcomes. To take the third for the second is the most common
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
//! The undo is a compare-and-delete that stands behind its command on the same connection, so it
//! cannot arrive first. If that connection dies, the next one has the server end the old one before
//! it undoes anything. [`Outcome`](crate::report::Outcome) tells the three apart for each node.
//!
//! A release answers about the past:
//!
//! | [`Release`](crate::Release) | a majority says | so the work |
//! |---|---|---|
//! | `Released` | the key was ours and is deleted | was alone to the end |
//! | `Expired` | there is no such key | may have overlapped |
//! | `Taken` | somebody else's value stands there | has probably overlapped |
//! | `Unknown` | nothing: too few answered | is not known to have been alone |
//!
//! # Loss
//!
//! A lock is lost when its time has run out, or when a majority no longer holds it. What to do with
//! that, the most convenient first:
//!
//! - `run(…)` drops the work at an await point and returns an error that
//!   [`is_lost`](crate::Error::is_lost). With `.on_loss(OnLoss::Signal)` it only tells the work.
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
//! No lock closes this gap, for the check and the write are two steps, and any amount of time fits
//! between them. Kleppmann's *How to do distributed locking* (2016) says it of Redlock. The Redis
//! documentation, in *Distributed Locks with Redis*, links that analysis and the reply to it, and
//! advises the cure: a *fencing token*, a number that grows with every holder and that the store
//! compares before it writes.
//!
//! quorlock does not issue fencing tokens yet; they are to come. Until then, and behind them, the
//! store's own check is the last line: a version, a condition, a unique key. The chapter
//! [`when_not_to_lock`](super::when_not_to_lock) has the statements.
//!
//! A holder's [`owner_token`](crate::LockGuard::owner_token) is **not** such a number. It is
//! random: it can be compared for equality, and for nothing else.
