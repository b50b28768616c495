//! The name of a frame's variant: [`FrameKind`].

use core::fmt;

/// The kind of a [`Frame`](crate::Frame), for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each is the variant of `Frame` with its name")]
pub enum FrameKind {
    Simple,
    Error,
    Integer,
    Bulk,
    Null,
    Boolean,
    Double,
    BigNumber,
    BulkError,
    Verbatim,
    Array,
    Map,
    Set,
    Push,
    Attributed,
}

impl fmt::Display for FrameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Simple => "a simple string",
            Self::Error => "an error",
            Self::Integer => "an integer",
            Self::Bulk => "a bulk string",
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Double => "a double",
            Self::BigNumber => "a big number",
            Self::BulkError => "a bulk error",
            Self::Verbatim => "a verbatim string",
            Self::Array => "an array",
            Self::Map => "a map",
            Self::Set => "a set",
            Self::Push => "a push",
            Self::Attributed => "a value with attributes",
        })
    }
}
