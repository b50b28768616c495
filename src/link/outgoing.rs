//! A command that is handed to a link, and what becomes of it there.

use super::pipeline::Entry;
use super::undo::Undo;

/// A command on its way to one link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing<'a> {
    pub(crate) entry: Entry,
    pub(crate) bytes: &'a [u8],
    /// What undoes it.
    pub(crate) undo: Undo<'a>,
    pub(crate) urgency: Urgency,
}

/// Who writes the command to the socket, and whether the bounds apply to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Urgency {
    /// The caller while few replies are outstanding, the driver beyond; within the bounds.
    Usual,
    /// An undo: never refused for want of room (there is at most one for each command that was
    /// accepted), otherwise as usual.
    Undo,
    /// An undo that no task awaits: written at once with all that is queued, because the calling
    /// thread may hold up the driver.
    Drop,
}

/// What became of a command that was handed to a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sent {
    /// All bytes are with the kernel.
    Written,
    /// The driver must be woken to write it.
    Queued,
    /// Nothing was sent: the node is late with a reply already, so no task waits for another. The
    /// first reply that comes ends this, or the end of the connection. Or the key is still to be
    /// undone there: what the node would say of it now could not be relied on.
    Suspect,
    /// Nothing was sent: the link's bounds are reached.
    Full,
    /// Not accepted: no connection is open, or it told no `run_id` for a command that names the
    /// server. An undo is kept for the next connection, and written at once on an orphaned one.
    Closed,
}
