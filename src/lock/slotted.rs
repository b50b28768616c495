//! The slots of a key, as the leases are told of them.
//!
//! Each is a lock of its own, which one holder has, by the commands of a lock of one key, and
//! several by those of a lock of several keys. Which ones, the node that keeps their queue chooses,
//! where it can see which are free, and sets them; it is told when they are let go of, for those
//! that wait.

use super::all::SEVERAL_KEYS;
use super::behind::behind_hand_on;
use super::mutex::ONE_KEY;
use crate::lease::{AcquireBy, Adopt, Holders, Primitive, SlotKinds, TokenKind, script};
use crate::link::{ReplyKind, UndoScript};

const RELEASE: &str = include_str!("script/release.lua");
const LEAVE: &str = behind_hand_on!("script/slot_leave.lua");

static KINDS: SlotKinds = SlotKinds { one: &SLOT, several: &SLOTS };
const NOT_ADOPTED: Adopt = Adopt::Refused { token: TokenKind::Slot, why: "a slot is not adopted" };

/// A slot that was chosen: a lock of one key.
static SLOT: Primitive = Primitive {
    adopt: NOT_ADOPTED,
    holders: Holders::Slots(&KINDS),
    queued: Some(&CHOOSING),
    ..ONE_KEY
};

/// Several slots that were chosen: a lock of several keys.
static SLOTS: Primitive = Primitive {
    adopt: NOT_ADOPTED,
    holders: Holders::Slots(&KINDS),
    queued: Some(&CHOOSING),
    ..SEVERAL_KEYS
};

/// Slots on the node that keeps their queue, before it has chosen some; and those that it has, when
/// they are let go of. (A test compares the digests with the scripts.)
pub(crate) static CHOOSING: Primitive = Primitive {
    acquire: AcquireBy::Script(
        script!(behind_hand_on!("script/slot_ask.lua"), "52a8dc8c3f7ad1977bad3bd10d96f7b6c92e9edd"),
        ReplyKind::Pick,
    ),
    vote: script!(
        concat!(
            include_str!("../lease/script/standing.lua"),
            behind_hand_on!("script/slot_ask.lua")
        ),
        "bc824ab3b54d2f64d146754832eae4f44ec8dec0"
    ),
    vote_reply: ReplyKind::PickVote,
    extend: SEVERAL_KEYS.extend,
    release: script!(LEAVE, "71da9de4a7f99ae742baf3369f59b1df6f78dab0"),
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
