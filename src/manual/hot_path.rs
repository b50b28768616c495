//! How an operation reaches the sockets and returns, and why it goes this way.
//!
//! # The path of one acquisition
//!
//! ```text
//!   lock      Locker::lock ─▶ LockRequest ─await─▶ Acquire                            LockGuard
//!   ─────────────────────────────────────────────────┼──────────────────────────────────▲────
//!   lease     AcquireSpec (keys, primitive) ──▶ Claim: value, bytes, undo          Hold: validity
//!   ────────────────────────────────────────────┼───────────────────────────────────────▲────
//!   quorum                   Command ──▶ fan-out, slot ─── Election ◀── vote ── driver ──┘
//!   ───────────────────────────────────────┼─────────────────────────────▲──────────────────
//!   link                     entry, bytes, undo ──▶ socket ──▶ reply ──▶ answer
//! ```
//!
//! 1. *lease*: the caller reads the clock, draws 160 random bits, and encodes
//!    `SET key value NX PX ttl` into its thread's buffer: once, for all nodes. What a kind of lock
//!    says to the nodes is its description (`src/lease/primitive.rs`).
//! 2. *quorum*: it claims a slot (one atomic word of votes, one waker), and hands the bytes to each
//!    node's link, under that link's short lock: first the entry in the pipeline, then the bytes.
//!    While few replies are outstanding it writes to the socket itself; else it leaves the bytes to
//!    the driver.
//! 3. *link*: the driver, one task for all nodes, reads the sockets whose ready flag is set, and
//!    gives each reply to the oldest entry of its link. A lock's reply is one word: it is read in
//!    place, and never becomes a frame. One file says which vote it is (`src/link/answer.rs`). The
//!    vote that decides wakes the caller: with five nodes, the third grant.
//! 4. *lease*: the caller reads the clock again. If time is left of the lease, it has a hold, and
//!    the guard that names it. Late replies are consumed and change nothing.
//!
//! Bytes become a reply, the reply a vote, the votes a verdict, the verdict a guard: four forms,
//! and one file for each step.
//!
//! In steady state none of this allocates (`tests/allocations.rs`), and with one caller each node
//! costs one write and at most one read (`tests/system_calls.rs`).
//!
//! # Over TLS
//!
//! The path is the same, and no step is left to the driver alone. A TLS connection has one state
//! for both directions, so a second short lock guards it, under the link's. The writing thread
//! takes it, encrypts one record, and hands the ciphertext to the kernel before it unlocks; the
//! driver reads the socket without it, and takes it to decrypt. So commands are encrypted, and
//! leave, in the order in which they entered the link's pipeline, whichever thread wrote them: an
//! undo still follows its command, and a `Drop` still writes by itself, also on a thread without a
//! runtime and when the runtime is gone.
//!
//! - *A record that the kernel took only in part* is not counted as written: the writer retries
//!   with the same bytes, as after any full socket. A peer cannot read a record that lacks a byte,
//!   so a link counts as sent exactly what the server may have seen, and knows exactly what to undo
//!   when the connection ends. At most one record (16 KiB) is encrypted ahead.
//! - *TLS's own messages* (the answer to a new key, an alert) are sent by the reader, and never
//!   behind half a record.
//! - *An end without `close_notify`* is an end. A reply carries its own length, so a cut stream
//!   yields no half reply; incomplete data is dropped.
//! - *A link that fails* is closed without delivering, as over TCP, and without `close_notify`. A
//!   link that is to be read to its end sends it first.
//! - *A record costs* one small allocation in rustls each way, and a copy; the system calls are
//!   those of TCP. `quorlock-peers quick --scenarios tls` has the figures.
//!
//! # What was measured
//!
//! The records are in `benches/record/`. On two cores that the five servers share with the client:
//!
//! - *The caller writes*, up to two outstanding replies, because a hop to the driver costs a lone
//!   caller latency (`2026-11-21-direct-writes.md`). But a link that has just answered many callers
//!   is empty, yet busy: with 64 callers, the first one's direct write would split each batch. So a
//!   caller writes only if the last read brought few replies, too.
//! - *The driver yields once before it writes*, so that the callers it has just woken join the
//!   batch.
//! - *A caller that has woken the driver and does not wait* lets another worker take it
//!   (`src/quorum/handover.rs`): a task woken on a Tokio worker sits in a slot from which no other
//!   worker takes it. That costs an empty task, for a dropped guard and for the first lock after a
//!   pause. A permanent task, woken for this, would cost nothing, and was tried: it may still be
//!   queued from the last time, and then the driver stays where it is.
//! - *The callers of a pass are woken by a task of their own* on several workers
//!   (`src/quorum/decided.rs`), so that one worker wakes another once for all of them.
//! - *A suspect node is not asked again* until it answers: with three of five hung, the first try
//!   costs a node's timeout and the next ones nothing, and the queue of a hung node stays small.
//! - *A late timer means that this process stalled.* A loaded machine can stall it for longer than
//!   a node's deadline. A timer that fires more than 5 ms late shows it, and deadlines that would
//!   have passed get 10 ms more, once: otherwise replies that wait in the sockets would count as
//!   late through no fault of their nodes.
//!
//! # Measure again
//!
//! ```sh
//! cargo run --release -p quorlock-peers -- quick           # beside the floor and the peers
//! cargo run --release -p quorlock-peers -- record          # the same, long, into benches/record/
//! cargo bench -p quorlock --bench instructions             # what a cycle costs, by callgrind
//! cargo bench --bench promises                             # the times that are promised
//! cargo bench --bench memory                               # what lockers, operations, locks hold
//! ```
//!
//! Nothing else may run meanwhile, and only ratios within one run count. Two records of one
//! command are compared by `quorlock-peers agree OLD.tsv NEW.tsv`.
//!
//! # Profiles
//!
//! To see where the time goes, with symbols and without the peers:
//!
//! ```sh
//! CARGO_PROFILE_RELEASE_DEBUG=1 cargo build --release -p quorlock-peers
//! perf record -e cpu-clock -F 2000 -g -- target/release/quorlock-peers \
//!     quick --scenarios peers --only ours/multi --callers 64 --rounds 20 --round-ms 300
//! perf report --no-children --sort comm,dso
//! ```
//!
//! The last profile (2026-11-21; 64 callers, two workers, five Redis 7.0.15 on the same two cores):
//! the servers take 74 % of the processor time and the client 25 %. Of the client's share the
//! kernel has 55 % (two thirds of it sending, the rest waiting, switching threads, and waking the
//! other worker by `eventfd` and futex), the program 32 % (`Inbound::decode` 5 %, `Link::send` 4 %,
//! no other function above 2 %), the C library 6 %, and reading the clock 6 %. So many callers are
//! bound by the servers' own work, and next by the kernel's. We could save only the wake-ups
//! between workers, which one thread does not have; most of them have been saved since (see below,
//! *Waking the callers of a pass*), and two workers do nearly as many cycles as one thread
//! (`2026-11-25-peers.md`).
//!
//! With one caller the kernel has 88 % of the client's processor time, and so nearly all of the
//! latency: eleven system calls an operation, as the bare sockets need. The program's own part is
//! 31,100 instructions a cycle (current-thread; 31,900 on several workers); with 64 callers it is
//! 13,900 and 14,200 (`hot-path-2026-11-29.md`).
//!
//! The other scenarios that miss their budget, profiled in the same way (same day and machine;
//! shares of all processor time used; `--scenarios peers --callers 512`, `one`, `open`, `delay`):
//!
//! | what                         | servers | client | of it the kernel | of it the program |
//! |------------------------------|--------:|-------:|-----------------:|------------------:|
//! | 512 callers, current-thread  |    85 % |   14 % |              3 % |               9 % |
//! | 512 callers, two workers     |    78 % |   21 % |              8 % |              11 % |
//! | one node, current-thread     |    61 % |   37 % |              7 % |              23 % |
//! | one node, two workers        |    51 % |   47 % |             17 % |              23 % |
//! | one node, `redis`            |    51 % |   48 % |              7 % |              25 % |
//! | one node, its ceiling        |    90 % |    8 % |              8 % |               0 % |
//! | open loop, current-thread    |    54 % |   45 % |             38 % |               5 % |
//! | open loop, two workers       |    50 % |   50 % |             40 % |               7 % |
//! | open loop, the bare sockets  |    59 % |   40 % |             38 % |               0 % |
//! | delayed nodes, with the rest |    30 % |   14 % |             13 % |               1 % |
//!
//! - *512 callers.* The ten commands of a cycle take five sixths of both cores. A client that cost
//!   nothing at all would gain the rest; the bare sockets are nearly that client, and are listed
//!   beside each budget in the record. Of the client's part `Link::send` has 2 %, reading the clock
//!   1.6 %, and nothing else 1 %.
//! - *One node.* The server's one thread is the bound. The record's ceiling is what it does with a
//!   client that only repeats two batches of bytes; we reach 0.84 and 0.96 of that in two records,
//!   and `redis` 0.69 and 0.73 on one thread, so half as much again as `redis` is more than the
//!   server can do. On two workers the kernel's share doubles: that is one waking the other.
//! - *Open loop.* Each cycle begins alone, so each costs its own writes: 2.7 `sendto` a cycle (by
//!   `perf stat -a -e syscalls:sys_enter_sendto`) where 64 callers in step need 0.2. The kernel's
//!   part is that of the bare sockets, 1.7 of the two cores are used, and the tail is the queue for
//!   them: of one build, p99.9 was between 3 and 13 ms in runs a minute apart.
//! - *Delayed nodes.* The third node's round trip is measured alone; with all five, the proxy that
//!   delays carries five times as much, and has more than half of the processor time (53 %). The
//!   bare sockets, which do nothing else, were 79, 83 and 93 µs above the third in three records;
//!   ours were 2 µs below to 15 µs above these.
//!
//! # What was tried
//!
//! - *Writing directly at a larger depth*: rejected; it splits batches, see above.
//! - *Reading the clocks once* for a group of uses, instead of at each use: kept.
//! - *Replies as words, not frames*; two byte queues that begin anew at their front whenever they
//!   empty; the fixed beginnings of the two commands spelled out: kept. With 64 callers a cycle had
//!   cost 17,400 instructions, and of processor time 3.8 µs (current-thread) and 6.1 µs (two
//!   workers); it costs 14,000, 3.45 µs and 5.45 µs, and 4 and 7 % more cycles are done (two runs
//!   each, in turn).
//! - *A claim of 256 bytes*, which has its class by a number: kept. It is moved from the future
//!   that has asked for it to the place where it is held, and from there to its release. It had
//!   264, and for those a cycle of 64 callers took 14,049 instructions and not 13,860
//!   (`hot-path-2026-11-29.md`, as the next two).
//! - *Moving a claim straight to its place*, by a closure that takes it out of the future:
//!   rejected. It saves 75 instructions more, and the code that begins a hold would have to tell of
//!   a claim that is not there.
//! - *No copy of the retry policy in each request*, times counted in nanoseconds, and a key that is
//!   put together in its place: kept. A cycle took 14,380 instructions before, and 14,049
//!   then.
//! - *A ready flag for each socket*, so that a pass polls only those with data: kept, though with
//!   five nodes and one caller no gain shows (p50 against the floor 1.08 and 1.09 with all of
//!   today's changes, 1.07 and 1.06 before them): the polls that it saves cost little beside the
//!   system calls, and grow with the square of the number of nodes.
//! - *The keeper's sleep.* It slept once eleven looks had found nothing held; where locks come and
//!   go, each one woke it from then on. It now goes by time, which saves 600 instructions a cycle,
//!   and on several workers at times another thread's wake-up.
//! - *The waiting caller reads*, up to the reply that decides, while its operation is the only one
//!   under way: rejected. It saves the hop from the driver to the caller, and was built with a
//!   waker that passes socket events to the current reader. With one caller, 24 rounds each, p50
//!   against the floor was 1.10 with it and 1.08 without (current-thread), 1.18 and 1.18 (spawned),
//!   1.42 and 1.35 in the body of `#[tokio::main]`, where each reply then wakes another thread; a
//!   cycle took 40,000 instructions instead of 34,000, since every wake-up polls all sockets.
//!   Stopping at the deciding reply made it worse: what is left unread needs the driver awake.
//! - *A contestant's own thread.* Spawned callers looked a tenth slower than the same library on a
//!   current-thread runtime, an artefact of the measurement: the latter ran on the program's main
//!   thread, which never rests. With a thread for each, the two are equal (1.07 and 1.08).
//! - *Holding a batch back* while the link's earlier ones are unanswered (for up to 50, 100 and
//!   200 µs; until a reply is due; until it has come): rejected. In the open loop it writes a third
//!   less often (2.7 → 1.8 `sendto` a cycle), and saves 5 % of the processor time; in the tail
//!   nothing showed, and on a network it would add latency.
//! - *Yielding as soon as several callers are woken*, not when the first of them has queued:
//!   rejected. In turn, four runs each on two workers: nothing with 8 callers, 3 % and 7 % fewer
//!   cycles with 64 and 512; three runs each on one thread: nothing with 8, 7 % fewer with 64. Most
//!   passes that wake a caller have nothing to write.
//! - *Waking the callers of a pass by a task of their own* (`src/quorum/decided.rs`), on several
//!   workers and from four callers on: kept. In the records, two workers do 0.94 times the cycles
//!   of the bare sockets with 64 and with 512 callers (`2026-11-25-peers.md`). The figures here and
//!   of the next two entries were measured once (2026-11-25), by a program that held all variants
//!   and was not kept. Cycles a second beside the driver that wakes each by itself, 20 rounds in
//!   random order, five Redis 7.0.15 with the script and five Valkey 9.1.2 with the native delete:
//!   1.16 and 1.12 with 64 callers, 1.11 and 1.14 with 512; processor time of the client
//!   4.6 → 3.1 µs and 4.4 → 3.4 µs, 3.8 → 2.7 µs and 3.2 → 2.4 µs; context switches of the client
//!   for each cycle 0.57 → 0.11 with 64 callers. With one caller nothing, with four and eight 1.05
//!   to 1.15. (Beside itself: 0.99 to 1.04.)
//! - *The same in other ways*, on Valkey, 64 and 512 callers: waking all at the end of the pass
//!   without a task (1.01, 0.99); the wakers put off until the worker polls its sockets, through
//!   tokio's `yield_now` (0.92, 1.06), where besides a task that computes on that worker holds all
//!   of them up; the task without an empty one behind it, so that no other worker can take it
//!   (0.93, 0.97); one half of the callers by each of two tasks (0.90, 1.11); the first caller in
//!   the place of the empty task (0.97, 1.15); the driver woken behind the callers by the same
//!   task, which would spare it the pass in which it yields (as without): rejected.
//! - *Fewer atomic operations*: a flag for a driver that is woken already, one for a slot without
//!   frames, one for a hold whose loss no task waits for, and a look before a link's flag is set.
//!   Together 1.00 to 1.03 on two workers and 1.02 on one thread, where a run beside itself gives
//!   1.00 to 1.03: rejected, for each is a race more to check.
//! - *Yielding by tokio's own `yield_now`*, which lets the worker empty its queue and look at the
//!   reactor first: rejected. The other worker cannot take the driver meanwhile, and with 64
//!   callers on two workers 87,000 cycles a second became 49,000. A second yield before writing: no
//!   difference.
