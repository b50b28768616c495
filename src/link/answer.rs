//! What a reply means, by the kind of its command: the one place that says so.
//!
//! - Can this be the reply to that command? [`ReplyKind::accepts`]; if not, it is a [`Stray`].
//! - What did the node do? [`ReplyKind::vote_of`].
//! - What follows the answer to an undo? [`FollowUp::after`].
//! - Which number stands beside the vote? [`time_beside`], [`time_of_refusal`], [`key_in_the_way`].
//!
//! Pure: replies in, meanings out. The tables are its tests.

#[cfg(test)]
mod tests;

use std::time::Duration;

use quorlock_resp::Frame;

#[cfg(doc)]
use super::RunId;
use super::reply::Reply;
use super::undo::Form;
use crate::node_vote::NodeVote;
use crate::server_error::ServerError;

/// The replies that a command may have. Each may also be an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReplyKind {
    /// `OK` or null.
    Status,
    /// The reply to an undo: 1 (done), 0 (nothing there), −1 (another's value).
    Undo,
    /// The reply to an undo that is a [native command](super::native): 1 (done), or 0 (nothing
    /// there, or another's value).
    NativeUndo,
    /// The reply to another script: as an undo's, but nothing is pending if it did not run; or −2
    /// (revoked).
    Script,
    /// The reply to a script that may refuse for a reason: as to another script, or such a reason
    /// and a number. Its command names the server: see [`ReplyKind::names_server`].
    Vote,
    /// The reply to a script that takes a lock over, or revokes it: 1 and a number (done), 0, −1,
    /// or −2 (revoked).
    Adopt,
    /// The reply to a script that asks in turn: 1 and a number (done), or −1 to −3 and a number.
    Queue,
    /// The reply to a script that chooses some of several keys: 1 and which (done), or −1 and a
    /// number.
    Pick,
    /// The same where it may refuse for a reason: as `Pick`, or one of the reasons 2 to 4 and a
    /// number. Its command names the server.
    PickVote,
    /// The reply to a script about several keys: 1 (done), 0 (nothing there), or −n (the n-th key,
    /// counted from 1, has another's value).
    Keys,
    /// The reply to a script about several keys that may refuse for a reason: as `Keys`, or one of
    /// the reasons 2 to 4 and a number. Its command names the server.
    KeysVote,
    /// The reply to a script that asks for a set of names: 1 and each of them.
    NameSet,
    /// The same where it may refuse for a reason: as `NameSet`, or one of the reasons 2 to 4 and a
    /// number. Its command names the server.
    NameSetVote,
    /// The reply to the script that lets a fence rise: 1 (done), 0 (the lock is not held with that
    /// value), or −f (the fence stands at f).
    Fence,
    /// The reply to the same script where it acquires the lock: 1 (done), 0 (another holds it), or
    /// −f (the lock was set, and its fence stands at f).
    AcquireFenced,
    /// The same where it may refuse for a reason: as `AcquireFenced`, or one of the reasons 2 to 4
    /// and a number. Its command names the server.
    AcquireFencedVote,
    /// The reply to an undo that was pending (see [`pending`](super::pending)): as to an undo, and
    /// any answer that is for good settles it.
    PendingUndo,
    /// The reply to ending a connection: how many were ended.
    Ended,
    /// Any frame that is no push.
    Any,
    /// As `Any`; what the command reads is tracked. It goes out behind a `TrackingRequest`.
    Tracked,
    /// Any frame that is no push; whatever is not `OK` says that nothing is tracked.
    TrackingRequest,
}

/// How many keys a script can be given: so low may the number of a key in the way be.
const KEYS_MAX: i64 = u16::MAX as i64;

/// No fence is above this.
const FENCE_MAX: i64 = (1 << 53) - 1;

impl ReplyKind {
    /// Whether such commands are sent for what earlier ones may have left.
    pub(super) fn is_undo(self) -> bool {
        matches!(self, Self::Undo | Self::NativeUndo | Self::PendingUndo | Self::Ended)
    }

    /// Whether such a command ends in a hole of a [`RunId`]'s length, which each link fills with
    /// the `run_id` of the server process that it is connected to.
    #[inline]
    pub(super) fn names_server(self) -> bool {
        use ReplyKind::{AcquireFencedVote, KeysVote, NameSetVote, PickVote, Vote};
        matches!(self, Vote | KeysVote | AcquireFencedVote | PickVote | NameSetVote)
    }

    /// Whether any frame can be the reply that is no push.
    #[inline]
    fn takes_any(self) -> bool {
        matches!(self, Self::Any | Self::Tracked | Self::TrackingRequest)
    }

    /// Whether the script sets the lock, too: then 0 is another's value.
    #[inline]
    fn sets_the_lock(self) -> bool {
        matches!(self, Self::AcquireFenced | Self::AcquireFencedVote)
    }

    /// Whether −f tells where a fence stands that has not risen, of a lock that is ours.
    #[inline]
    fn tells_fence(self) -> bool {
        self == Self::Fence || self.sets_the_lock()
    }

