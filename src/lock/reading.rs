//! The lock of one key for readers, as the leases are told of it.
//!
//! Writers have the lock of the key itself, as `mutex` says it: with readers and with clients that
//! know of none they exclude one another. While readers have it, the key holds a word of theirs,
//! and ends with the last of them; each has its own end beside it, by the server's time, so that
//! one that is gone ends alone. Any majority of a reader's shares a node with any majority of a
//! writer's.
//!
//! Readers and writers wait in one queue, in the order of their arrival. A writer that is the first
//! there shuts the gate of the lock on all nodes: readers that come later do not join those that
//! have it, and so it waits for these alone. One whose turn had come before is late at most, and
//! passes the gate.
//!
//! A writer may become a reader; then its value, which stood under the lock's key, stands among the
//! readers.

use super::behind::behind_hand_on;
use super::queued::{ASK, ASK_WHERE_IT_VOTES};
use crate::lease::{AcquireBy, Adopt, Holders, Primitive, Script, TokenKind, script};
use crate::link::{ReplyKind, UndoScript};

/// Makes a reader of a writer. Seldom sent, and so always in full.
pub(super) const DOWNGRADE: &str = behind_hand_on!("script/downgrade.lua");

const LEAVE: &str = behind_hand_on!("script/read_leave.lua");

const EXTEND: Script =
    script!(include_str!("script/read_extend.lua"), "a07198394408d511607da0228d31217c5f20e38b");
const RELEASE: Script = script!(LEAVE, "8566be7e311b3c25be4e07fd6a263b92e02af544");
/// A user who may not touch what is kept beside a lock is no reader, and may have been a writer.
const UNDO: UndoScript = UndoScript {
    text: LEAVE,
    compares_and_deletes: false,
    for_first_key: Some(&UndoScript {
        text: include_str!("script/release.lua"),
        compares_and_deletes: true,
        for_first_key: None,
    }),
};

/// A read lock of one key. (A test compares the digests with the scripts.)
pub(crate) static READ: Primitive = Primitive {
    acquire: AcquireBy::Script(
        script!(behind_hand_on!("script/read.lua"), "fc505cbc0da3bb2c4a63b56d0bd8a20743c474c7"),
        ReplyKind::Keys,
    ),
    vote: script!(
        concat!(include_str!("../lease/script/standing.lua"), behind_hand_on!("script/read.lua")),
        "041ba002d7672df3768429930bcd4dbb0c187471"
    ),
    vote_reply: ReplyKind::KeysVote,
    tells_place: true,
    extend: EXTEND,
    release: RELEASE,
    undo: UNDO,
    adopt: Adopt::Refused { token: TokenKind::Read, why: "a read lock is not adopted" },
    holders: Holders::Readers,
    queued: Some(&QUEUED_READER),
    without_tickets: None,
};

/// A reader on the node that keeps the lock's queue, until it has the lock.
static QUEUED_READER: Primitive = Primitive {
    acquire: AcquireBy::Script(ASK, ReplyKind::Queue),
    vote: ASK_WHERE_IT_VOTES,
    vote_reply: ReplyKind::Vote,
    tells_place: false,
    extend: EXTEND,
    release: RELEASE,
    undo: UNDO,
    adopt: Adopt::Refused { token: TokenKind::Read, why: "what waits in a queue is not held" },
    holders: Holders::Readers,
    queued: None,
    without_tickets: None,
};
