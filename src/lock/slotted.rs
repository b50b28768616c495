//! The slots of a key, as the leases are told of them.
//!
//! Each is a lock of its own, which one holder has, by the commands of a lock of one key, and
//! several by those of a lock of several keys. Which ones, the node that keeps their queue chooses,
//! where it can see which are free, and sets them; it is told when they are let go of, for those
//! that wait.

use super::behind::{behind_hand_on, behind_standing};
use crate::lease::{AcquireBy, Adopt, Holders, Primitive, SlotKinds, TokenKind, script};
use crate::link::{ReplyKind, UndoScript};

const RELEASE: &str = include_str!("script/release.lua");
const RELEASE_ALL: &str = include_str!("script/release_all.lua");
const LEAVE: &str = behind_hand_on!("script/slot_leave.lua");

static KINDS: SlotKinds = SlotKinds { one: &SLOT, several: &SLOTS };
const NOT_ADOPTED: Adopt = Adopt::Refused { token: TokenKind::Slot, why: "a slot is not adopted" };

/// A slot that was chosen: a lock of one key. (A test compares the digests with the scripts.)
static SLOT: Primitive = Primitive {
    acquire: AcquireBy::SetIfAbsent,
    vote: script!(
        behind_standing!("script/acquire.lua"),
        "35fb6f02cdc9860f155091e24b71c81b6ea5eb45"
    ),
    vote_reply: ReplyKind::Vote,
    extend: script!(include_str!("script/extend.lua"), "38c4b48c016c265132124c20017671204b3fa277"),
    release: script!(RELEASE, "916642b5b6dd4b1989e91ed6ff2b86d233493ab3"),
    undo: UndoScript { text: RELEASE, compares_and_deletes: true, for_first_key: None },
    adopt: NOT_ADOPTED,
    holders: Holders::Slots(&KINDS),
    queued: Some(&CHOOSING),
};

/// Several slots that were chosen: a lock of several keys.
static SLOTS: Primitive = Primitive {
    acquire: AcquireBy::Script(
        script!(include_str!("script/acquire_all.lua"), "07bf275be7ef9b36c9ddb92e6e370cbd52e125b3"),
        ReplyKind::Keys,
    ),
    vote: script!(
        behind_standing!("script/acquire_all.lua"),
        "bd4d05c63cd6185cebc6e98cc0ab05edd064296d"
    ),
    vote_reply: ReplyKind::KeysVote,
    extend: script!(
        include_str!("script/extend_all.lua"),
        "3159e1c630d057f32734180033cfa02ee3d0b11a"
    ),
    release: script!(RELEASE_ALL, "4f2e98f404cfd16f3b256a0bd41c98bc3dc0b889"),
    undo: UndoScript { text: RELEASE_ALL, compares_and_deletes: false, for_first_key: None },
    adopt: NOT_ADOPTED,
    holders: Holders::Slots(&KINDS),
    queued: Some(&CHOOSING),
};

/// Slots on the node that keeps their queue, before it has chosen some; and those that it has, when
/// they are let go of.
pub(crate) static CHOOSING: Primitive = Primitive {
    acquire: AcquireBy::Script(
        script!(behind_hand_on!("script/slot_ask.lua"), "25828ef85bed1ea076792d87474bab6ce87d7656"),
        ReplyKind::Pick,
    ),
    vote: script!(
        concat!(
            include_str!("../lease/script/standing.lua"),
            behind_hand_on!("script/slot_ask.lua")
        ),
        "5737d571d025028ce897f96c2626ab9151dc25bd"
    ),
    vote_reply: ReplyKind::PickVote,
    extend: script!(
        include_str!("script/extend_all.lua"),
        "3159e1c630d057f32734180033cfa02ee3d0b11a"
    ),
    release: script!(LEAVE, "c0c282dddb0d0568fa0d7e504a4c714203def4b7"),
    undo: UndoScript {
        text: LEAVE,
        compares_and_deletes: false,
        for_first_key: Some(&UndoScript {
            text: RELEASE,
            compares_and_deletes: true,
            for_first_key: None,
        }),
    },
    adopt: NOT_ADOPTED,
    holders: Holders::Slots(&KINDS),
    queued: Some(&CHOOSING),
};
