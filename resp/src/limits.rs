//! Limits: how much of a frame the decoder is willing to believe.
//!
//! A length on the wire is a claim by the peer. Every claim is compared with one of these numbers
//! before anything is done with it, and none of them makes the decoder allocate: they only say
//! when to stop.

/// Deepest nesting any [`Limits`] can allow.
///
/// Cloning, comparing and printing a frame descend into it, so depth costs stack there. At this
/// depth they still fit the stack of a small thread.
const DEPTH_CEILING: usize = 512;

/// Most elements any [`Limits`] can allow: they are counted in 32 bits.
#[expect(clippy::as_conversions, reason = "a widening, and `From` is not usable in a constant")]
const ELEMENTS_CEILING: usize = u32::MAX as usize;

/// Longest frame any [`Limits`] can allow: positions inside a frame are kept in 32 bits.
#[expect(clippy::as_conversions, reason = "a widening, and `From` is not usable in a constant")]
const FRAME_CEILING: usize = u32::MAX as usize;

/// Shortest line and frame any [`Limits`] can demand: enough for each reply of fixed bytes, which
/// are taken without asking for limits.
const FLOOR: usize = 32;

/// The bounds a [`Decoder`](crate::Decoder) enforces on each frame.
///
/// Passing one is a protocol error: the stream can not be trusted to be in step any longer.
/// What a limit really bounds is how much a peer can make the reader *keep*, because a frame is
/// handed out only when all of it is there.
///
/// ```
/// use quorlock_resp::{Decoder, Limits};
///
/// // A link that only ever sees the replies of a lock needs very little.
/// let limits = Limits::default().depth(4).elements(64).bulk_bytes(4096).frame_bytes(16 * 1024);
/// let decoder = Decoder::new(limits);
/// # let _ = decoder;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub(crate) depth: usize,
    pub(crate) elements: usize,
    pub(crate) bulk_bytes: usize,
    pub(crate) line_bytes: usize,
    pub(crate) frame_bytes: usize,
}

impl Limits {
    /// Nesting: how many aggregates may stand inside each other. Default 128, at most 512.
    ///
    /// An attribute and a streamed string count as one while they are open, and so does what an
    /// attribute belongs to. Zero allows scalars only. Servers' own replies stay below ten; only
    /// scripts that return deep tables need more. Too small refuses such a reply; too large lets
    /// a peer cost some 80 bytes for each four it sends.
    #[must_use]
    pub fn depth(mut self, levels: usize) -> Self {
        self.depth = levels.min(DEPTH_CEILING);
        self
    }

    /// Elements of one frame, all levels together, as declared by its headers.
    /// Default 1,048,576, at most 2³² − 1.
    ///
    /// A map or attribute entry counts as two, an attribute as one more, and a chunk of a streamed
    /// string, the empty last one too, as one. This is the limit that bounds memory: an element of
    /// three bytes becomes a [`Frame`](crate::Frame) of 40. Choose the longest reply you ask for;
    /// raise it before fetching millions of keys at once.
    #[must_use]
    pub fn elements(mut self, count: usize) -> Self {
        self.elements = count.min(ELEMENTS_CEILING);
        self
    }

    /// Length of one bulk string, bulk error, verbatim string or chunk. Default 512 MiB, which is
    /// also the most a server stores unless it was reconfigured. All chunks of a streamed string
    /// together are bounded by [`frame_bytes`](Self::frame_bytes) alone.
    #[must_use]
    pub fn bulk_bytes(mut self, bytes: usize) -> Self {
        self.bulk_bytes = bytes;
        self
    }

    /// Length of one line: simple string, error, double or big number, without type and line end.
    /// Default 64 KiB, at least 32 bytes.
    ///
    /// Servers keep these short; error texts that quote a command are the longest.
    #[must_use]
    pub fn line_bytes(mut self, bytes: usize) -> Self {
        self.line_bytes = bytes.max(FLOOR);
        self
    }

    /// Length of one whole frame on the wire, with all its headers. Default 1 GiB, at least
    /// 32 bytes, at most 4 GiB.
    ///
    /// This bounds the read buffer: an unfinished frame stays in it. Keep it above
    /// [`bulk_bytes`](Self::bulk_bytes), or the larger bulk strings are refused for this reason.
    #[must_use]
    pub fn frame_bytes(mut self, bytes: usize) -> Self {
        self.frame_bytes = bytes.clamp(FLOOR, FRAME_CEILING);
        self
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            depth: 128,
            elements: 1 << 20,
            bulk_bytes: 512 << 20,
            line_bytes: 64 << 10,
            frame_bytes: 1 << 30,
        }
    }
}
