//! Why a guarded command was not done.

use std::fmt;

use crate::fence::Fence;

/// A later holder's fence has reached the store: what came with an earlier one was refused, and
/// nothing of it was done.
///
/// The lock was lost, and what else was done under it is in doubt: stop, and begin anew under a new
/// lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stale {
    tried: Fence,
    accepted: u64,
}

impl Stale {
    /// The refusal of a fence by a store that has accepted the other number, as
    /// [`sql::Table::accepted`](super::sql::Table::accepted) tells it. One below zero, which is no
    /// fence, counts as 0.
    #[must_use]
    pub fn new(tried: Fence, accepted: i64) -> Self {
        Self { tried, accepted: u64::try_from(accepted).unwrap_or_default() }
    }

    /// The fence that was refused.
    #[must_use]
    pub fn tried(self) -> Fence {
        self.tried
    }

    /// The number of the highest fence that the store has accepted.
    #[must_use]
    pub fn accepted(self) -> u64 {
        self.accepted
    }
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tried, accepted } = self;
        write!(
            f,
            "refused under fence {tried}: fence {accepted} has come since (the lock was lost; \
             begin anew under a new one)"
        )
    }
}

impl std::error::Error for Stale {}

/// Why a [`Command`](super::Command) was not done, or is not known to be.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A later holder's fence has reached the store. Nothing was done.
    Stale(Stale),
    /// Of what is to be done [`once`](super::Command::once): this very fence has come before. So it
    /// was done, or begun, or something else was done under this fence, as a guarded `get`. The
    /// lock need not be lost.
    Used(Fence),
    /// The server answered with this error. The fence may have been accepted, and a script that
    /// failed in its middle has done what came before.
    Rejected(Box<str>),
    /// There is no reply: see [`Client::command`](crate::Client::command). Where it
    /// [`is_unknown`](crate::Error::is_unknown), the command may have been executed, or may be at
    /// any later time, also behind what is written under this fence from now on. So write nothing
    /// more under it: take the lock anew, and bring the new fence, behind which the late command is
    /// refused. If it is to be done [`once`](super::Command::once), send it again.
    Client(crate::Error),
}

impl Error {
    /// What the refusal of a fence means by a store that has accepted this number, as
    /// [`sql::Table::accepted`](super::sql::Table::accepted) tells it: [`Used`](Self::Used) where
    /// it is that very fence, and else [`Stale`](Self::Stale).
    #[must_use]
    pub fn refused(tried: Fence, accepted: i64) -> Self {
        match accepted == i64::from(tried) {
            true => Self::Used(tried),
            false => Self::Stale(Stale::new(tried, accepted)),
        }
    }

    /// Both numbers, where a later holder has come.
    #[must_use]
    pub fn stale(&self) -> Option<Stale> {
        match self {
            Self::Stale(stale) => Some(*stale),
            Self::Used(_) | Self::Rejected(_) | Self::Client(_) => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale(stale) => stale.fmt(f),
            Self::Used(fence) => write!(
                f,
                "refused under fence {fence}, which has come before, and this is to be done once \
                 (read what was done)"
            ),
            Self::Rejected(error) => write!(f, "the server rejected a guarded command: {error}"),
            Self::Client(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<crate::Error> for Error {
    fn from(error: crate::Error) -> Self {
        Self::Client(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_both_numbers_and_says_what_to_do() {
        let tried = Fence::from_number(41).unwrap();
        let stale = Stale::new(tried, 42);
        assert_eq!((stale.tried(), stale.accepted()), (tried, 42));
        assert_eq!(
            stale.to_string(),
            "refused under fence 41: fence 42 has come since (the lock was lost; \
             begin anew under a new one)"
        );
        assert_eq!(Stale::new(tried, -1).accepted(), 0);
        assert_eq!(Error::Stale(stale).to_string(), stale.to_string());
        assert_eq!(Error::Stale(stale).stale(), Some(stale));
        assert_eq!(Error::refused(tried, 42).stale(), Some(stale));
        assert!(matches!(Error::refused(tried, 41), Error::Used(used) if used == tried));
        let client = Error::from(crate::Error::misuse("why"));
        assert_eq!((client.to_string(), client.stale()), ("why".to_owned(), None));
        assert!(Error::Used(tried).to_string().contains("fence 41, which has come before"));
    }
}
