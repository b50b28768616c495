//! What can go wrong: [`DecodeError`] says what the peer did and at which byte of the stream,
//! [`UnexpectedFrame`] says that a well-formed frame is not the one the reader asked for.

use core::fmt;

use crate::frame::FrameKind;

/// The peer broke the protocol, or passed a limit.
///
/// There is no way back into step after this: the connection must be closed, and whatever was in
/// flight on it has an unknown outcome. The decoder that returned it returns it forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    kind: ErrorKind,
    offset: u64,
}

impl DecodeError {
    pub(crate) fn new(kind: ErrorKind, offset: u64) -> Self {
        Self { kind, offset }
    }

    /// What was wrong.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Where: bytes since the decoder was made, counted from zero.
    ///
    /// It is the first byte that no valid frame could have there. Where a number is at fault as a
    /// whole (it is too large), it is the first byte of that number.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {} of the stream", self.kind.text(), self.offset)
    }
}

impl core::error::Error for DecodeError {}

/// The ways in which bytes can fail to be RESP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No type starts with this byte.
    Type,
    /// A digit was expected, or a leading zero found, in an integer or a length.
    Number,
    /// An integer does not fit 64 bits.
    Overflow,
    /// A line does not end in CR LF where it must, or has a lone CR or LF inside.
    LineEnd,
    /// A boolean other than `t` and `f`.
    Boolean,
    /// Text that is not a double.
    Double,
    /// Text that is not a big number.
    BigNumber,
    /// A verbatim string too short for its format, or without the colon behind it.
    Verbatim,
    /// The bytes behind a bulk string, or its kin, are not CR LF: its length was wrong.
    Terminator,
    /// A push inside another frame.
    NestedPush,
    /// A chunk or an end marker outside the stream it belongs to, or something else inside one.
    Stream,
    /// A streamed map that ends behind a key.
    OddMap,
    /// Nested deeper than [`Limits::depth`](crate::Limits::depth).
    Depth,
    /// More elements than [`Limits::elements`](crate::Limits::elements).
    Elements,
    /// A string longer than [`Limits::bulk_bytes`](crate::Limits::bulk_bytes).
    BulkBytes,
    /// A line longer than [`Limits::line_bytes`](crate::Limits::line_bytes).
    LineBytes,
    /// A frame longer than [`Limits::frame_bytes`](crate::Limits::frame_bytes).
    FrameBytes,
    /// The decoder's own passes disagree: a bug here, or the buffer was changed between calls.
    Internal,
}

impl ErrorKind {
    /// Whether the bytes might be sound and only a limit of ours was passed.
    #[must_use]
    pub fn is_limit(self) -> bool {
        matches!(
            self,
            Self::Depth | Self::Elements | Self::BulkBytes | Self::LineBytes | Self::FrameBytes
        )
    }

    fn text(self) -> &'static str {
        match self {
            Self::Type => "unknown type byte",
            Self::Number => "malformed number",
            Self::Overflow => "number too large",
            Self::LineEnd => "malformed line end",
            Self::Boolean => "malformed boolean",
            Self::Double => "malformed double",
            Self::BigNumber => "malformed big number",
            Self::Verbatim => "malformed verbatim string",
            Self::Terminator => "string not followed by a line end",
            Self::NestedPush => "push inside another frame",
            Self::Stream => "chunk or end marker out of place",
            Self::OddMap => "map ends behind a key",
            Self::Depth => "nested too deep",
            Self::Elements => "too many elements",
            Self::BulkBytes => "string too long",
            Self::LineBytes => "line too long",
            Self::FrameBytes => "frame too long",
            Self::Internal => "decoder out of step with its buffer",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// A frame is not what its reader asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnexpectedFrame {
    expected: &'static str,
    found: FrameKind,
}

impl UnexpectedFrame {
    pub(crate) fn new(expected: &'static str, found: FrameKind) -> Self {
        Self { expected, found }
    }

    /// What was asked for, as in "an integer".
    #[must_use]
    pub fn expected(&self) -> &'static str {
        self.expected
    }

    /// What stood there instead.
    #[must_use]
    pub fn found(&self) -> FrameKind {
        self.found
    }
}

impl fmt::Display for UnexpectedFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}, found {}", self.expected, self.found)
    }
}

impl core::error::Error for UnexpectedFrame {}
