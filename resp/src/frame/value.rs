//! What a value is: [`Frame`], and the three types that it holds and that hold it.
//!
//! Their invariants are written on their fields; the files that implement them keep those.

use bytes::Bytes;

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

/// The values of an array, set or push. Derefs to a slice of frames.
#[derive(Clone, Default, PartialEq)]
pub struct Items(pub(super) Vec<Frame>);

/// The entries of a map, or of an attribute, in the order sent.
#[derive(Clone, Default, PartialEq)]
pub struct Pairs(
    /// Keys and values in turn, so always an even number of frames.
    pub(super) Items,
);

/// A value, and what the server said about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Attributed {
    pub(super) attributes: Pairs,
    /// Never [`Frame::Attributed`]: so a chain of attributes has no depth.
    pub(super) value: Frame,
}
