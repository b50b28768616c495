//! The lock of one key, as the leases are told of it.
//!
//! Acquired by `SET NX PX`, or with a fence by `fence.lua`; released and extended by scripts that
//! compare first. Where servers may forget, `standing.lua` goes before what acquires: it looks
//! whether the node may vote.

use super::behind::behind_standing;
use super::queued::QUEUED;
use crate::lease::{AcquireBy, Adopt, Holders, Primitive, script};
use crate::link::{ReplyKind, UndoScript};

const RELEASE: &str = include_str!("script/release.lua");

/// A lock of one key. (A test compares the digests with the scripts.)
pub(crate) static MUTEX: Primitive = ONE_KEY;

/// The same, for kinds of lock that are one but for a little.
pub(super) const ONE_KEY: Primitive = Primitive {
    acquire: AcquireBy::SetIfAbsent,
    vote: script!(
        behind_standing!("script/acquire.lua"),
        "35fb6f02cdc9860f155091e24b71c81b6ea5eb45"
    ),
    vote_reply: ReplyKind::Vote,
    tells_place: false,
    extend: script!(include_str!("script/extend.lua"), "47a7a3f4432b1c2d83c8db5f3bd25b1884a04164"),
    release: script!(RELEASE, "0be1dcf15509e3cc5178dcb10f9ae8085a5b7aa0"),
    undo: UndoScript { text: RELEASE, compares_and_deletes: true, for_first_key: None },
    adopt: Adopt::Scripts {
        plain: include_str!("script/adopt.lua"),
        vote: behind_standing!("script/adopt.lua"),
    },
    holders: Holders::One,
    queued: Some(&QUEUED),
    without_tickets: None,
};
