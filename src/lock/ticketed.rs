//! The lock of one key that is had in the order of tickets, as the leases are told of it.
//!
//! Each node keeps a queue of its own. Who wants the lock asks all nodes for their highest ticket,
//! takes one above what a majority has told, and says it to all: on each node the least ticket that
//! lives there may have the lock. So the order stands on every majority, and survives a node; it is
//! Lamport's bakery (CACM 17(8), 1974), with a node's queue in the place of each process's number.
//!
//! It excludes other locks of its key as `mutex` does, by the key itself: any of these may come in
//! between.

use super::behind::behind_standing;
use super::mutex::{MUTEX, ONE_KEY};
use super::queued::{RELEASE, UNDO};
use crate::lease::{AcquireBy, Primitive, script};
use crate::link::ReplyKind;

/// A lock of one key. (A test compares the digests with the scripts.)
pub(crate) static BY_TICKET: Primitive = Primitive {
    acquire: AcquireBy::Script(
        script!(include_str!("script/ticket_ask.lua"), "25fe19e3b23146d9a6344cbd5fdd5e2ff99376dc"),
        ReplyKind::Queue,
    ),
    vote: script!(
        behind_standing!("script/ticket_ask.lua"),
        "a5deddf19c39fc2098f412a9d8fb6fa995b656e6"
    ),
    vote_reply: ReplyKind::Vote,
    tells_place: true,
    release: RELEASE,
    undo: UNDO,
    without_tickets: Some(&MUTEX),
    ..ONE_KEY
};