    /// Whether −2 says that the value stands there, revoked.
    #[inline]
    fn tells_revocation(self) -> bool {
        matches!(self, Self::Script | Self::Vote | Self::Adopt)
    }

    /// Whether a number below zero tells which key is in the way.
    #[inline]
    fn tells_key(self) -> bool {
        matches!(self, Self::Keys | Self::KeysVote)
    }

    /// Whether this can be the reply to such a command.
    pub(super) fn accepts(self, reply: &Reply) -> bool {
        match reply {
            Reply::Ok | Reply::Null => self == Self::Status || self.takes_any(),
            Reply::Integer(number) => match self {
                Self::Undo | Self::PendingUndo => (-1..=1).contains(number),
                Self::Script | Self::Vote => (-2..=1).contains(number),
                Self::NativeUndo => (0..=1).contains(number),
                Self::Keys | Self::KeysVote => (-KEYS_MAX..=1).contains(number),
                Self::Fence | Self::AcquireFenced | Self::AcquireFencedVote => {
                    (-FENCE_MAX..=1).contains(number)
                }
                Self::Adopt => (-2..=0).contains(number),
                Self::Ended | Self::Any | Self::Tracked | Self::TrackingRequest => true,
                Self::Status | Self::Queue => false,
                Self::Pick | Self::PickVote | Self::NameSet | Self::NameSetVote => false,
            },
            Reply::Whole(frame) => match (self, &**frame) {
                (_, Frame::Push(_)) => false,
                (_, Frame::Error(_)) => true,
                (kind, _) if kind.takes_any() => true,
                (Self::Vote, Frame::Array(items)) => {
                    matches!(items[..], [Frame::Integer(_), Frame::Integer(_)])
                }
                (Self::Pick | Self::PickVote, Frame::Array(items)) if picks(items) => true,
                (Self::NameSet | Self::NameSetVote, Frame::Array(items)) if is_name_set(items) => {
                    true
                }
                (
                    Self::KeysVote | Self::AcquireFencedVote | Self::PickVote | Self::NameSetVote,
                    Frame::Array(items),
                ) => {
                    matches!(items[..], [Frame::Integer(2..=4), Frame::Integer(_)])
                }
                (Self::Queue, Frame::Array(items)) => {
                    matches!(items[..], [Frame::Integer(-3..=-1 | 1), Frame::Integer(_)])
                }
                (Self::Adopt, Frame::Array(items)) => {
                    matches!(items[..], [Frame::Integer(1), Frame::Integer(_)])
                }
                _ => false,
            },
        }
    }

    /// What the node did, by its reply to such a command; and the frame itself where a caller will
    /// want to read it.
    #[inline]
    pub(crate) fn vote_of(self, reply: Reply) -> (NodeVote, Option<Frame>) {
        if self.takes_any() {
            return (NodeVote::Granted, Some(reply.into_frame()));
        }
        match reply {
            Reply::Ok | Reply::Integer(1..) => (NodeVote::Granted, None),
            Reply::Null => (NodeVote::Held, None),
            Reply::Integer(0) if self.sets_the_lock() => (NodeVote::Held, None),
            Reply::Integer(0) => (NodeVote::Gone, None),
            Reply::Integer(number) if self.tells_fence() => {
                (NodeVote::Unfenced, Some(Frame::Integer(number)))
            }
            Reply::Integer(number) if self.tells_key() => {
                (NodeVote::Held, Some(Frame::Integer(number)))
            }
            Reply::Integer(-1) => (NodeVote::Held, None),
            Reply::Integer(-2) if self.tells_revocation() => (NodeVote::Revoked, None),
            Reply::Integer(_) => (NodeVote::Granted, None),
            Reply::Whole(frame) => (vote_of_frame(&frame), Some(*frame)),
        }
    }
}

/// Whether a frame's items say which keys were chosen, or that none were, and when to ask again.
fn picks(items: &[Frame]) -> bool {
    match items {
        [Frame::Integer(1), picked @ ..] => {
            !picked.is_empty()
                && picked.iter().all(|one| matches!(one, Frame::Integer(1..=KEYS_MAX)))
        }
        [Frame::Integer(-1), Frame::Integer(_)] => true,
        _ => false,
    }
}

/// Whether a frame's items are those of a set of names.
fn is_name_set(items: &[Frame]) -> bool {
    match items {
        [Frame::Integer(1), names @ ..] => names.iter().all(|name| name.as_bytes().is_ok()),
        _ => false,
    }
}

/// What a node did that answered more than a word.
fn vote_of_frame(frame: &Frame) -> NodeVote {
    match frame {
        Frame::Array(items) => match items.first() {
            Some(Frame::Integer(1)) => NodeVote::Granted,
            Some(Frame::Integer(-3..=-1)) => NodeVote::Held,
            Some(Frame::Integer(2)) => NodeVote::Quarantined,
            _ => NodeVote::DurabilityMismatch,
        },
        frame => match frame.as_error() {
            Some(text) if ServerError::new(text).was_refused() => NodeVote::Refused,
            _ => NodeVote::Failed,
        },
    }
}

