//! Why there is no value.

use std::fmt;
use std::sync::Arc;

use crate::error::Error;
use crate::recipe::store_error::StoreError;

/// Why a [`Cached`](super::Cached) has no value to give.
#[derive(Debug)]
#[non_exhaustive]
pub enum CachedError<E> {
    /// The computation has failed. All who waited for it have the same error.
    Compute(Arc<E>),
    /// The store cannot be read.
    Store(StoreError),
    /// There is no lock to compute it under.
    Lock(Arc<Error>),
}

impl<E> Clone for CachedError<E> {
    fn clone(&self) -> Self {
        match self {
            Self::Compute(error) => Self::Compute(error.clone()),
            Self::Store(error) => Self::Store(error.clone()),
            Self::Lock(error) => Self::Lock(error.clone()),
        }
    }
}

impl<E> From<StoreError> for CachedError<E> {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl<E> From<Error> for CachedError<E> {
    fn from(error: Error) -> Self {
        Self::Lock(Arc::new(error))
    }
}

impl<E: fmt::Display> fmt::Display for CachedError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compute(error) => error.fmt(f),
            Self::Store(error) => write!(f, "the cache's store: {error}"),
            Self::Lock(error) => error.fmt(f),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for CachedError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Compute(error) => Some(&**error),
            Self::Store(error) => Some(error),
            Self::Lock(error) => Some(&**error),
        }
    }
}
