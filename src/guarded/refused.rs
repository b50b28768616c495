//! What became of a write that was not done.

use std::fmt;

use crate::error::Error;
use crate::lease::Fence;

/// A write that came too late: the store has been written under a higher fence, or, where each
/// holder writes once, under this one already.
///
/// Nothing was written. The lock was lost, and what else was done under it is in doubt: stop, and
/// begin anew under a new lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    tried: Fence,
    stands: u64,
}

impl Refused {
    /// The store stands at this number, and has refused that fence: what the statement
    /// [`sql::Table::standing`](super::sql::Table::standing) tells.
    #[must_use]
    pub fn new(tried: Fence, stands: i64) -> Self {
        Self { tried, stands: u64::try_from(stands).unwrap_or_default() }
    }

    /// The fence of the write that was refused.
    #[must_use]
    pub fn tried(self) -> Fence {
        self.tried
    }

    /// The number of the highest fence that has written.
    #[must_use]
    pub fn stands(self) -> u64 {
        self.stands
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tried, stands } = self;
        if tried.number() == *stands {
            return write!(f, "a write under fence {tried} was refused: its holder has written");
        }
        write!(
            f,
            "a write under fence {tried} was refused: fence {stands} has written since (the lock \
             was lost; begin anew under a new one)"
        )
    }
}

impl std::error::Error for Refused {}

/// Why a [`Write`](super::Write) was not done, or is not known to be.
#[derive(Debug)]
#[non_exhaustive]
pub enum WriteError {
    /// A later holder has written. Nothing was.
    Refused(Refused),
    /// The server answered with this error. The fence may stand already, and a script that failed
    /// in its middle has done what came before.
    Rejected(Box<str>),
    /// There is no reply: see [`Client::command`](crate::Client::command). Where it
    /// [`is_unknown`](Error::is_unknown), the same write may be sent again: it is refused if a
    /// later holder has come.
    Client(Error),
}

impl WriteError {
    /// Both numbers, where a later holder has written.
    #[must_use]
    pub fn refused(&self) -> Option<Refused> {
        match self {
            Self::Refused(refused) => Some(*refused),
            Self::Rejected(_) | Self::Client(_) => None,
        }
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refused) => refused.fmt(f),
            Self::Rejected(error) => write!(f, "the server said to a guarded write: {error}"),
            Self::Client(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Client(error) => Some(error),
            Self::Refused(_) | Self::Rejected(_) => None,
        }
    }
}

impl From<Error> for WriteError {
    fn from(error: Error) -> Self {
        Self::Client(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_both_numbers_and_says_what_to_do() {
        let tried = Fence::from_number(41).unwrap();
        let refused = Refused::new(tried, 42);
        assert_eq!((refused.tried(), refused.stands()), (tried, 42));
        assert_eq!(
            refused.to_string(),
            "a write under fence 41 was refused: fence 42 has written since (the lock was lost; \
             begin anew under a new one)"
        );
        let again = Refused::new(tried, 41).to_string();
        assert_eq!(again, "a write under fence 41 was refused: its holder has written");
        assert_eq!(WriteError::Refused(refused).refused(), Some(refused));
        assert_eq!(WriteError::from(Error::misuse("why")).refused(), None);
    }
}
