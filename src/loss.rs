//! Why a lock was lost: what an [`Event`](crate::Event), an [`Error`](crate::Error) and a
//! [`Held`](crate::Held) say of it.

use std::fmt;

/// Why a lock was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Loss {
    /// Its time ran out: no majority extended it.
    Expired,
    /// A majority of the nodes said that they do not hold it: it was deleted or taken, or the nodes
    /// were emptied.
    Gone,
    /// The locker was shut down.
    Closed,
    /// Its guard has let go of it. No loss to the guard: it is what a
    /// [`Held`](crate::Held) that outlives the guard is told.
    Released,
    /// Its time ran out after its holder was asked to let go of it: see
    /// [`Locker::revoke`](crate::Locker::revoke).
    Revoked,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "its time ran out",
            Self::Gone => "a majority of the nodes no longer holds it",
            Self::Closed => "the locker was shut down",
            Self::Released => "its guard has let go of it",
            Self::Revoked => "it was revoked, and its time ran out",
        })
    }
}
