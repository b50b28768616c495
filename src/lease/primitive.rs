//! A kind of lock, as this room is given it: a description of what is said to the nodes.
//!
//! Each command of a lock stands by itself: it says what it needs in its own bytes, and what undoes
//! it. A node answers with what the kinds of replies here admit, and that becomes a vote. Another
//! kind of lock is another description.

use super::token::Kind as TokenKind;
use crate::link::{ReplyKind, UndoScript};

/// What a kind of lock says to the nodes.
pub(crate) struct Primitive {
    pub(crate) acquire: AcquireBy,
    /// What acquires it if the node may vote: where servers may forget. Behind `standing.lua`.
    pub(crate) vote: Script,
    /// What a node replies to `vote`.
    pub(crate) vote_reply: ReplyKind,
    /// Whether both are told its place among those that wait: its ticket, or of a reader the
    /// [queue](super::queue_node) in which its turn has come.
    pub(crate) tells_place: bool,
    pub(crate) extend: Script,
    pub(crate) release: Script,
    /// What undoes an acquisition or an adoption: the text of the release.
    pub(crate) undo: UndoScript,
    pub(crate) adopt: Adopt,
    pub(crate) holders: Holders,
    /// What is said to the node that keeps a key's queue, of a lock that has one: about the key and
    /// those of its queue.
    pub(crate) queued: Option<&'static Self>,
    /// Of one that is acquired in the order of tickets: the same lock without these.
    pub(crate) without_tickets: Option<&'static Self>,
}

/// Who may have a lock at once. Where that can be several, they stand in no line of their process.
pub(crate) enum Holders {
    One,
    /// Any number. The node that keeps the queue only says that it is their turn, and sets nothing.
    Readers,
    /// As many as there are slots; of each slot one. The node that keeps the queue chooses them,
    /// and what was chosen is a lock of these kinds.
    Slots(&'static SlotKinds),
}

/// What kinds of lock slots are that were chosen.
pub(crate) struct SlotKinds {
    pub(crate) one: &'static Primitive,
    pub(crate) several: &'static Primitive,
}

impl Holders {
    pub(super) fn is_one(&self) -> bool {
        matches!(self, Self::One)
    }

    pub(super) fn are_readers(&self) -> bool {
        matches!(self, Self::Readers)
    }

    pub(super) fn have_slots(&self) -> bool {
        matches!(self, Self::Slots(_))
    }
}

/// How a lock is acquired.
pub(crate) enum AcquireBy {
    /// By `SET NX PX`.
    SetIfAbsent,
    /// By a script, and what a node replies to it.
    Script(Script, ReplyKind),
}

/// How a lock is taken over by its token.
pub(crate) enum Adopt {
    /// By these scripts: the second one where servers may forget. Seldom sent, and so always whole.
    Scripts { plain: &'static str, vote: &'static str },
    /// It cannot be, for this reason, and its token says of which kind it is.
    Refused { token: TokenKind, why: &'static str },
}

/// A script, and the digest by which a server knows it that has seen it. Made by [`script!`].
pub(crate) struct Script {
    pub(crate) text: &'static str,
    /// The first words of a call by the digest, encoded: every release says them.
    pub(crate) by_digest: &'static str,
}

#[cfg(test)]
impl Script {
    pub(crate) fn sha1(&self) -> &'static str {
        self.by_digest.split("\r\n").nth(3).unwrap_or_default()
    }
}

/// A [`Script`] by its text and the literal of its digest.
macro_rules! script {
    ($text:expr, $sha1:literal) => {
        $crate::lease::Script {
            text: $text,
            by_digest: concat!("$7\r\nEVALSHA\r\n$40\r\n", $sha1, "\r\n"),
        }
    };
}
pub(crate) use script;

/// How a command names its script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ScriptForm {
    /// By its digest, which a server knows that has loaded it.
    Digest,
    /// In full, for a server that has forgotten it, or has never seen it.
    Whole,
}
