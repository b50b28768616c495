//! Readers and writers: many may look at once, and one alone may change.
//!
//! [`Locker::read`](crate::Locker::read) asks for a read lock of a key, and
//! [`Locker::write`](crate::Locker::write), which is [`lock`](crate::Locker::lock), for all of it.
//! Each works on one server and on a quorum, waits and is woken, is extended, lost and released as
//! any lock is. In the shell it is `quorlock lock --shared KEY -- COMMAND`.
//!
//! | | a reader | a writer |
//! |---|---|---|
//! | excludes | writers, `lock_all` with this key, other clients' `SET NX` | all, readers too |
//! | how many at once | any number | one |
//! | on the wire | one script on each node, five keys | `SET NX PX` on each node |
//! | its life | its own, by the server's clock: one that is gone ends alone | the key's |
//! | extended | its own time: the key lives until the last reader ends | the key |
//! | waits | in the key's queue, behind the writer that came before it | in the same queue |
//! | is woken by | a writer's release, with those that read behind it | the last reader's release |
//! | adopted by its token | no | yes |
//! | fence | none: a reader writes nothing | as asked for |
//! | becomes the other | never | by [`downgrade`], in one round trip |
//!
//! [`downgrade`]: crate::LockGuard::downgrade
//!
//! A writer that becomes a reader lets go of nothing in between: each node goes from the one to the
//! other in one step. Its value stays the same, so that one command lets go of it whichever it is
//! there; if a majority does not answer, the lock is let go of.
//!
//! A reader needs a majority of the nodes, and so does a writer. Two majorities share a node, and a
//! node has readers or a writer, never both.
//!
//! # Who comes first
//!
//! Readers and writers that have to wait stand in one queue, which one node keeps, in the order of
//! their arrival. Once a writer is the first there, it *shuts the gate* of the lock on all nodes:
//! readers that ask from then on wait behind it, and do not join those that have the lock. So a
//! writer waits for the readers that it has found there, each for as long as it goes on, and for no
//! others; and a reader for the writers before it. The gate names the queue in which its writer is
//! the first, and a reader whose turn has come in that queue passes: it stood there before, and its
//! command is only late on that node.
//!
//! The gate opens when the writer has the lock, or gives up, and by itself a second and a half
//! after a writer that is gone. A writer is told when it comes to be the first, where those before
//! it give up, or have the lock as readers; or it finds out within half a second.
//!
//! A reader that finds the lock free, or held by readers with the gate open, has it at once, also
//! before readers in the queue: these ask when they are woken, and every half second.
//!
//! A writer that has the lock without the node of its queue, where a reader stood when it came, is
//! told of none that waits there, and its release wakes none: those in the queue find the lock free
//! when they ask next, within half a second.
//!
//! Of 56 readers and 8 writers on five nodes who hold for 5 ms, the lock was had 586 times a
//! second, four times as often as by 64 writers. The longest wait of a writer was 123 ms, and that
//! of a reader 128 ms (`benches/record/many-2026-11-29.md`). Through ten minutes of faults no
//! writer met a reader (`tests/record/members-2026-11-29.md`).
//!
//! # Where it ends
//!
//! - A reader whose turn has come may still be late at a gate that names no queue, or another one:
//!   that of a `fair_strict` writer, of an older version's, or of one that waits on another node.
//!   Then it loses its turn. And where a node forgets its queue, as with its clock set or its keys
//!   deleted, readers that ask there first pass the gate of a writer that was before them.
//! - A release wakes the first 128 of those that read one behind the other. Further ones find out
//!   by themselves, each within half a second of the last of 128 before it having the lock.
//! - Only a writer that waits in the queue shuts the gate. Readers that always overlap keep these
//!   out: `lock_all`, `try_acquire`, a [`Retry`](crate::Retry) with a limit or of your own, clients
//!   of other libraries, users without the rights to the queue, connections by RESP2, and keys with
//!   a brace that ends no tag.
//! - A reader that goes on reading keeps all writers waiting. No one is thrown out; give readers a
//!   [limit](crate::Extend::For).
//! - No lock is reentrant but [within](crate::LockRequest::within) its guard, and `write` is not,
//!   within a read lock. A task that asks for `write` with a read lock in hand waits for itself,
//!   until its wait is over; the error says that this very locker is among the readers. Two tasks
//!   that did so would wait for each other, which is why no read lock becomes a write lock: release
//!   it, ask for the lock, and look again at what was read, for it may have changed.
//! - To ask for `read` again succeeds, unless a writer waits, and that writer waits for the first
//!   of the two: do not.
//! - A read lock is worth its round trips where reading under it takes long beside them. A program
//!   that reads for microseconds is better off with one writer's lock, or with none and a version.
