//! What people build from a lock: what each of ours promises, what it does not, and what it costs.
//!
//! | recipe | in one line |
//! |---|---|
//! | [`once`](crate::Locker::once) | a job that one of several replicas runs |
//! | [`elect`](crate::Locker::elect) | one leader among several candidates |
//! | [`until`](crate::LockRequest::until) | waiting that ends early, by what another has done |
//! | [`Cached`](crate::recipe::Cached) | a cache whose values are computed once |
//! | [`Limit`], [`Gate`] | at most so many in so much time |
//! | [`idempotent`](crate::Locker::idempotent) | a request that is done once, or is unknown |
//!
//! [`Limit`]: crate::recipe::Limit
//! [`Gate`]: crate::recipe::Gate
//!
//! Each is built on the face alone, so its lock is one that every other client sees: the key is the
//! one that was given, with the locker's prefix. Those that store something (`Cached`, `Limit`,
//! `idempotent`) are given a [`Client`](crate::Client) of a server, which need not be one of those
//! that keep the locks, and use the keys as they are given.
//!
//! The faults of what is written by hand are shown on a real server by `tests/suite/by_hand.rs`;
//! what ours promise, among processes that are killed and stopped, by `tests/recipes`, with figures
//! in `tests/record/recipes-2026-11-27.md`. Costs are round trips without contention; to several
//! nodes they are parallel.
//!
//! # `once`: a job that one of several replicas runs
//!
//! | | |
//! |---|---|
//! | promises | a run is begun by one replica, for as long as its lock is kept |
//! | does not | that the run is brought to its end |
//! | costs | one to begin, and one at the end; two where another runs it |
//! | by hand | a short job is run again by each replica that is late |
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
//! try that has found no holder with a majority is repeated after a pause, of up to 3 ms at first
//! and up to 24 ms later.
//!
//! In the shell it is `quorlock once`. With `--per 1d`, the crontab of each machine may say
//!
//! ```text
//! 0 3 * * *  quorlock once --per 1d nightly -- /usr/local/bin/nightly
//! ```
//!
//! # `elect`: one leader among several candidates
//!
//! | | |
//! |---|---|
//! | promises | no two lead at a time, each by its own clock; terms rise |
//! | does not | that there is a leader at any time; that a step which has begun is undone |
//! | costs | that of a fenced lock: one or two to begin, one at each third of the TTL |
//! | by hand | a leader that was stopped prolongs the lead of another, and goes on |
//!
//! By hand it is a key with a TTL, which the leader prolongs:
//!
//! ```text
//! A: SET leader a NX PX 60000 -> OK
//! A: (stopped for 61 s)              B: SET leader b NX PX 60000 -> OK
//! A: EXPIRE leader 60 -> 1           "still there": A leads on, and prolongs B's lead besides
//! ```
//!
//! **Instead** [`lead`](crate::recipe::Election::lead) drops the work before the lock ends,
//! whatever the network does, and begins it anew when it leads again. The
//! [number](crate::recipe::Term::fence) of the term is the lock's fence: what a leader writes to
//! refuses a former one by it ([`fencing`](super::fencing)). A leader that resigns is followed at
//! once. One that dies is followed after the TTL, and after the
//! [`lock_delay`](crate::recipe::Election::lock_delay), which is there for what its work has
//! started and dropping does not end: the lock lives for both, and is led under for the TTL.
//!
//! In the shell it is `quorlock elect ROLE -- COMMAND`: it keeps the command running on one of the
//! machines that start it.
//!
//! # `until`: waiting that ends early
//!
//! | | |
//! |---|---|
//! | promises | with `Until::Held`, a look under the lock has found nothing |
//! | does not | that the one before has stored anything |
//! | costs | two looks, and what the lock costs |
//! | by hand | each that waits does the work again, one behind the other |
//!
//! Many find something missing, and each asks for the lock under which it is made. By hand each of
//! them makes it, or looks again each 100 ms. **Instead** [`until`](crate::LockRequest::until)
//! looks before it asks, and again under the lock: the first does the work, and each of the others
//! finds that as soon as it is its turn, and gives the turn to the next. In the shell it is
//! `quorlock lock --until 'test -e page' page -- ./make-page`.
//!
//! # `Cached`: a cache whose values are computed once
//!
//! | | |
//! |---|---|
//! | promises | nothing but work: a value is computed by one of those who miss it |
//! | does not | that a value is the newest; that a value which could not be stored is there |
//! | costs | one for a hit, and for a miss four beside the computation |
//! | by hand | all who miss a value compute it, and most of all where it takes long |
//!
//! Who misses a value takes its lock, looks again and computes it. The others wait as *readers* of
//! that lock: they are all let in at once when it is released, and find the value. Callers of one
//! process share one look, with the computation behind it. A value that is nearly over is computed
//! anew by one of its readers, at a moment that is drawn so that values which take long are begun
//! early (XFetch); the others have the old value meanwhile, and so they do behind its end, with
//! [`stale`](crate::recipe::CacheOptions::stale). How fresh a value is follows from how long the
//! store keeps it, so no clocks need to agree. An error is told to all who waited in that process,
//! and not kept. Where the one that computes is killed, another does when the lock's TTL is over.
//! In the shell it is `quorlock cached --ttl 5m KEY -- COMMAND`, which keeps the command's output.
//!
//! # `Limit` and `Gate`: at most so many in so much time
//!
//! | | |
//! |---|---|
//! | promises | in any time `t`, no more pass than the burst and what the rate allows in `t` |
//! | does not | that where the server forgets, or its clock is set ahead: one burst more |
//! | costs | one; `Gate` none |
//! | by hand | twice as many pass at the edge of two windows |
//!
//! By hand it is a counter for each second, which lets ten pass at 999 ms and ten more at 1,001 ms.
//! **Instead** one moment is kept: when all that has passed would have passed if it had come evenly
//! (GCRA). It is kept by the server's time, in one script, and expires when it says nothing more.
//! In the shell it is `quorlock limit --rate 10/1m KEY -- COMMAND`.
//!
//! # `idempotent`: a request that is done once
//!
//! | | |
//! |---|---|
//! | promises | its work is begun at most once, for as long as the server keeps the mark |
//! | does not | that it is done: one that died in the middle, or failed, is `Done::Unknown` |
//! | costs | four and a lock for the first; one for each that repeats it later |
//! | by hand | two that look before either has written both do it |
//!
//! By hand it is a look, the work, and a note that it was done. **Instead** the mark is set before
//! the work, if there is none, and no one takes it over: a mark that is found under the lock, with
//! no outcome, is of one that has died. Whether that one did the work is not known, and saying so
//! is the only thing that is right. In the shell it is `quorlock idempotent ID -- COMMAND`, which
//! repeats the command's output and exit code, or exits with 80.
