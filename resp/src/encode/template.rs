//! Templates: a command encoded once, with holes for the arguments that change.
//!
//! ```text
//! SET ▢ ▢ NX PX ▢     *6␍␊$3␍␊SET␍␊ ▢ ␍␊ ▢ ␍␊$2␍␊NX␍␊$2␍␊PX␍␊ ▢ ␍␊
//! └─ arguments ─┘     └──── lead ───┘        └───── tail of hole 2 ────┘
//!
//! A hole is filled with a header and the bytes: `$12␍␊pay:order:42`.
//! ```

use core::fmt;

use super::{Output, array_header, bulk, header, header_len};

/// An argument of a [`Template`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument<'a> {
    /// The same each time.
    Fixed(&'a [u8]),
    /// Filled by each use.
    Hole,
}

/// A command with `HOLES` holes, encoded but for them.
///
/// ```
/// use quorlock_resp::encode::{Argument::{Fixed, Hole}, Template};
///
/// let set = [Fixed(b"SET"), Hole, Hole, Fixed(b"NX"), Fixed(b"PX"), Hole];
/// let acquire = Template::<3>::new(&set)?;
/// let holes: [&[u8]; 3] = [b"lock:order", b"7f3a@pay", b"10000"];
/// let mut out = Vec::with_capacity(acquire.encoded_len(holes));
/// acquire.encode(&mut out, holes);
/// assert!(out.starts_with(b"*6\r\n$3\r\nSET\r\n$10\r\nlock:order\r\n"));
/// # Ok::<(), quorlock_resp::encode::HoleCount>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Template<const HOLES: usize> {
    /// The array's header and the arguments before the first hole.
    lead: Box<[u8]>,
    /// Behind each hole: its line end, and the arguments before the next.
    tails: [Box<[u8]>; HOLES],
    /// Bytes of all of the above.
    fixed_len: usize,
}

impl<const HOLES: usize> Template<HOLES> {
    /// Encodes `arguments`.
    ///
    /// # Errors
    /// When the holes among them are not `HOLES`.
    pub fn new(arguments: &[Argument<'_>]) -> Result<Self, HoleCount> {
        let found = arguments.iter().filter(|argument| **argument == Argument::Hole).count();
        if found != HOLES {
            return Err(HoleCount { expected: HOLES, found });
        }
        let mut runs = arguments.split(|argument| *argument == Argument::Hole);
        let mut lead = Vec::new();
        array_header(&mut lead, arguments.len());
        encode_fixed(&mut lead, runs.next().unwrap_or_default());
        let tails: [Box<[u8]>; HOLES] = core::array::from_fn(|_| {
            let mut tail = b"\r\n".to_vec();
            encode_fixed(&mut tail, runs.next().unwrap_or_default());
            tail.into_boxed_slice()
        });
        let fixed_len = tails.iter().fold(lead.len(), |len, tail| len.saturating_add(tail.len()));
        Ok(Self { lead: lead.into_boxed_slice(), tails, fixed_len })
    }

    /// The length of what [`encode`](Self::encode) writes.
    #[inline]
    #[must_use]
    pub fn encoded_len(&self, holes: [&[u8]; HOLES]) -> usize {
        let filled = holes.iter().map(|hole| header_len(hole.len()).saturating_add(hole.len()));
        filled.fold(self.fixed_len, usize::saturating_add)
    }

    /// Writes the command with its holes filled, in order.
    #[inline]
    pub fn encode<O: Output + ?Sized>(&self, out: &mut O, holes: [&[u8]; HOLES]) {
        out.reserve(self.encoded_len(holes));
        out.put(&self.lead);
        for (hole, tail) in holes.iter().zip(&self.tails) {
            header(out, b'$', hole.len());
            out.put(hole);
            out.put(tail);
        }
    }
}

impl<const HOLES: usize> fmt::Debug for Template<HOLES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}", self.lead.escape_ascii())?;
        for tail in &self.tails {
            write!(f, "▢{}", tail.escape_ascii())?;
        }
        f.write_str("\"")
    }
}

fn encode_fixed(out: &mut Vec<u8>, arguments: &[Argument<'_>]) {
    for argument in arguments {
        if let Argument::Fixed(bytes) = argument {
            bulk(out, bytes);
        }
    }
}

/// A template's arguments have another number of holes than its type says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoleCount {
    expected: usize,
    found: usize,
}

impl fmt::Display for HoleCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {} holes in the template, found {}", self.expected, self.found)
    }
}

impl core::error::Error for HoleCount {}
