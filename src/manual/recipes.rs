//! What people build from a lock: what each of ours promises, what it does not, and what it costs.
//!
//! Each is built on the face alone, so its lock is one that every other client sees: the key is the
//! one that was given, with the locker's prefix.
//!
//! | | [`once`](crate::Locker::once) | [`until`](crate::LockRequest::until) |
//! |---|---|---|
//! | promises | begun by one, while its lock is kept | [`Held`]: a look under it found nothing |
//! | not | that the run is brought to its end | that the one before has stored anything |
//! | costs | a round trip to begin and to end; two where it is skipped | two looks, and the lock |
//! | by hand | runs a short job again | computes for each that waits |
//!
//! [`Held`]: crate::recipe::Until::Held
//!
//! # A job that one of several replicas runs
//!
//! By hand it is a lock around the job:
//!
//! ```text
//! 03:00:00.000  A: lock("nightly") -> held     the job takes 40 ms
//! 03:00:00.040  A: release
//! 03:00:00.055  B: lock("nightly") -> held     B's clock is 55 ms late: the job is run again
//! ```
//!
//! The shorter the job, the more surely it is run twice; with jobs of an hour it never shows. In
//! `tests/recipes/once.rs` sixteen processes, whose clocks are up to four seconds apart, run the
//! ticks of one schedule: by a lock that ends with the job, each tick is run by several of them.
//!
//! **Instead** the lock is kept for a minimum that is longer than the clocks and timers of the
//! replicas differ: [`at_least`](crate::recipe::Once::at_least), counted from its acquisition. Each
//! node lets the key expire by its own clock, so the replica that ran the job need not stay. With
//! [`per`](crate::recipe::Once::per) the number of the period stands in the key, and the minimum is
//! one period. The same sixteen processes, of which one is killed or stopped each second, then run
//! each of 200 ticks once.
//!
//! Where the replica dies in the middle, the lock is free after
//! [`at_most`](crate::recipe::Once::at_most), which is its TTL: the job is not run before, and then
//! only by one that still wants to. A job that failed has been run. To try again what failed, name
//! the attempt in the key.
//!
//! Replicas that ask at the same time can divide the nodes between them, so that none has a
//! majority. A single try would then be refused for each of them, and the job be run by none. So a
//! try that has found no holder with a majority is repeated after 2 to 20 ms.
//!
//! In the shell it is `quorlock once`. With `--per 1d`, the crontab of each machine may say
//!
//! ```text
//! 0 3 * * *  quorlock once --per 1d nightly -- /usr/local/bin/nightly
//! ```
//!
//! # Waiting that ends early
//!
//! Many callers find a value missing, and each asks for the lock under which it is computed. By
//! hand each of them computes it, one behind the other, or looks again each 100 ms:
//!
//! ```text
//! let guard = lock("report").await;        100 callers, 100 ms of work each: 10 s for the last
//! let report = compute().await; store(report);
//! ```
//!
//! **Instead** [`until`](crate::LockRequest::until) looks before it asks, and again under the lock:
//! the first computes, and each of the others finds what it has stored as soon as it is its turn. A
//! turn that is not needed costs one look and is given to the next.
