//! Why a server did not do what a recipe asked of it.

use std::fmt;
use std::sync::Arc;

use quorlock_resp::Frame;

use crate::error::Error;

/// Why a server did not do what a recipe asked of it, or is not known to have.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// The server answered with this error.
    Rejected(Box<str>),
    /// The server's reply is not what was asked for: something else uses the key.
    Unexpected(Box<str>),
    /// There is no reply; where it [`is_unknown`](Error::is_unknown), the command may have been
    /// executed.
    Client(Arc<Error>),
    /// A store of your own has failed.
    Other(Arc<dyn std::error::Error + Send + Sync>),
}

impl StoreError {
    /// What a store of your own has failed of.
    pub fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Other(error.into().into())
    }

    /// A reply that says something else than what was asked for.
    pub(super) fn unexpected(reply: &Frame) -> Self {
        Self::Unexpected(format!("{reply:?}").into())
    }

    /// A reply that is no error.
    pub(super) fn check(reply: Frame) -> Result<Frame, Self> {
        match reply.as_error() {
            None => Ok(reply),
            Some(error) => Err(Self::Rejected(String::from_utf8_lossy(error).into())),
        }
    }
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        Self::Client(Arc::new(error))
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected(what) => write!(f, "the server said {what}"),
            Self::Unexpected(what) => write!(f, "something else uses the key: {what}"),
            Self::Client(error) => error.fmt(f),
            Self::Other(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Rejected(_) | Self::Unexpected(_) => None,
            Self::Client(error) => Some(&**error),
            Self::Other(error) => Some(&**error),
        }
    }
}
