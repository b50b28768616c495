//! The commands that the node with a key's queue runs for it.
//!
//! Their keys are the lock's, its queue's and its beats', in this order. It is extended as on any
//! other node, by its first key; and so released by a user who has a right to that key alone.

use super::behind_standing::behind_standing;
use crate::lease::{AcquireBy, Adopt, Primitive, script};
use crate::link::{ReplyKind, UndoScript};

const LEAVE: &str = include_str!("script/turn_leave.lua");

/// A lock of one key, on the node that keeps its queue. (A test compares the digests with the
/// scripts.)
pub(crate) static QUEUED: Primitive = Primitive {
    acquire: AcquireBy::Script(
        script!(include_str!("script/turn_ask.lua"), "3ce7c906b79b0c192b9d3fc633e9b64f67422db1"),
        ReplyKind::Queue,
    ),
    vote: script!(
        behind_standing!("script/turn_ask.lua"),
        "1eee06f4023908743f0d24a9a153a6f1a11c3dad"
    ),
    vote_reply: ReplyKind::Vote,
    extend: script!(include_str!("script/extend.lua"), "38c4b48c016c265132124c20017671204b3fa277"),
    release: script!(LEAVE, "738b726a9367949d615ed0790fa5930860bd6f92"),
    undo: UndoScript {
        text: LEAVE,
        compares_and_deletes: false,
        for_first_key: Some(&UndoScript {
            text: include_str!("script/release.lua"),
            compares_and_deletes: true,
            for_first_key: None,
        }),
    },
    adopt: Adopt::Refused("what waits in a queue is not held"),
    queued: None,
};
