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
    without_tickets: None,
    ..ONE_KEY
};

/// Several slots that were chosen: a lock of several keys.
static SLOTS: Primitive = Primitive {
    adopt: NOT_ADOPTED,
    holders: Holders::Slots(&KINDS),
    queued: Some(&CHOOSING),
    without_tickets: None,
    ..SEVERAL_KEYS
};

/// Slots on the node that keeps their queue, before it has chosen some; and those that it has, when
/// they are let go of. (A test compares the digests with the scripts.)
pub(crate) static CHOOSING: Primitive = Primitive {
    acquire: AcquireBy::Script(
        script!(behind_hand_on!("script/slot_ask.lua"), "411e7b93b5ac8825056463112ababf6a48d857bd"),
        ReplyKind::Pick,
    ),
    vote: script!(
        concat!(
            include_str!("../lease/script/standing.lua"),
            behind_hand_on!("script/slot_ask.lua")
        ),
        "22eb53b7a1251f2f77a5f3e7c385da8e552a883e"
    ),
    vote_reply: ReplyKind::PickVote,
    tells_place: false,
    extend: SEVERAL_KEYS.extend,
    release: script!(LEAVE, "80835f853bb72a6231db019d0b8fdb24cf3e6ccb"),
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
    without_tickets: None,
};
