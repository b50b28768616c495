//! The commands that the node with a key's queue runs for it.
//!
//! Their keys are the lock's, its queue's and its beats', in this order. It is extended as on any
//! other node, by its first key.

use super::behind_standing::behind_standing;
use crate::lease::{AcquireBy, Adopt, Primitive, script};
use crate::link::{ReplyKind, UndoScript};

const LEAVE: &str = include_str!("script/turn_leave.lua");

/// A lock of one key, on the node that keeps its queue. (A test compares the digests with the
/// scripts.)
pub(crate) static QUEUED: Primitive = Primitive {
    acquire: AcquireBy::Script(
        script!(include_str!("script/turn_ask.lua"), "b64c26bff633c5e5f06d47fb9831c105d0776a43"),
        ReplyKind::Queue,
    ),
    vote: script!(
        behind_standing!("script/turn_ask.lua"),
        "1e777311ce7133f466df39b7ee5d3e700a842822"
    ),
    vote_reply: ReplyKind::Vote,
    extend: script!(include_str!("script/extend.lua"), "38c4b48c016c265132124c20017671204b3fa277"),
    release: script!(LEAVE, "7e55383a4ac91093005c3be0b5cde8b71c4df81c"),
    undo: UndoScript(LEAVE),
    adopt: Adopt::Refused("what waits in a queue is not held"),
    queued: None,
};
