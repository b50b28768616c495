//! Asking a holder to let go of its lock.
//!
//! [`Locker::revoke`](crate::Locker::revoke), or `quorlock revoke KEY`, is for who needs a lock
//! that another keeps for long: a leader that is to move, a job that is in the way. It takes
//! nothing away. The holder is told, and the lock goes on excluding all others until it lets go of
//! it, or until the time is over that the lock has at that moment; from then on it is not extended.
//!
//! | | |
//! |---|---|
//! | `locker.revoke(key)` | asks; says who holds the lock, and when it is over at the latest |
//! | `locker.slots(key, 4).revoke(2)` | the same for the slot of this number |
//! | `guard.revoked()` | completes when the holder is asked, and when the lock is lost |
//! | `guard.is_revoked()` | whether the holder knows that it was asked |
//! | [`Event::Revoked`](crate::Event::Revoked) | the same for observers, once |
//! | a holder that releases it | has *released* it, as ever, and who waits has it at once |
//! | one that does not | has it until its deadline: [`Loss::Revoked`](crate::Loss::Revoked) |
//! | `guard.extend(ttl)` | is refused: [`is_revoked`](crate::Error::is_revoked) |
//! | `adopt` of such a lock | is refused as well; `release_by_token` releases it |
//! | a `lock_delay` | follows as behind any loss, and is counted in what is told |
//! | `quorlock lock` | sends its command TERM, and KILL when the lock is lost |
//! | `quorlock revoke KEY --slot 2` | asks the command whose `QUORLOCK_SLOT` is 2 |
//! | on the wire: to ask | `GET` and `PTTL` on every node, then one script: two round trips |
//! | the same for a lock that is not revoked | a script behind each `DELIFEQ` that finds nothing |
//!
//! ```no_run
//! # async fn example(locker: quorlock::Locker) -> Result<(), quorlock::Error> {
//! // The one that needs it:
//! if let Some(revocation) = locker.revoke("leader").await? {
//!     println!("over in {:?} at most: {}", revocation.over_in, revocation.holder);
//! }
//! let guard = locker.lock("leader").wait_forever().await?;
//! // And the one that has it, beside its work:
//! tokio::select! {
//!     () = guard.revoked() => println!("finish, and let go"),
//!     () = std::future::pending() => {} // the work
//! }
//! guard.release().await?;
//! # Ok(()) }
//! ```
//!
//! # Of several keys or slots
//!
//! Of a lock of several keys, or of several slots, any one key or slot is enough: it ends as a
//! whole. That key alone is marked, and a node that has the mark extends none of the others. The
//! holder is told as that of any lock, and its release deletes the marked key and all others. If
//! it does not let go, each key ends with the time that it has.
//!
//! A slot is named by its number, from 0 on, as its holder's [`slots`](crate::LockGuard::slots)
//! and `QUORLOCK_SLOT` tell it. Holders of other slots are not asked. A number that the slots do
//! not have is refused. Where there were more slots before, and a holder of one of those is to be
//! asked, give the number of slots that it uses; the program takes any slot from 0 to 63.
//!
//! # How it works
//!
//! On each node that holds the holder's value `v` a script makes `v!` of it, and the key lives on
//! until the end that is told. So every other client, of whatever library, finds the key there as
//! before, while an extension of `v` finds it nowhere: the node answers *revoked*. Once a majority
//! has the mark, no majority can extend the lock any more, and it is over when so many of the
//! marked keys have ended as make a majority: that is what [`over_in`](crate::Revocation::over_in)
//! tells, with the margin for clocks that differ. A release, an undo and a dropped guard delete
//! `v!` as they would delete `v`; where one goes by `DELIFEQ`, which finds another value, the
//! script follows.
//!
//! Deleting the key instead would be no request: another client has the lock then beside a holder
//! that works on. The simulation finds two holders at once with a node that does so, and with one
//! that extends what was revoked (`src/simulation/tests/scripts.rs`); through faults it holds every
//! revoked lock to the time that was told, as ten minutes on real servers did
//! (`tests/record/members-2026-11-29.md`).
//!
//! The script tells the holder on its own channel at once, as those that wait are told: on five
//! nodes it knew 0.17 ms after the call, and a holder that lets go had released its lock after
//! 0.32 ms, both in the middle (`benches/record/revoke-2026-11-29.md`). A holder over RESP2, or
//! without the right to listen, learns of it by its next extension, within a third of the TTL.
//!
//! # Where it ends
//!
//! - It cannot be taken back, and to ask again changes nothing.
//! - A holder that lets go by `release_after` has the key end sooner by that, and not later: of a
//!   time beyond the lock's end it is told that it is not known.
//! - A lock that is not extended (`Extend::Off`, `once`) asks the nodes nothing: its holder is told
//!   by its channel alone, while a task waits for `revoked()`.
//! - A lock that may have ended while it was asked for is waited for, and looked at once more.
//! - An error leaves open whether the lock goes on. Where a minority has the mark, the holder is
//!   told all the same, and the lock is extended by the others; but a key of it that a node has
//!   lost is not set there again.
//! - What nodes forget they forget of this, too: one that comes back from before the mark may let
//!   the holder extend its lock.
//! - Readers are not asked ([`readers`](super::readers)): none of them holds the key alone. Nor is
//!   a client of another library, which would only find its lock gone.
//! - An older quorlock extends no lock that was revoked, and does not know why; its release finds
//!   another's value, and the key ends with its time.
