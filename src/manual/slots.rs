//! Slots: several have one key at once, and no more than it has slots.
//!
//! [`Locker::slots`](crate::Locker::slots) gives a key a number of slots, from 1 to 64.
//! [`acquire`](crate::Slots::acquire) asks for one of them, and
//! [`acquire_many`](crate::Slots::acquire_many) for several as one lock, all or none. Each works on
//! one server and on a quorum, waits and is woken, is extended, lost and released as any lock is.
//! In the shell one slot is `quorlock lock --slots N KEY -- COMMAND`, which tells the command its
//! number as `QUORLOCK_SLOT`.
//!
//! | | one slot | several slots |
//! |---|---|---|
//! | excludes | others from this slot | others from these slots |
//! | how many at once | as many as there are slots | as many as fit beside one another |
//! | which one it is | the guard's [`slots`](crate::LockGuard::slots): from 0 on | several |
//! | on the wire, at first | one script on the node that keeps the queue | the same |
//! | then on the other nodes | `SET NX PX` of the slot's key | the script of `lock_all` |
//! | its life | that of the slot's key | all of its slots as one |
//! | extended, lost, released | as a lock of one key | as a lock of several keys |
//! | waits | in the queue of the slots | at the head of it until enough are free |
//! | is woken by | a release, if it is the first | each release, once it is the first |
//! | adopted, or released by its token | no | no |
//! | its holder is asked to let go | by its number: [`revoke`](crate::Slots::revoke) | by any one |
//! | fence | none: a store would refuse all but the latest | none |
//!
//! A slot is a lock of its own, so at most as many hold the key as it has slots: that is what the
//! promises of a lock come to ([`promises`](super::promises)), slot by slot. A service that must
//! bear no more than four calls gets a fifth where a holder goes on after its lock was lost.
//!
//! A number belongs to one holder at a time. So it serves as a port, a shard or the name of a
//! worker; what its last holder has left there is the next one's to clear.
//!
//! # On the wire
//!
//! Slot 3 of the key `k` is the lock of the key `{k}:slot:3`, and that of a key with a tag, as
//! `a{t}b`, is `a{t}b/slot:3`: so all slots of a key are in one slot of a cluster. The locker's
//! prefix is inside the braces: `{pay:k}:slot:3`. By that name a client that knows of no slots
//! takes one or is kept from one, `quorlock status '{pay:k}:slot:3'` shows who has it, and
//! `quorlock release --force '{pay:k}:slot:3'` deletes it. Its holder is asked to let go of it by
//! `quorlock revoke --prefix pay: k --slot 3` ([`revocation`](super::revocation)). The lock of `k`
//! itself has nothing to do with its slots.
//!
//! The queue of `k` with four slots is `{k}:slots:4:quorlock:queue`, and beside it stands
//! `{k}:slots:4:quorlock:beats`. One node keeps it: the same for all that are connected to the same
//! nodes.
//!
//! | step | one server | a quorum |
//! |---|---|---|
//! | acquire | one round trip | two: the queue's node chooses, the others agree |
//! | the same where that node was wrong, or cannot be asked | | two more: see below |
//! | extend, release | one | one |
//! | wait | a script each 500 ms, and one for each time that it is told | the same, on one node |
//!
//! The queue's node sees which slots are free, and sets those that it chooses: so those that ask at
//! once do not meet. Its script names every slot of the key, also for one of them: a key of 64
//! slots costs that node more than one of four. The other nodes hear of the chosen slots alone.
//! They decide: what that node alone believes to be free, as after a restart, is not won. Then all
//! nodes are asked what stands under the slots' names, by `MGET`, and some are asked for that may
//! be free. So it is also where that node is silent, or says to one that does not wait that too few
//! are free.
//!
//! # Who comes first
//!
//! Those that have to wait stand in the queue in the order of their arrival, each task by itself,
//! also those of one process: no slot is handed on without the nodes. A slot that is let go of
//! wakes the first of them. Where several become free at once, each that takes some wakes the next.
//!
//! A slot that is free is kept for the first in the queue: one that comes later waits behind it,
//! also when it wants fewer. Only those that do not wait pass it, as below. A place whose owner is
//! gone is passed a second and a half after its last word, and the slots of one that is gone are
//! free at the end of their TTL. Of such places each that waits removes eight whenever it asks;
//! while more than 127 stand at the head, those behind them are not seen, and come second to one
//! that has just come.
//!
//! Of 64 callers on five nodes who hold for 5 ms, 16 slots were had 2,200 times a second, and none
//! waited for longer than 43 ms (`benches/record/many-2026-11-29.md`). Through ten minutes of
//! faults no slot had two holders (`tests/record/members-2026-11-29.md`).
//!
//! # Where it ends
//!
//! - **All processes must use the same number of slots.** No more hold the key at once than the
//!   largest number that one of them uses. Each number has its own queue, so those that use
//!   different ones do not wait behind one another, and wake one another by no release: each
//!   looks again every half second. To change the number, change it everywhere. Where it is
//!   lowered, holders of slots above the new number keep theirs until they let go.
//! - One that wants many slots blocks those that want few: while it waits at the head of the queue,
//!   slots stay free that others could use. Ask for few, or give it a short
//!   [`wait`](crate::LockRequest::wait).
//! - Without a queue each looks for itself, in no order: connections by RESP2, users without the
//!   rights to the queue ([`compatibility`](super::compatibility)), and all where the nodes that
//!   would keep it cannot be reached. Such a request looks at all nodes and asks for slots that may
//!   be free, after each pause again; and it may pass those that wait. A user who may not send
//!   `MGET` asks for neighbours, one by one: two that are free with a held one between them are not
//!   found then.
//! - A holder without a queue's node, as one on connections by RESP2, wakes no one by its release:
//!   those that wait look again every half second. So it is where the queue's node has been lost
//!   since they have come.
//! - A single try, by [`try_acquire`](crate::LockRequest::try_acquire) or without a wait, takes no
//!   place in the queue. It takes what is free, also before those that wait. So does each try of a
//!   request with a [`Retry`](crate::Retry) that has a limit or is your own: it polls. Tries that
//!   come all the time can keep one waiting that wants many.
//! - No slot is reentrant. A task that has one and asks again gets another, or waits; two that hold
//!   one and wait for one more wait for each other. Ask for all that is needed at once, by
//!   `acquire_many`.
//! - No slot is adopted, and none is released by its token: one that was left, by
//!   [`forget`](crate::LockGuard::forget) or at a shutdown, ends with its TTL.
//! - Slots have no fence, also where the locker's other locks have one.
//! - Slots of a key with a brace that ends no tag, as `a}b`, are refused.
//! - A slot bounds how many are at work, and not how fast they are: for calls in a second, count
//!   calls.
