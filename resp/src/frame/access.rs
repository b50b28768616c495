//! Reading a frame: accessors that say what they wanted when they do not find it.
//!
//! Each looks through attributes, so that a reply means the same with and without them.

use core::str;

use bytes::Bytes;

use super::kind::FrameKind;
use super::value::{Frame, Items, Pairs};
use crate::error::UnexpectedFrame;

impl Frame {
    /// What kind of value this is.
    #[must_use]
    pub fn kind(&self) -> FrameKind {
        match self {
            Self::Simple(_) => FrameKind::Simple,
            Self::Error(_) => FrameKind::Error,
            Self::Integer(_) => FrameKind::Integer,
            Self::Bulk(_) => FrameKind::Bulk,
            Self::Null => FrameKind::Null,
            Self::Boolean(_) => FrameKind::Boolean,
            Self::Double(_) => FrameKind::Double,
            Self::BigNumber(_) => FrameKind::BigNumber,
            Self::BulkError(_) => FrameKind::BulkError,
            Self::Verbatim { .. } => FrameKind::Verbatim,
            Self::Array(_) => FrameKind::Array,
            Self::Map(_) => FrameKind::Map,
            Self::Set(_) => FrameKind::Set,
            Self::Push(_) => FrameKind::Push,
            Self::Attributed(_) => FrameKind::Attributed,
        }
    }

    /// The value itself, without its attributes if it has any.
    #[must_use]
    pub fn value(&self) -> &Self {
        match self {
            Self::Attributed(attributed) => attributed.value(),
            plain => plain,
        }
    }

    /// The value itself, its attributes dropped.
    #[must_use]
    pub fn into_value(self) -> Self {
        match self {
            Self::Attributed(attributed) => attributed.into_parts().1,
            plain => plain,
        }
    }

    /// Whether this is `+OK`.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        matches!(self.value(), Self::Simple(text) if text.as_ref() == b"OK")
    }

    /// Whether this is null, however it was spelled.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self.value(), Self::Null)
    }

    /// Whether this is a push, which answers no command.
    #[must_use]
    pub fn is_push(&self) -> bool {
        matches!(self.value(), Self::Push(_))
    }

    /// The text of an error of either kind. It comes from the peer: escape it before showing it.
    #[must_use]
    pub fn as_error(&self) -> Option<&[u8]> {
        match self.value() {
            Self::Error(text) | Self::BulkError(text) => Some(text),
            _ => None,
        }
    }

    /// The first word of an error, such as `NOSCRIPT`.
    #[must_use]
    pub fn error_word(&self) -> Option<&[u8]> {
        self.as_error().and_then(|text| text.split(|&byte| byte == b' ').next())
    }

    /// The bytes of a string: simple, bulk or verbatim.
    ///
    /// # Errors
    /// When this is something else; errors and null are not strings.
    pub fn as_bytes(&self) -> Result<&[u8], UnexpectedFrame> {
        match self.value() {
            Self::Simple(text) | Self::Bulk(text) | Self::Verbatim { text, .. } => Ok(text),
            other => Err(other.unexpected("a string")),
        }
    }

    /// The bytes of a string, as [`as_bytes`](Self::as_bytes), without a copy.
    ///
    /// # Errors
    /// When this is something else.
    pub fn into_bytes(self) -> Result<Bytes, UnexpectedFrame> {
        match self.into_value() {
            Self::Simple(text) | Self::Bulk(text) | Self::Verbatim { text, .. } => Ok(text),
            other => Err(other.unexpected("a string")),
        }
    }

    /// The text of a string.
    ///
    /// # Errors
    /// When this is something else, or its bytes are not UTF-8.
    pub fn as_str(&self) -> Result<&str, UnexpectedFrame> {
        str::from_utf8(self.as_bytes()?).map_err(|_| self.unexpected("a string of UTF-8"))
    }

    /// An integer.
    ///
    /// # Errors
    /// When this is something else; digits in a string are not an integer.
    pub fn as_integer(&self) -> Result<i64, UnexpectedFrame> {
        match self.value() {
            Self::Integer(value) => Ok(*value),
            other => Err(other.unexpected("an integer")),
        }
    }

    /// A boolean, or the integers 1 and 0 by which RESP2 spells it.
    ///
    /// # Errors
    /// When this is something else.
    pub fn as_bool(&self) -> Result<bool, UnexpectedFrame> {
        match self.value() {
            Self::Boolean(value) => Ok(*value),
            Self::Integer(0) => Ok(false),
            Self::Integer(1) => Ok(true),
            other => Err(other.unexpected("a boolean")),
        }
    }

    /// A double.
    ///
    /// # Errors
    /// When this is something else.
    pub fn as_double(&self) -> Result<f64, UnexpectedFrame> {
        match self.value() {
            Self::Double(value) => Ok(*value),
            other => Err(other.unexpected("a double")),
        }
    }

    /// The values of an array, set or push.
    ///
    /// # Errors
    /// When this is something else; a map has [`as_pairs`](Self::as_pairs).
    pub fn as_items(&self) -> Result<&[Self], UnexpectedFrame> {
        match self.value() {
            Self::Array(items) | Self::Set(items) | Self::Push(items) => Ok(items),
            other => Err(other.unexpected("an array, set or push")),
        }
    }

    /// The values of an array, set or push, to keep.
    ///
    /// # Errors
    /// When this is something else.
    pub fn into_items(self) -> Result<Items, UnexpectedFrame> {
        match self.into_value() {
            Self::Array(items) | Self::Set(items) | Self::Push(items) => Ok(items),
            other => Err(other.unexpected("an array, set or push")),
        }
    }

    /// The entries of a map.
    ///
    /// # Errors
    /// When this is something else. RESP2 has no maps: there the entries are an array's items.
    pub fn as_pairs(&self) -> Result<&Pairs, UnexpectedFrame> {
        match self.value() {
            Self::Map(pairs) => Ok(pairs),
            other => Err(other.unexpected("a map")),
        }
    }

    /// The same frame with text of its own, so that it no longer keeps a read buffer alive.
    ///
    /// Costs one small allocation for each text. Worth it for what outlives the next few reads.
    #[must_use]
    pub fn detach(mut self) -> Self {
        let mut pending = vec![&mut self];
        while let Some(frame) = pending.pop() {
            match frame {
                Self::Simple(text)
                | Self::Error(text)
                | Self::Bulk(text)
                | Self::BigNumber(text)
                | Self::BulkError(text)
                | Self::Verbatim { text, .. } => *text = Bytes::copy_from_slice(text),
                Self::Integer(_) | Self::Null | Self::Boolean(_) | Self::Double(_) => {}
                Self::Array(items) | Self::Set(items) | Self::Push(items) => {
                    pending.extend(items.iter_mut());
                }
                Self::Map(pairs) => pending.extend(pairs.frames_mut()),
                Self::Attributed(attributed) => pending.extend(attributed.frames_mut()),
            }
        }
        self
    }

    fn unexpected(&self, expected: &'static str) -> UnexpectedFrame {
        UnexpectedFrame::new(expected, self.kind())
    }
}
