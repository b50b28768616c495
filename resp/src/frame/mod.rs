//! Frames: [`Frame`] is one value of the protocol; [`Items`] and [`Pairs`] hold the values inside
//! one; [`Attributed`] is a value with what the server said about it.
//!
//! ```text
//! Frame ─┬─ scalar: text is Bytes, a reference-counted piece of the read buffer
//!        ├─ Array, Set, Push ── Items ── Frame …
//!        ├─ Map ── Pairs ── (Frame, Frame) …
//!        └─ Attributed ── Pairs + one Frame that is not itself Attributed
//! ```

mod access;
mod attributed;
mod items;
mod pairs;

use core::fmt;

use bytes::Bytes;

pub use self::attributed::Attributed;
pub use self::items::Items;
pub use self::pairs::{IntoPairs, PairIter, Pairs};

/// One RESP value.
///
/// Text is shared with the buffer it was read from and so keeps the whole of that buffer alive;
/// [`detach`](Frame::detach) what is to be kept for long.
///
/// Equality is that of the parts, so a `Double` that is not a number equals nothing. Dropping,
/// encoding and detaching work at any depth; cloning, comparing and printing descend on the stack,
/// which [`Limits::depth`](crate::Limits::depth) bounds for what was decoded.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Frame {
    /// `+`: a short text without line ends, such as `OK`.
    Simple(Bytes),
    /// `-`: an error in one line; its first word names it.
    Error(Bytes),
    /// `:`: a signed 64-bit integer.
    Integer(i64),
    /// `$`: any bytes. A streamed string arrives as one, joined.
    Bulk(Bytes),
    /// `_`, and the older `$-1` and `*-1`.
    Null,
    /// `#`: true or false.
    Boolean(bool),
    /// `,`: a floating point number.
    Double(f64),
    /// `(`: an integer of any size, as its decimal digits with an optional sign.
    BigNumber(Bytes),
    /// `!`: an error of any bytes.
    BulkError(Bytes),
    /// `=`: text that says what it is.
    Verbatim {
        /// Three bytes, such as `txt` or `mkd`.
        format: [u8; 3],
        /// The text behind the colon.
        text: Bytes,
    },
    /// `*`: values in order.
    Array(Items),
    /// `%`: pairs of key and value, in the order sent, repeated keys included.
    Map(Pairs),
    /// `~`: values without order; they are kept in the order sent, and not compared.
    Set(Items),
    /// `>`: out of band; never the reply to anything. Found at the top level only.
    Push(Items),
    /// `|`: a value and its attributes. Seen only with
    /// [`Decoder::keep_attributes`](crate::Decoder::keep_attributes), and never around a push.
    Attributed(Box<Attributed>),
}

/// The kind of a [`Frame`], for messages.
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
