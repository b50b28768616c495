//! The recipes that everyone copies, how each breaks, and what to do instead.
//!
//! Each looks right, passes its tests, and fails under an interleaving that takes weeks to turn up.
//! In the timelines, `A` and `B` are clients, and time goes down. The code shows only the fault.
//!
//! # `SETNX`, then `EXPIRE`
//!
//! ```text
//! if redis.setnx(key, me):        A: SETNX -> 1
//!     redis.expire(key, 30)       A: (killed by a deployment)
//!     work()                      key without expiry: no client ever gets the lock again
//! ```
//!
//! A script that does both is not enough: a script that fails half-way is not rolled back. Seen on
//! Redis 7.0.15: a user whose ACL allows `SET` and not `PEXPIRE` gets an error, and leaves a lock
//! forever. A library with an optional time-out has the same fault: `Lock` of `redis-py` 8.1.0 has
//! `timeout=None` unless told otherwise, and sets a key without expiry.
//!
//! **Instead:** one command, `SET … NX PX …`. It sets value and expiry together or not at all.
//!
//! # The time of day in the value
//!
//! ```text
//! if redis.setnx(key, now() + 30) or redis.get(key) < now(): …take it…
//!
//! A: SETNX -> 1, until 12:00:30        B's clock is 40 s ahead: 12:00:30 is past, B takes it
//! ```
//!
//! The Redis documentation still describes this pattern under `SETNX`, and advises against it. It
//! needs the clocks of all clients to agree. So does every script that is handed a client's `now`:
//! `redis-semaphore` 5.8.0 removes the holders that are older than *the caller's* time of day less
//! the time-out. A caller whose clock is ahead evicts them. **Instead:** durations, never dates:
//! `PX`, and on the client a monotonic clock.
//!
//! # `GET`, then `DEL`
//!
//! ```text
//! if redis.get(key) == me:        A: GET -> me
//!     redis.delete(key)           A's key expires.   B: SET NX -> OK
//!                                 A: DEL             B's lock is gone; C gets in beside B
//! ```
//!
//! **Instead:** compare and delete in one step on the server. A bare `DEL` in a `finally` is the
//! same fault without the `GET`. Its worst form also runs when the lock was *not* acquired:
//!
//! ```text
//! try:
//!     if redis.set(key, me, nx=True, px=30000): work()
//! finally:
//!     redis.delete(key)           # everyone who is refused frees the lock
//! ```
//!
//! # Renewal without a check of the owner
//!
//! ```text
//! every 10 s: redis.expire(key, 30)
//!
//! A: (paused for 40 s)                 B: SET NX -> OK
//! A: EXPIRE -> 1, "still mine"         A works on, and prolongs B's lock besides
//! ```
//!
//! `EXPIRE` answers 1 for any owner's key. With several nodes there is a second form: the timer
//! renews on one node, the keys on the others expire, and the client believes in a lock that a
//! majority has forgotten. **Instead:** compare the value and extend in one step, on all nodes; a
//! majority must say yes, within the validity that is left.
//!
//! # Renewal that creates the key again
//!
//! ```text
//! if get(key) == false then set(key, me, PX, ttl)   -- "it must have expired, take it back"
//!
//! A's key expires.  B: locks, works, releases.   A: extends -> 1, "held all the time"
//! ```
//!
//! A's work is no longer based on what it read: B was there in between. `Extend.lua` of RedLock.net
//! sets a missing key, and so does `redlock-rb` unless `extend_only_if_locked` is given; its README
//! says what that means. **Instead:** a missing key is a vote against. (We give a node our key
//! again only while a majority *without* it proves that no other client can have held the lock.)
//!
//! # A renewal that outlives its lock
//!
//! ```text
//! timer = start(renew); work(); redis.release(); timer.cancel()
//!
//! release -> ok     the timer was started only after the cancel, and runs forever
//! ```
//!
//! **Instead:** the guard owns the renewal; the release first stops it and settles what is under
//! way. `Extend::For` adds a limit.
//!
//! # Nodes tried one after another
//!
//! ```text
//! start = now()
//! for node in nodes: granted += node.set(key, me, nx=True, px=ttl)
//!
//! A: 1 ok, 2 ok, 3 hangs for 5 s …    B: 5 ok, 4 ok, 3 hangs for 5 s …    two each: no lock
//! ```
//!
//! Two clients that start from different ends block each other half-way, again and again. A node
//! that hangs delays the nodes after it, while the leases on those before it run. The time until
//! the majority is the *sum* of the nodes' times. `redlock-rb` does so, as step 2 of the
//! algorithm's text says; a later paragraph of that text recommends sending to all at once.
//! **Instead:** send to all at once; the deciding vote ends the try.
//!
//! # Silence taken for a refusal
//!
//! ```text
//! try: granted += node.set(key, me, nx=True, px=ttl)
//! except Timeout: pass            # the node has set the key, its answer is late
//! ```
//!
//! The key is never undone: it blocks every client until the TTL, first the one that set it.
//! **Instead:** silence means *unknown*: the command is undone, by one behind it on the same
//! connection.
//!
//! # A retry over its own leftovers
//!
//! ```text
//! value = random()
//! retry: for all nodes: set(key, value, NX)      1st try: 2 of 5 granted, the others were slow
//!        pause                                   2nd try: those 2 say "held"; by whom? by us
//! ```
//!
//! In `redlock` 5.0.0-beta.2 (npm) the keys of a failed try stay for the next, whose script refuses
//! every existing key. **Instead:** undo before the pause, and use a new value for each try, so
//! that no late reply or late delete hits the wrong one.
//!
//! # Validity counted from the reply
//!
//! ```text
//! lock(); deadline = now() + ttl        the reply took 8 s of the 10: 8 s too late
//! ```
//!
//! **Instead:** read the clock before the first byte is sent, subtract the drift, read it again
//! after the deciding reply. If nothing is left, there was no lock.
//!
//! # No second look after the lock
//!
//! ```text
//! value = cache.get(k)
//! if value is None:
//!     with lock(k):               # 200 wait here; each of them computes, one after another
//!         value = compute(); cache.set(k, value)
//! ```
//!
//! The lock has made the stampede slower, not smaller. **Instead:** look again once the lock is
//! held:
//!
//! ```text
//! with lock(k):
//!     value = cache.get(k)
//!     if value is None: value = compute(); cache.set(k, value)
//! ```
//!
//! The same holds for jobs: ask "was it done?" *inside* the lock, or the waiter does it again.
//!
//! # A replica for safety
//!
//! ```text
//! A: SET NX -> OK on the master     the master dies before its replica knows
//! the replica becomes the master    B: SET NX -> OK
//! ```
//!
//! **Instead:** independent masters and a majority, or one server whose weakness you accept.
//!
//! # Counting by majority
//!
//! *A semaphore of K permits, each granted by a majority.* With 5 nodes and K = 2 there are 10
//! grants; a holder needs 3; three clients fit. `redis-semaphore` 5.8.0's Redlock semaphore is
//! built so. **Instead:** K locks, and a holder has one of them.
//!
//! *A fencing token: `INCR` everywhere, the largest of a majority.* Nodes 0, 1, 2. A asks {1, 2}
//! and has 1. B asks {0, 2} and has 2. C comes after both, asks {0, 1}: both go from 1 to 2, and C
//! has 2. **Instead:** a token must be confirmed as larger by a majority, as a
//! [`fence`](super::fencing) is.
