//! Tokens: one element each, as kept on the tape.

/// One element of a frame. Text is a range of the frame's bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Token {
    Null,
    Boolean(bool),
    Integer(i64),
    Double(f64),
    Text {
        kind: TextKind,
        start: u32,
        len: u32,
    },
    /// An aggregate of so many elements follows; for maps and attributes, keys and values.
    Open {
        shape: Shape,
        elements: u32,
    },
    /// An aggregate follows, up to [`Token::End`].
    OpenStream {
        shape: Shape,
    },
    End,
    /// A string follows in chunks, up to a chunk of no bytes.
    TextStream,
    Chunk {
        start: u32,
        len: u32,
    },
    /// What was a chunk, or the end of a streamed string, before its text was joined.
    Joined,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextKind {
    Simple,
    Error,
    Bulk,
    BigNumber,
    BulkError,
    /// The range covers format, colon and text.
    Verbatim,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Array,
    Map,
    Set,
    Push,
    Attribute,
}

impl Shape {
    /// Whether its count on the wire is of pairs.
    pub(crate) fn in_pairs(self) -> bool {
        matches!(self, Self::Map | Self::Attribute)
    }
}

// The tape is what a hostile peer makes us keep beside its own bytes.
const _: () = assert!(size_of::<Token>() == 16);
