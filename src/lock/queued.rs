//! The commands that the node with a key's queue runs for it.
//!
//! Their keys are the lock's, its queue's and its beats', in this order. It is extended as on any
//! other node, by its first key; and so released by a user who has a right to that key alone.

use super::behind::{behind_hand_on, behind_standing};
use crate::lease::{AcquireBy, Adopt, Holders, Primitive, Script, TokenKind, script};
use crate::link::{ReplyKind, UndoScript};

const LEAVE: &str = behind_hand_on!("script/turn_leave.lua");

/// Asks for a place in a queue. (A test compares the digests with the scripts.)
pub(super) const ASK: Script =
    script!(include_str!("script/turn_ask.lua"), "96866cd96b5db38635d417c292d819396c71fef3");
pub(super) const ASK_WHERE_IT_VOTES: Script =
    script!(behind_standing!("script/turn_ask.lua"), "ec3303c2f7fffeb3aab853cebdeeaa93526ff9e5");

/// A lock of one key, on the node that keeps its queue.
pub(crate) static QUEUED: Primitive = Primitive {
    acquire: AcquireBy::Script(ASK, ReplyKind::Queue),
    vote: ASK_WHERE_IT_VOTES,
    vote_reply: ReplyKind::Vote,
    extend: script!(include_str!("script/extend.lua"), "38c4b48c016c265132124c20017671204b3fa277"),
    release: script!(LEAVE, "b1f2442d116d36ff8e160774c9b4971593543faa"),
    undo: UndoScript {
        text: LEAVE,
        compares_and_deletes: false,
        for_first_key: Some(&UndoScript {
            text: include_str!("script/release.lua"),
            compares_and_deletes: true,
            for_first_key: None,
        }),
    },
    adopt: Adopt::Refused { token: TokenKind::Held, why: "what waits in a queue is not held" },
    holders: Holders::One,
    queued: None,
};
