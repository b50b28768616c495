//! Latches and barriers: several wait until all of them are there.
//!
//! [`Locker::latch`](crate::Locker::latch) is closed until so many parties have arrived, and open
//! from then on: the workers of a deployment are ready, the parts of a job are done.
//! [`Locker::barrier`](crate::Locker::barrier) is a latch for each round. Neither is a lock: no one
//! holds anything, nothing is extended, and nothing is lost.
//!
//! | | |
//! |---|---|
//! | `arrive(name)` | counts a party in, once for each name, and waits for none |
//! | `arrive_and_wait(name)` | the same, and waits until it is open |
//! | `wait()`, `wait_timeout(d)` | waits, and is counted by none |
//! | `state()` | open, or how many are missing |
//! | `count_down()` | counts one party in, without a name: on one server |
//! | `barrier.pass(name)` | arrives at the round, waits for all, and goes on to the next one |
//! | `barrier.pass_or_break(name, d)` | the same, or breaks the round for all: on one server |
//! | on the wire: to arrive, or to look | one script on every node, one round trip |
//! | the same where it is open | one more: the mark |
//! | who waits | has one node tell of changes; looks twice a second all the same |
//! | the same over RESP2, or without the right to tracking | looks each 100 ms |
//!
//! # What is promised
//!
//! - *Never early.* Open is said only where as many names have been found as there are parties.
//!   Names that are repeated count once: a party that does not know whether it has arrived arrives
//!   again.
//! - *Never closed again.* When a call has found it open, every call that begins later and within
//!   the TTL from that one on finds it open, whichever nodes answer, and prolongs it.
//! - *None is missed.* Who has arrived counts for the TTL at least, in every call that begins
//!   later; who waits with `arrive_and_wait`, for as long as it waits and reaches a majority.
//!
//! So open and closed are linearizable, as for anything that only grows; the simulation looks for
//! each of the three through faults (`src/simulation/latches.rs`), and in ten minutes of them on
//! real servers 1,174 latches opened in time and stayed so (`tests/record/members-2026-11-29.md`).
//! The number that is missing is what some majority knows: it may rise again where an arrival has
//! reached a minority.
//!
//! Nodes that forget break the second and the third: with
//! [`Durability::Volatile`](crate::Durability::Volatile) a node that was restarted has no say until
//! all that it can have forgotten is over, and they hold. A wrong clock ends the TTL early.
//!
//! # What one server gives besides
//!
//! Two things need a single place that decides. A locker on several servers refuses them as misuse.
//!
//! - *Counting without names*, by [`count_down`](crate::Latch::count_down). Each call counts once:
//!   it has a random name of its own, and repeats that one when no answer comes. A caller that was
//!   told [`is_unknown`](crate::Error::is_unknown) must not repeat it, for it may have counted, and
//!   to call again is to count again. On a quorum that would be told often, of each count that too
//!   few servers took. There give each party a name that it keeps, as its host's and a number:
//!   parties that arrive by name repeat it as they like.
//! - *A barrier that breaks for all at once*, by
//!   [`pass_or_break`](crate::Barrier::pass_or_break). A party whose wait is over asks the server
//!   to mark the round as broken, unless it is marked as open; one that finds all of them there
//!   asks for the mark of an open one, unless it is broken. The first of the two stands. Each party
//!   is told that one within the TTL, also one that comes late, and one that does
//!   [`pass`](crate::Barrier::pass). On a quorum, whether the party that gave up was the last one
//!   is a question for a consensus, which separate servers do not have. There each party bounds its
//!   own wait, some may pass while another gives up, and one that has given up has arrived all the
//!   same.
//!
//! ```text
//!              all have arrived, and it is not broken ┌─▶ open:   each party passes
//!  arrivals ──▶                                       │
//!              a wait is over, and it is not open     └─▶ broken: each party gets `is_broken`
//! ```
//!
//! Where a party was killed, or hangs, the round breaks for the others at the end of the shortest
//! of their waits. A future that is dropped before its wait is over breaks nothing.
//!
//! What a broken barrier is good for: each party knows that no party has passed, so all may begin
//! anew, without the one that is missing or with another in its place. Do that at another key, with
//! the number of the attempt in it, as `rebuild:7/attempt:2`: a party that comes late to the old
//! key finds it broken, and follows. Do not go on at the next round of the same barrier. It is for
//! those that have passed this one, and when the TTL of a round is over, parties at the next one
//! are the sign that it was passed.
//!
//! It is as available as that one server, and the server must remember: after a failover to a
//! replica, or a restart without `appendfsync always`, one party may be told that a round is passed
//! and another that it is broken. For a server that forgets there is
//! [`Durability::Volatile`](crate::Durability::Volatile). The simulation looks for such a round
//! through faults (`src/simulation/barriers.rs`).
//!
//! # Where it ends
//!
//! - Each use has a key of its own, which is not used again: nothing closes a latch but the end of
//!   its TTL, and a command that comes late, as from a machine that stood still, can bring it back.
//!   So put the number of the run into the key, of a barrier as well.
//! - The TTL must be longer than a party may be away. One that comes back to a latch later finds
//!   that it has ended, and waits for all the others anew; at a barrier it finds them at the next
//!   round, and has passed. Where they have gone, it breaks a round that they have passed.
//! - All who use one have the same number of parties and the same TTL. With a smaller number one is
//!   open earlier, and then it is so for all.
//! - At most 1,000 parties: every answer tells all names. Each new arrival wakes all who wait, and
//!   each of them looks twice: a thousand that wait for one another take two million looks. A
//!   repeated arrival wakes none.
//! - The key holds a sorted set of its own name. A lock of the same key is refused there, and a
//!   latch is where a lock is held: both are told as misuse.
//! - Rights: [`compatibility`](super::compatibility).
