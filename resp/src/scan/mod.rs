//! Scanning: from bytes to tokens, without owning or allocating any text.
//!
//! A *head* is the line an element starts with: `$5`, `*2`, `:42`. A *token* is a head whose
//! element is all there. The *tape* is the list of tokens of one frame, in wire order. A *level*
//! is an aggregate that still waits for elements.
//!
//! ```text
//! bytes ── head ──> Head ── body? ── levels ──> Token ──> tape ──(decode::build)──> Frame
//! ```
//!
//! Positions in here are counted from the first byte of the frame, and stay far below
//! `usize::MAX` because a slice has them all; they are added with `saturating_add` so that this
//! needs no belief.

mod frame;
mod head;
mod line;
mod number;
mod stack;
mod token;

pub(crate) use self::frame::{Scan, Scanned};
pub(crate) use self::token::{Shape, TextKind, Token};

use crate::error::ErrorKind;

/// Why scanning stopped before an element was complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// More bytes are needed.
    More {
        /// The frame can not go on before the buffer holds this many bytes.
        need: usize,
        /// Everything before this position is known to hold no line end.
        searched: usize,
    },
    /// The bytes are not RESP, whatever follows.
    Fault(Fault),
}

/// What is wrong, and at which position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: ErrorKind,
    pub(crate) at: usize,
}

impl Stop {
    /// More bytes, with nothing to remember: what there is of the line is short and read again.
    fn more() -> Self {
        Self::More { need: 0, searched: 0 }
    }

    fn fault(kind: ErrorKind, at: usize) -> Self {
        Self::Fault(Fault { kind, at })
    }
}
