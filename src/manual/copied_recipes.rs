//! The recipes that everyone copies, how each breaks, and what to do instead.
//!
//! Each looks right, passes its tests, and fails under an interleaving that takes weeks to turn up.
//! In the timelines, `A` and `B` are clients, and time goes down. The code is shortened to the
//! fault.
//!
//! # `SETNX`, then `EXPIRE`
//!
//! ```text
//! if redis.setnx(key, me):        A: SETNX -> 1
//!     redis.expire(key, 30)       A: (killed by a deployment)
//!     work()                      key without expiry: nobody ever gets the lock again
//! ```
//!
//! A script that does both is not better by itself: a script that fails half-way is not rolled
//! back. Seen on Redis 7.0.15: a user whose ACL allows `SET` and not `PEXPIRE` gets an error, and
//! leaves a lock for ever. A library whose time-out is optional comes to the same: `Lock` of
//! `redis-py` 8.1.0 has `timeout=None` unless told otherwise, and sets a key without expiry.
//!
//! **Instead:** one command, `SET … NX PX …`. Value and expiry come together or not at all.
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
//! `PX`, and on the client a clock that nobody sets.
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
//! same fault without the `GET`. Its worst form runs also when the lock was *not* acquired:
//!
//! ```text
//! try:
//!     if redis.set(key, me, nx=True, px=30000): work()
//! finally:
//!     redis.delete(key)           # everyone who is refused frees the lock
//! ```
//!
//! # Renewal without a look at the owner
//!
//! ```text
//! every 10 s: redis.expire(key, 30)
//!
//! A: (paused for 40 s)                 B: SET NX -> OK
//! A: EXPIRE -> 1, "still mine"         A works on, and prolongs B's lock besides
//! ```
//!
//! `EXPIRE` answers 1 whoever owns the key. With several nodes there is a second form: the timer
//! renews on the node that it has at hand, the others run out, and the client believes in a lock
//! that a majority has forgotten. **Instead:** compare the value and extend in one step, on all
//! nodes; a majority must say yes, within the validity that is left.
//!
//! # Renewal that makes the key anew
//!
//! ```text
//! if get(key) == false then set(key, me, PX, ttl)   -- "it must have expired, take it back"
//!
//! A's key expires.  B: locks, works, releases.   A: extends -> 1, "held all the time"
//! ```
//!
//! A's work is no longer based on what it read: B was there in between. `Extend.lua` of RedLock.net
//! sets a missing key, and so does `redlock-rb` unless `extend_only_if_locked` is given; its README
//! says what that means. **Instead:** a key that is gone is a vote against. (We give a node our key
//! again only while a majority *without* it proves that nobody can have been there.)
//!
//! # A renewal that outlives its lock
//!
//! ```text
//! timer = start(renew); work(); redis.release(); timer.cancel()
//!
//! release -> ok     the timer was started only after the cancel, and goes on for ever
//! ```
//!
//! **Instead:** who holds the guard owns the renewal; the release first ends it and settles what is
//! under way. And a limit: `Extend::For`.
//!
//! # Nodes tried one after another
//!
//! ```text
//! start = now()
//! for node in nodes: granted += node.set(key, me, nx=True, px=ttl)
//!
//! A: 1 ok, 2 ok, 3 hangs for 5 s …    B: 5 ok, 4 ok, 3 hangs for 5 s …    two each, for nobody
//! ```
//!
//! Two clients that start from different ends block each other half-way, again and again. A node
//! that hangs holds up those behind it, while the leases of those before it run. The time until the
//! majority is the *sum* of the nodes' times. `redlock-rb` does so, as step 2 of the algorithm's
//! text has it; a later paragraph of the same text recommends to send to all at once. **Instead:**
//! all at once; the verdict falls with the vote that decides.
//!
//! # Silence taken for a no
//!
//! ```text
//! try: granted += node.set(key, me, nx=True, px=ttl)
//! except Timeout: pass            # the node has set the key, its answer is late
//! ```
//!
//! Nobody undoes it: the key blocks everyone, its own author first, until the TTL. **Instead:**
//! silence is *unknown*, and unknown is undone, behind the command and on the same connection.
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
//! every key that exists. **Instead:** undo before the pause, and a new value for each try, so that
//! no late answer or late delete belongs to the wrong one.
//!
//! # Validity counted from the reply
//!
//! ```text
//! lock(); deadline = now() + ttl        the reply took 8 s of the 10: 8 s too late
//! ```
//!
//! **Instead:** read the clock before the first byte is sent, take off the drift, read it again
//! after the reply that decides. If nothing is left, there was no lock.
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
//! The same for jobs: "was it done?" is asked *inside* the lock, or the one who waited does it
//! again.
//!
//! # A replica for safety
//!
//! ```text
//! A: SET NX -> OK on the master     the master dies before its replica knows
//! the replica becomes the master    B: SET NX -> OK
//! ```
//!
//! **Instead:** independent masters and a majority, or one server and the knowledge of what it is.
//!
//! # Counting by majority
//!
//! *A semaphore of K permits, each granted by a majority.* With 5 nodes and K = 2 there are 10
//! grants; a holder needs 3; three clients fit. `redis-semaphore` 5.8.0's Redlock semaphore is
//! built so. **Instead:** K locks, and a holder has one of them.
//!
//! *A fencing token: `INCR` everywhere, the largest of a majority.* Nodes 0, 1, 2. A asks {1, 2}
//! and has 1. B asks {0, 2} and has 2. C comes after both, asks {0, 1}: both go from 1 to 2, and C
//! has 2. **Instead:** a token must be confirmed as larger by a majority; that is why it is not one
//! line.
