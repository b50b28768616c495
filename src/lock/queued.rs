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
    script!(include_str!("script/turn_ask.lua"), "9c3945630f023bb21bbc3c8cbe90e391f13c4c4d");
pub(super) const ASK_WHERE_IT_VOTES: Script =
    script!(behind_standing!("script/turn_ask.lua"), "348f25e4cdc1cf682dfdc1c65f21b1b8ce165584");

/// Lets go of a lock, and leaves its queue.
pub(super) const RELEASE: Script = script!(LEAVE, "5ebef97937b4255b16af9130bba7f76be11370ed");
pub(super) const UNDO: UndoScript = UndoScript {
    text: LEAVE,
    compares_and_deletes: false,
    for_first_key: Some(&UndoScript {
        text: include_str!("script/release.lua"),
        compares_and_deletes: true,
        for_first_key: None,
    }),
};

/// A lock of one key, on the node that keeps its queue.
pub(crate) static QUEUED: Primitive = Primitive {
    acquire: AcquireBy::Script(ASK, ReplyKind::Queue),
    vote: ASK_WHERE_IT_VOTES,
    vote_reply: ReplyKind::Vote,
    tells_place: false,
    extend: script!(include_str!("script/extend.lua"), "47a7a3f4432b1c2d83c8db5f3bd25b1884a04164"),
    release: RELEASE,
    undo: UNDO,
    adopt: Adopt::Refused { token: TokenKind::Held, why: "what waits in a queue is not held" },
    holders: Holders::One,
    queued: None,
    without_tickets: None,
};
