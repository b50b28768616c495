//! Choosing: one server or a quorum, how many nodes, TTL, extension, waiting, durability, driver;
//! one key or several.
//!
//! # First: do your servers forget?
//!
//! Most do. Redis and Valkey come with `appendonly no`: a restarted server has forgotten the locks
//! that it had granted, and grants them again. After a majority of such restarts within one TTL,
//! two clients hold one lock. On a single server one restart is enough.
//!
//! | | `Durability::Persistent`, the default | `Durability::Volatile` |
//! |---|---|---|
//! | the servers need | `appendonly yes`, `appendfsync always` | nothing |
//! | which costs the server | a write to its disk for each acquisition | a script for each |
//! | a node that was restarted | votes at once | gives no vote for the longest TTL |
//! | if the servers forget all the same | two holders | none |
//!
//! The default relies on servers that forget nothing. If a server's configuration shows that it may
//! forget, the locker reports it: by [`Event::Forgets`](crate::Event::Forgets), by
//! [`contradicts_durability`](crate::report::NodeHealth::contradicts_durability) in `health()`, and
//! in `quorlock ping` and `quorlock status`. (It sees `appendfsync` only where its user may `CONFIG
//! GET`.) It still acquires locks: if a lock only saves work, two holders once in a year are
//! acceptable. See [Durability](#durability).
//!
//! # In short
//!
//! | your case | choose |
//! |---|---|
//! | doubled work is a waste, no more | `single`, the defaults |
//! | one server's failure must not stop or double it | `quorum` of 3 or 5, a store's condition |
//! | overlap must not happen | a condition in the store; a lock in front of it |
//! | one job that needs several things at once | `lock_all`: no order, and no deadlock |
//! | one key that many want, each for a part of it | `segments`: see [One hot key](#one-hot-key) |
//! | no more than so many at once, or numbers to hand out | `slots`: see [`slots`](super::slots) |
//! | several that wait for one another | `latch`, `barrier`: see [`latches`](super::latches) |
//! | many that look, few that change | `read` and `write`: see [`readers`](super::readers) |
//! | work of milliseconds | TTL 10 s, `Extend::Off` |
//! | work of unknown length | TTL 10 to 30 s, `Extend::For` the longest that you accept |
//! | servers without `appendfsync always` | `Durability::Volatile` |
//! | no async code, or plain threads too | the feature `blocking`: `quorlock::blocking` |
//! | long computations on the async runtime | `Driver::Thread`, or better `spawn_blocking` |
//!
//! # One server or a quorum
//!
//! [`Locker::single`](crate::Locker::single) uses one server. It is as available as that server,
//! and as safe as its memory. It is the right choice for efficiency locks, and when the data behind
//! the lock is on the same server anyway.
//!
//! A replica does not make it safer. Replication is asynchronous: the master confirms the lock,
//! dies before it has told the replica, the replica is promoted, and grants the lock again. The
//! Redis documentation gives this as the reason for Redlock. A failover makes a single lock
//! *available* again sooner; it makes *two holders* possible.
//!
//! [`Locker::quorum`](crate::Locker::quorum) uses N servers that know nothing of one another, and
//! needs more than half. It survives the loss of a minority, without a failover and without delay:
//! no call waits for a node that is down, and none for a minority that hangs. It costs N times the
//! commands, and N servers to look after. It does not protect from pauses of the holder, or from a
//! majority of wrong clocks.
//!
//! You name the model; it is never guessed: one URL in a quorum is a quorum of one.
//!
//! # How many nodes
//!
//! | nodes | majority | may be away | |
//! |---:|---:|---:|---|
//! | 1 | 1 | 0 | |
//! | 2 | 2 | 0 | twice the servers, half the availability of one |
//! | 3 | 2 | 1 | enough if a node is repaired before the next one fails |
//! | 4 | 3 | 1 | no gain over 3; correct all the same |
//! | 5 | 3 | 2 | one may be away on purpose, and one may fail meanwhile: our advice |
//! | 7 | 4 | 3 | where nodes fail together, by site for instance |
//! | 15 | 8 | 7 | the maximum |
//!
//! Put them where they fail independently: different machines, disks, power, zones. With three
//! zones and five nodes, place 2, 2 and 1. The time of an acquisition is that of the majority's
//! slowest node, so a distant minority costs nothing.
//!
//! Nodes must be standalone masters. Replicas, Cluster nodes and Sentinels are refused when they
//! connect; two addresses of one server count once, and N stays the same. A managed service with
//! one endpoint is one node. A proxy that hides several servers is not supported.
//!
//! # Changing the nodes
//!
//! Two clients with different lists may each find a majority with no node in common. So:
//!
//! - *To replace a node*, keep its name. Stop the old server, let the longest TTL pass, then point
//!   the name at the new, empty one. With `Durability::Volatile` the node keeps that pause by
//!   itself.
//! - *To change the number of nodes, or their names*, let no lock be held: stop the clients, wait
//!   one TTL, start all of them with the new list.
//!
//! # TTL
//!
//! The TTL is how long others wait after a crash, and the longest pause that you survive.
//!
//! - Without extension: two to three times the longest usual run. Measure p99.9, not the mean.
//! - With extension: three times the longest pause that you expect of process and network together.
//!   The first extension is due when a third of the TTL is gone; the other two thirds are for
//!   pauses and further tries. 10 s is a good start.
//! - Below 1 s little is left after a node timeout of at least 50 ms, the drift, and any pause.
//! - A TTL above some minutes is a sign that extension should be on.
//! - What the work has started may go on when the lock is lost: a request that is on its way, a
//!   program that does not end at once. [`lock_delay(d)`](crate::LockRequest::lock_delay) keeps
//!   others out for as long behind a lease that has ended by itself, and costs nothing where locks
//!   are released:
//!
//! | how the lock ends | for how long others are kept out |
//! |---|---|
//! | it is released, or its guard is dropped while it is valid | not at all |
//! | it expires, or its lease ends after a revocation | the delay |
//! | its guard is dropped after that | what is left of the delay |
//! | its process is killed, or stopped for long | what is left of the TTL, and the delay |
//! | its keys are deleted: by `force_release`, or where a server forgets | not at all |
//!
//! Prefer one TTL for all locks of a deployment: with `Durability::Volatile` a restarted node gives
//! no vote for the longest one.
//!
//! # Extension
//!
//! | | | |
//! |---|---|---|
//! | `Extend::For(limit)` | the default, 1 h | a task that hangs loses the lock after `limit` |
//! | `Extend::Forever` | leaders, daemons | a task that hangs holds it while the process lives |
//! | `Extend::Off` | short work | one TTL, and `extend(ttl)` by hand |
//!
//! Extension shows that the *process* lives, not that the *work* goes on. If the work has steps,
//! turn it off and call `guard.extend(ttl).await` between them: then a hung step loses the lock, as
//! it should.
//!
//! # Waiting
//!
//! | | meaning | for |
//! |---|---|---|
//! | `try_acquire` | one try; `None` when held | periodic jobs that another may be doing |
//! | `wait(d)` | tries until `d` is over; default 10 s | requests; less than their own limit |
//! | `wait_forever()` | until acquired | start-up of a leader, nothing that a user waits for |
//! | `unavailable_wait(d)` | its part without a quorum; default 1 s | an outage fails fast |
//! | `local_handover(d)` | from task to task without the nodes | many short turns in one process |
//!
//! Tasks that wait for the same key of one locker (and its clones) stand in a line, in the order in
//! which they came: one of them at a time asks the nodes, and the next one asks when it has
//! released. Of several lockers, as in several processes, each has a place in a queue, which one of
//! the nodes keeps for the key: it tells that node every 500 ms that it is there, and the first of
//! them asks all nodes every 4 s. Only then does one that waits learn of an outage that leaves the
//! queue's node up. So 1,000 waiting processes are 2,000 short scripts a second on that node. The
//! holder's release hands the lock to the first of them and wakes that process alone, which asks
//! all nodes, and holds it when a majority has said so. So the lock changes hands in two round
//! trips, at the same cost however many wait (`benches/record/crowd-2026-11-26.md`; what waiters
//! take of memory: `memory-2026-11-26.md`). A holder of another library hands nothing over, nor
//! does one that has adopted its lock, or that holds several keys as one: the first of those that
//! wait has the node tell it when the key changes, and asks then. So does one that waits for a lock
//! of several keys, which stands in no queue: to be handed one of its keys would block that for
//! nothing while another is held. Where each of its keys is wanted without a pause it may wait for
//! long. And so does one that waits for a key with a `}` that ends no tag, as `a}b` and `{}`, for
//! which there is no queue.
//!
//! What can be relied on is the order at that node while it can be reached, and no more. These may
//! come first: a first try of a process that has not met the key contended within the last second,
//! `try_acquire`, a lock of several keys, a client of another library, and a process that cannot
//! reach the node. The first of these asks the queue, too, where each asks for a
//! [`fair`](crate::LockRequest::fair) lock: one round trip more where the lock is free. Where the
//! node is down another one begins a new queue. And where another has taken a majority without that
//! node, as one of two can that try at once, or a client of another library, each of those that
//! wait tries, loses its place, and comes again within half a second: their order is lost. None of
//! that ever gives two holders; ten minutes of faults gave none
//! (`tests/record/members-2026-11-29.md`).
//!
//! # In strict order
//!
//! Where the order is worth more than that, ask everywhere by
//! [`fair_strict`](crate::LockRequest::fair_strict): then every node keeps a queue, of tickets, and
//! the order stands on each majority. What is promised without a common clock is said there. What
//! it costs:
//!
//! | | `lock` | `fair` | `fair_strict` |
//! |---|---|---|---|
//! | round trips, free | one | two | one, with a fence two |
//! | round trips, from a release to the next holder | one | one | one or two |
//! | who waits writes, twice a second | to one node | to one node | to every node |
//! | the order survives the loss of the queue's node | no | no | yes, while a majority answers |
//! | `try_acquire` may come first | yes | yes | only where none waits |
//!
//! Requests without it on the same key come in between, as they do for `fair`; where there are many
//! of these, those in strict order may wait without end. One loses its place when too few nodes
//! are left that have answered all its questions, or when no majority takes its fence: it takes a
//! new ticket then, and goes to the end. Ten minutes of faults gave no two holders
//! (`tests/record/members-2026-11-29.md`).
//!
//! The queue needs RESP3 and some rights ([`compatibility`](super::compatibility));
//! [`health`](crate::Locker::health) says of each node whether it tells this process what it needs.
//! Without them a process polls by its [`Retry`](crate::Retry): by default with jittered pauses, 50
//! to 200 ms at first and 1 s at most. So does one whose `Retry` is `custom`, or counts the tries.
//! Many waiters on one key are a queue of work: see [`when_not_to_lock`](super::when_not_to_lock).
//!
//! # Locks within locks
//!
//! Who asks again for what it has waits for itself: a task has no name by which a lock could know
//! it again, and work that it does for others is not its own. So what is in hand is handed down:
//!
//! | | |
//! |---|---|
//! | [`request.within(&guard)`](crate::LockRequest::within) | has at once what the guard has |
//! | [`guard.share()`](crate::LockGuard::share) | another handle: the last one releases the lock |
//! | [`adopt`](crate::Locker::adopt) | takes the lock over, in another process |
//!
//! No node is asked for the first two.
//!
//! # One hot key
//!
//! A lock lets one in at a time, however many servers there are. Where a key protects what has
//! parts, as the stock of an article that thousands buy, [`segments`](crate::Locker::segments)
//! makes it several locks: the stock lies on sixteen heaps, a buyer takes from the heap of its own
//! segment, and from the next one where that is sold out.
//!
//! | | |
//! |---|---|
//! | two that ask for the same segment | exclude each other |
//! | two that ask for different ones | do not |
//! | `all()` of a key | excludes each of its segments: it is their `lock_all`, of 64 at most |
//! | `lock("stock:7/3")` | is segment 3 of `stock:7` |
//! | `lock("stock:7")` | excludes none of them |
//! | processes that know different numbers of segments | do **not** exclude each other |
//! | waiting, extension, loss, fences, tokens | as for every lock: each segment has its own |
//! | on the wire | what the lock of one key costs |
//!
//! It needs that the parts are independent: what is true of all heaps, as that they hold ten pieces
//! together, is known only under `all()`. And a segment is only as many as wanted at once: with 64
//! buyers on 16 heaps there are still four for each. Those bought four times as many pieces a
//! second as under one lock (`benches/record/segments-2026-11-29.md`).
//!
//! # Durability
//!
//! Choose by what your servers do when they lose power, not at an orderly restart:
//!
//! | servers | choose |
//! |---|---|
//! | `appendonly yes` and `appendfsync always` | `Durability::Persistent` |
//! | `appendfsync everysec`, snapshots, or nothing | `Durability::Volatile` |
//! | persistence unknown, or run by others | `Durability::Volatile` |
//!
//! *Persistent* is the fastest: plain commands, and a restarted node votes at once.
//!
//! *Volatile* keeps an *epoch* on each node: the key `quorlock:epoch` behind your prefix, with the
//! server's `run_id` and the longest TTL of the deployment. Each acquisition carries the `run_id`
//! of the process that the client is connected to. If the epoch is missing (`FLUSHALL`, a restart
//! without data) or names another process (a restart from a snapshot, a failover), the node may
//! have forgotten locks. It then gives no vote for the longest TTL: by then every lock that it can
//! have forgotten has ended. An acquisition's error says so for each such node
//! ([`Quarantined`](crate::report::Outcome::Quarantined)). While no majority is left, the error
//! [`is_unavailable`](crate::Error::is_unavailable), [`retry_after`](crate::Error::retry_after) has
//! the time, and waiters wait that long before they retry, within
//! [`unavailable_wait`](crate::LockerBuilder::unavailable_wait). Held locks go on: they are
//! extended, and set again on the emptied node, while a majority without it holds.
//!
//! ```no_run
//! # fn example() -> Result<(), quorlock::Error> {
//! use std::time::Duration;
//!
//! use quorlock::{Durability, Locker};
//!
//! let longest_ttl = Duration::from_secs(30);     // the same in every client
//! let locker = Locker::quorum(["redis://a", "redis://b", "redis://c"])?
//!     .durability(Durability::Volatile { longest_ttl })
//!     .prefix("pay:")
//!     .build()?;
//! # drop(locker);
//! # Ok(()) }
//! ```
//!
//! Acquiring then runs a script, which costs the server more than a plain command, and needs the
//! rights to `INFO` and `PTTL`. A server that does not show its `run_id` gives no vote at all.
//!
//! **Durability belongs to the deployment, not to a client.** With a majority restarted, a client
//! with a shorter longest TTL would let the nodes vote again too early, and a *Persistent* client
//! at once. So a locker that finds an epoch other than its own on any node acquires nothing; the
//! error [`is_misuse`](crate::Error::is_misuse) and names the node. It finds only what the nodes
//! still have: you must make sure that all clients agree. A lock with a TTL above the longest is
//! refused before anything is sent. To change the durability or the longest TTL, stop all clients,
//! wait for the old longest TTL, delete `quorlock:epoch` (with the prefix) on every node, and start
//! the clients with the new one.
//!
//! Nodes that are empty because they are *new* look like nodes that have forgotten. Either wait for
//! one longest TTL, or call [`initialise`](crate::Locker::initialise) once, by hand, when no client
//! of any kind holds a lock. It refuses while any node is in service, because then the deployment
//! is in use. If *all* nodes were restarted, it cannot see that, and causes the very failure that
//! the quarantine prevents: do not call it when a program starts.
//!
//! Either way: `maxmemory-policy noeviction`. Each of the other policies may evict a lock.
//!
//! # Driver
//!
//! [`Driver::Runtime`](crate::Driver::Runtime), the default, does the I/O in a task of the runtime
//! that first uses the locker. It is the fastest: a reply and its caller share a thread. When every
//! worker of that runtime is blocked, nothing is extended, and the locks end.
//!
//! [`Driver::Thread`](crate::Driver::Thread) has a thread of its own. Take it when one static
//! locker serves several runtimes (tests, a runtime per core), or when something may block the
//! runtime for as long as a third of the TTL. It costs a hop between threads for each reply. It
//! keeps the *lock* extended; the blocked *work* still does not see `lost()`.
//!
//! # The end of a program, and handing over
//!
//! A dropped guard writes its release and does not wait. If the program ends right after, the
//! release may not be sent; the key then ends with its TTL. At the end of `main`, call
//! `locker.shutdown(timeout).await`: it takes no new work, settles what is under way, and reports
//! what it could not settle.
//!
//! `guard.forget()` leaves the lock to its expiry and returns its token, and
//! `locker.shutdown_leaving(timeout)` returns the tokens of all locks that the locker held. A
//! token's text, [`OwnerToken::as_str`](crate::OwnerToken::as_str), goes to another process, which
//! takes the lock over with `locker.adopt(key, &OwnerToken::from(text))`, at once. Between the two
//! the lock is not extended.
//!
//! A token is adopted once: adopting gives the lock a new value, in one round trip. The text of a
//! token that was left behind begins with `left:`. One without it, from
//! [`owner_token`](crate::LockGuard::owner_token), belongs to a guard that may live. It is adopted
//! too, once the lock's remaining time is over, and that guard loses its lock.
//!
//! # An example
//!
//! ```no_run
//! # fn example() -> Result<(), quorlock::Error> {
//! use std::time::Duration;
//!
//! let nodes = ["redis://a", "redis://b", "redis://c", "redis://d", "redis://e"];
//! let locker = quorlock::Locker::quorum(nodes)?
//!     .prefix("pay:")                  // so that nothing else touches these keys
//!     .owner("pay-api")                // so that people know whom to ask
//!     .ttl(Duration::from_secs(10))
//!     .wait(Duration::from_secs(2))    // the request itself has 5 s
//!     .build()?;
//! # drop(locker);
//! # Ok(()) }
//! ```
