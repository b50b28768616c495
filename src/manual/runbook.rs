//! The first incident: what you see, what to look at, what to do.
//!
//! # First
//!
//! ```sh
//! export QUORLOCK_NODES=redis://a:6379,redis://b:6379,redis://c:6379   # REDIS_PASSWORD if needed
//! quorlock status --prefix pay: order:42
//! ```
//!
//! ```text
//! "order:42"
//!   a:6379    held by pay-api@web-7:812, 3.2 s left
//!   b:6379    refused the connection
//!   c:6379    held by pay-api@web-7:812, 3.2 s left
//!   majority  held by pay-api@web-7:812, 3.2 s left (2 of 3 nodes answered, 2 needed)
//! ```
//!
//! It takes no lock and disturbs no client. Use the prefix and the node list *of the program*:
//! others would show another lock. `--json` is for scripts. The library's
//! [`inspect`](crate::Locker::inspect) says the same, and an error's [`nodes`](crate::Error::nodes)
//! and a guard's [`votes`](crate::LockGuard::votes) have each node's part in one operation.
//!
//! | the majority's line | means | go to |
//! |---|---|---|
//! | held by …; the time left jumps up | a living holder extends it | *held, but no work done* |
//! | held by …; the time only falls | a crashed holder, or no extension | wait for its end |
//! | free | the problem is elsewhere, or the prefix is wrong | *slow acquisitions* |
//! | no client holds a majority | several hold parts, or one is released | look again in a second |
//! | no quorum | too few nodes answer | *no quorum* |
//! | no lock: holds … | not a value of a lock | *keys without expiry* |
//!
//! | error, or exit code of `quorlock lock` | | go to |
//! |---|---:|---|
//! | `lock … is held by …`, `is_contended` | 75 | *held, but no work done* |
//! | `no quorum …`, `no answer …`, `is_unavailable` | 69 | *no quorum* |
//! | `has too many commands waiting`, `is_full` | 69 | *no quorum* |
//! | `said NOAUTH`, `WRONGPASS`, `NOPERM`; `is_authentication` | 77 | *authentication* |
//! | `was granted after …, too late`, `is_too_slow` | 69 | *slow acquisitions* |
//! | `was lost …`, `is_lost` | 79 | *lost locks* |
//! | `holds a value that no lock wrote`, `is_misuse` | 78 | *keys without expiry* |
//! | `belongs to a Volatile deployment`, `is_misuse` | 78 | *another durability* |
//!
//! # The lock is held, but no work done
//!
//! The owner is `name@host:pid`. Go to that host and look at that process.
//!
//! - *It runs, and the work hangs.* Extension keeps a lock for as long as the process lives and
//!   `Extend::For` allows; the event *held too long* marks the end of that. Take a stack dump, end
//!   the process. Then: a time limit for the step that hung, a lower `Extend::For`.
//! - *It is gone.* The key ends with its TTL. If the key lives on, another process of that name
//!   extends it: in containers, host and pid are often the same.
//! - *It runs, and knows of no lock.* A guard was kept in a structure, or `forget()` was called.
//! - *It is another program.* Anything that does `SET … NX PX` on the same key excludes you.
//!
//! If that cannot wait, force the release: see the last section.
//!
//! # No quorum
//!
//! The error names each node that did not count, with its reason:
//!
//! | reason | what to do |
//! |---|---|
//! | `refused the connection` | the server is down, or the port is wrong |
//! | `cannot be reached (…)` | name resolution, routing, firewall |
//! | `was silent for …` | it hangs (disk, swap, a long script), or packets are dropped |
//! | `has not answered an earlier command yet` | the same; it is used again once it answers |
//! | `has too many commands waiting` | the same, under load; see `link_entries_max` |
//! | `closed the connection` | `maxclients`, a restart, a proxy |
//! | `is not connected yet (…)` | right after the start: wait with `ready(…)`; else as it says |
//! | `is a replica (…)`, `said READONLY` | a failover: the address leads to the wrong server |
//! | `is the same server as …` | two names for one server: one vote |
//! | `runs as a cluster node` | a quorum needs servers that stand alone |
//! | `has lost its keys and gives no vote for …` | wait; *a node was restarted empty* |
//! | `does not tell its run_id` | give the user `+info`; no proxy may hide it |
//! | `said LOADING`, `BUSY`, `MISCONF`, `OOM` | the server's own trouble; its log says more |
//! | `had not answered yet` | nothing: the other nodes had decided |
//!
//! While a majority is missing, no lock is given. That is intended. Do not shorten the node list to
//! get going again: a client that still has the long one may hold the same lock (see
//! [`choosing`](super::choosing)). Bring the nodes back; clients reconnect by themselves, about
//! a fifth of a second later.
//!
//! # Authentication
//!
//! `NOAUTH`: no password was sent. `WRONGPASS`: user or password is wrong. `NOPERM`: the user may
//! not use a command or the key; `ACL LOG` on the server says which. What each feature needs, and
//! what is lost without the rest, is in [`compatibility`](super::compatibility). A password that
//! was changed shows at the next connection, not before.
//!
//! # Lost locks in the log
//!
//! The `Observer` (or the feature `tracing`) reports each loss: why (the time ran out, a majority
//! no longer has the key, the locker was shut down), how long the lock had been held, and how late
//! this process itself was, if it was.
//!
//! | in the log beside it | cause | cure |
//! |---|---|---|
//! | a stall of this process | a blocked runtime | `Driver::Thread`, `spawn_blocking` |
//! | a stall, and no CPU used | a suspended machine, a clock set ahead | prevent both |
//! | nodes down, extensions failed | a majority away for longer than the TTL | a longer TTL |
//! | nothing, and `Extend::Off` | the work outlasted the TTL | extension |
//! | gone; nodes restarted | servers that forget | `Durability::Volatile` |
//! | gone; no restart | `DEL`, `FLUSHALL`, eviction, a forced release | ACL, `noeviction` |
//! | gone or taken; clocks moved | a server clock was stepped | *clocks* |
//!
//! Then look at the data: the conditions behind the lock show what overlapped
//! ([`when_not_to_lock`](super::when_not_to_lock)). A release that says `Expired` or `Taken` is the
//! same event, noticed later. Log it.
//!
//! # Slow acquisitions
//!
//! - *The network is slow.* `quorlock ping` measures each node's round trip from here, and shows
//!   what the node is.
//! - *One try is slow.* [`votes`](crate::LockGuard::votes) has each node's round trip. The
//!   majority's slowest counts. On the server: `SLOWLOG GET`, `LATENCY DOCTOR`, forks for
//!   snapshots, `KEYS`. About the node timeout each time: a majority hangs. `is_too_slow`: the TTL
//!   is too short for the network.
//! - *There are many tries.* The error ends in "gave up after N tries in …": the lock is contended.
//!   Where [`health`](crate::Locker::health) has no node with `tells_hand_overs`, waiters poll, and
//!   notice a free lock up to 1 s late. Shorten the work, split the key (`order:42`, not `orders`),
//!   or make it a queue of jobs.
//! - *All nodes are quick, but acquiring is slow.* The client itself is slow: a blocked runtime,
//!   too little CPU.
//!
//! # A node was restarted empty
//!
//! With `Durability::Volatile` it gives no vote for the longest TTL, and says how long that is. Do
//! nothing. If a majority is in that state, no lock is given until it is over. `initialise()`
//! shortens that only where *no* node is in service, and is safe only when *no client* holds a
//! lock.
//!
//! With `Durability::Persistent` it votes at once, and locks that it had granted may be given
//! again. Stop it, wait one longest TTL, start it. A holder's own extension gives it the key back,
//! while a majority without it holds. Then set `appendfsync always`, or change to `Volatile`.
//!
//! # Another durability
//!
//! `a:6379 belongs to a Volatile deployment …, and this locker has …`: this program and the node do
//! not agree on the durability or on the longest TTL, and the program takes no lock at all. Nearly
//! always the program is wrong: give it what the others have. If the node is wrong, because a wrong
//! program was the first to find it empty, delete `quorlock:epoch` (with the prefix) there; the
//! node waits out its quarantine. Programs judge a node when they connect to it:
//! `CLIENT KILL TYPE normal` and `CLIENT KILL TYPE pubsub` on that node make them look again (of
//! each program's connections the first listens to a channel, which is a type of its own).
//! `quorlock status` can look at such nodes, `quorlock lock` takes no lock there.
//!
//! # Clocks
//!
//! ```sh
//! for n in a b c; do date +%s.%N; redis-cli -h $n TIME; done
//! ```
//!
//! A difference does no harm, a *change* of it does: compare twice, a minute apart. On servers and
//! clients alike, let the time daemon slew slowly, and not step after boot (`chronyd`: `makestep`
//! with a limit, and `maxslewrate 1000`; see [`defaults`](super::defaults)). After a step forward
//! of a majority, take every lock held at that moment for lost. After a step backward, keys live
//! too long: force their release once their holders are known to be done.
//!
//! # Keys without expiry
//!
//! `no lock: holds a string, without expiry` (or a hash, a list): not ours, because we never write
//! one. It will not go away. `quorlock status` shows it; `OBJECT IDLETIME` and the value say whose
//! it is: an old recipe ([`copied_recipes`](super::copied_recipes)), or another use of the same
//! name. Find the writer, delete the key on every node, give the locks a prefix.
//!
//! # Forcing a release
//!
//! `quorlock release --force KEY`, or `locker.force_release(key)`, deletes the key on all nodes,
//! for any holder. **It does not stop the holder.** With the token (`quorlock release KEY TOKEN`,
//! `locker.release_by_token`) only that lock is released, even if the key has changed hands. Until
//! the holder notices, at its next extension, there may be two. In this order:
//!
//! 1. `quorlock status`: who is it, and is it the same value on a majority?
//! 2. End that process, or make sure that it is dead.
//! 3. Prefer to ask: `quorlock revoke KEY` tells the holder, and has the lock end with what is left
//!    of its TTL at the latest. So nothing overlaps ([`revocation`](super::revocation)).
//! 4. Only then `quorlock release --force KEY`; write down what it prints, and the time.
//!
//! By hand: `DEL` with the full key, prefix included, on *every* node. Never `FLUSHALL`: it frees
//! all locks.
