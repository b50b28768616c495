//! The lock of several keys, all or nothing, as the leases are told of it.
//!
//! One script per node sets all keys or none, in one flight, so two locks that share keys never
//! wait for one another's: there is no order in which keys are taken, and no deadlock. All keys
//! hold one value, and are extended and released together. A node that has lost some of them
//! counts as having lost the lock, and is given the lost ones again; those that it still has keep
//! the longer of their remaining life and the TTL.

use super::behind::behind_standing;
use crate::lease::{AcquireBy, Adopt, Holders, Primitive, TokenKind, script};
use crate::link::{ReplyKind, UndoScript};

const RELEASE: &str = include_str!("script/release_all.lua");

/// A lock of several keys. (A test compares the digests with the scripts.)
pub(crate) static ALL: Primitive = SEVERAL_KEYS;

/// The same, for kinds of lock that are one but for a little.
pub(super) const SEVERAL_KEYS: Primitive = Primitive {
    acquire: AcquireBy::Script(
        script!(include_str!("script/acquire_all.lua"), "07bf275be7ef9b36c9ddb92e6e370cbd52e125b3"),
        ReplyKind::Keys,
    ),
    vote: script!(
        behind_standing!("script/acquire_all.lua"),
        "bd4d05c63cd6185cebc6e98cc0ab05edd064296d"
    ),
    vote_reply: ReplyKind::KeysVote,
    tells_place: false,
    extend: script!(
        include_str!("script/extend_all.lua"),
        "c021dd918eee5621139c0291c0bcf3cb69104d48"
    ),
    release: script!(RELEASE, "590d9410497b5f20a95d7b95e0941fec6d1fbf80"),
    undo: UndoScript { text: RELEASE, compares_and_deletes: false, for_first_key: None },
    adopt: Adopt::Refused {
        token: TokenKind::Several,
        why: "a lock of several keys is not adopted",
    },
    holders: Holders::One,
    queued: None,
    without_tickets: None,
};