/// What is to be done after the answer to an undo, to ending an old connection, or to a request for
/// tracking.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FollowUp {
    /// Send the undo again at once, with its script: the server does not know it, or the native
    /// command in its place has changed nothing, and its answer does not say all that the script's
    /// does.
    WithScript,
    /// Send what deletes the first key alone, at once: the user may have no right to the others.
    ForFirstKey,
    /// As `WithScript`, and send no more native commands: the server rejects them.
    WithoutNative,
    /// The native command may have been executed, or not. The sender is told so; the script is sent
    /// for the case that it was not, and no more native commands are.
    Repeat,
    /// Send the undo again later: the server takes no writes for the moment.
    Later,
    /// Nothing: an undo that was pending has been answered for good.
    Settled,
    /// Nothing: an old connection has ended.
    Ended,
    /// Nothing is tracked: ask for it anew the next time.
    TrackingFailed,
    /// The same, and that will be no better on this connection.
    TrackingRefused,
    /// Repeat the undos: the server does not end an old connection, and what that sent may still
    /// arrive.
    Doubt,
}

impl FollowUp {
    /// Whether the sender waits for the reply to what follows.
    pub(super) fn is_answered_later(self) -> bool {
        matches!(self, Self::WithScript | Self::WithoutNative | Self::ForFirstKey)
    }

    /// Whether something was sent again for it, or is to be.
    pub(super) fn has_sent_or_will(self) -> bool {
        use FollowUp::{Ended, Settled, TrackingFailed, TrackingRefused};
        !matches!(self, Settled | Ended | TrackingFailed | TrackingRefused)
    }

    /// What a reply to a command of this kind, with an undo of this form, asks for; `None` where
    /// nothing follows.
    #[inline]
    pub(super) fn after(kind: ReplyKind, form: Form, reply: &Reply) -> Option<Self> {
        match kind {
            ReplyKind::Undo => Self::after_undo(form, reply),
            ReplyKind::NativeUndo => Self::after_native(reply),
            ReplyKind::PendingUndo => Some(Self::after_undo(form, reply).unwrap_or(Self::Settled)),
            ReplyKind::Ended if reply.as_error().is_some() => Some(Self::Doubt),
            ReplyKind::Ended => Some(Self::Ended),
            ReplyKind::TrackingRequest => Self::after_tracking_request(reply),
            _ => None,
        }
    }

    fn after_native(reply: &Reply) -> Option<Self> {
        let Reply::Whole(frame) = reply else {
            return (*reply == Reply::Integer(0)).then_some(Self::WithScript);
        };
        let error = ServerError::new(frame.as_error()?);
        Some(match frame.error_word() {
            _ if error.rejects_command() => Self::WithoutNative,
            Some(b"WRONGTYPE") => Self::WithScript,
            _ if error.was_refused() => Self::WithScript,
            _ => Self::Repeat,
        })
    }

    fn after_tracking_request(reply: &Reply) -> Option<Self> {
        let is_for_now = |error| ServerError::new(error).is_for_now();
        match reply {
            Reply::Ok => None,
            reply if reply.as_error().is_some_and(is_for_now) => Some(Self::TrackingFailed),
            _ => Some(Self::TrackingRefused),
        }
    }

    fn after_undo(form: Form, reply: &Reply) -> Option<Self> {
        // Inside a script, what counts is the error that its command was told.
        match ServerError::new(reply.as_error()?).cause() {
            error if error.lacks_script() => Some(Self::WithScript),
            error if error.is_for_now() => Some(Self::Later),
            error if error.is_authentication() && form.has_first_key_form() => {
                Some(Self::ForFirstKey)
            }
            _ => None,
        }
    }
}

/// A frame came that cannot be the reply to the oldest command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stray;

/// The time that a reply tells beside what the node did.
pub(crate) fn time_beside(reply: &Frame) -> Option<Duration> {
    let number = reply.as_items().ok()?.get(1)?.as_integer().ok()?;
    u64::try_from(number).ok().map(Duration::from_millis)
}

/// The time beside the reason for which a node refused; a node that has none to tell says zero.
pub(crate) fn time_of_refusal(reply: &Frame) -> Option<Duration> {
    time_beside(reply).filter(|time| !time.is_zero())
}

/// Where a fence stands that has not risen, by the frame of a vote `Unfenced`.
pub(crate) fn fence_of(reply: &Frame) -> Option<u64> {
    u64::try_from(reply.as_integer().ok()?.checked_neg()?).ok()
}

/// Which of several keys has another's value, counted from 0, by the frame of a vote `Held`.
pub(crate) fn key_in_the_way(reply: &Frame) -> Option<usize> {
    let number = reply.as_integer().ok()?.checked_neg()?;
    usize::try_from(number).ok()?.checked_sub(1)
}
