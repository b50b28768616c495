//! Short replies: those a lock gets, told by their first bytes.

use bytes::Bytes;

use crate::frame::Frame;
use crate::limits::Limits;

/// Longest error taken without the scanner. Servers' own are shorter; the bound keeps the search
/// for a line end, which is not remembered between calls, from being repeated over much text.
const ERROR_BYTES: usize = 256;

/// A reply that was read where it stands, without making a [`Frame`] of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Short<'b> {
    /// `+OK`.
    Ok,
    /// Null.
    Null,
    /// An integer of one digit, or −1.
    Integer(i64),
    /// An error of at most 256 bytes; its text.
    Error(&'b [u8]),
}

impl Short<'_> {
    /// The same as a frame. Allocates for an error only.
    #[inline]
    #[must_use]
    pub fn into_frame(self) -> Frame {
        match self {
            Self::Ok => Frame::Simple(Bytes::from_static(b"OK")),
            Self::Null => Frame::Null,
            Self::Integer(value) => Frame::Integer(value),
            Self::Error(text) => Frame::Error(Bytes::copy_from_slice(text)),
        }
    }
}

/// The replies of fixed bytes, and their length.
///
/// Four bytes are compared at once: this is the first thing done with every reply, and nearly all
/// of a lock's are decided here.
#[inline]
pub(super) fn constant(bytes: &[u8]) -> Option<(Short<'static>, usize)> {
    let Some(&first) = bytes.first_chunk::<4>() else {
        // The only one of three bytes, and the last in the buffer more often than not.
        return (bytes == b"_\r\n").then_some((Short::Null, 3));
    };
    let word = u32::from_le_bytes(first);
    if word & DIGIT_MASK == DIGIT {
        let digit = first[1].wrapping_sub(b'0');
        return (digit <= 9).then_some((Short::Integer(i64::from(digit)), 4));
    }
    let short = match word {
        OK => Short::Ok,
        NIL => Short::Null,
        MINUS_ONE => Short::Integer(-1),
        _ if word & NULL_MASK == NULL => return Some((Short::Null, 3)),
        _ => return None,
    };
    (bytes.get(4) == Some(&b'\n')).then_some((short, 5))
}

const OK: u32 = u32::from_le_bytes(*b"+OK\r");
const NIL: u32 = u32::from_le_bytes(*b"$-1\r");
const MINUS_ONE: u32 = u32::from_le_bytes(*b":-1\r");
const NULL: u32 = u32::from_le_bytes(*b"_\r\n\0");
const NULL_MASK: u32 = u32::from_le_bytes([0xff, 0xff, 0xff, 0]);
const DIGIT: u32 = u32::from_le_bytes(*b":\0\r\n");
const DIGIT_MASK: u32 = u32::from_le_bytes([0xff, 0, 0xff, 0xff]);

/// Any short reply, and its length.
#[inline]
pub(super) fn any<'b>(bytes: &'b [u8], limits: &Limits) -> Option<(Short<'b>, usize)> {
    constant(bytes).or_else(|| error(bytes, limits))
}

/// An error whose line is all there, short and sound. Whatever is wrong with it, the scanner
/// finds again and says.
fn error<'b>(bytes: &'b [u8], limits: &Limits) -> Option<(Short<'b>, usize)> {
    let rest = bytes.strip_prefix(b"-")?;
    let window = rest.get(..ERROR_BYTES.saturating_add(2)).unwrap_or(rest);
    let end = window.iter().position(|&byte| byte == b'\r' || byte == b'\n')?;
    let (text, line_end) = window.split_at_checked(end)?;
    let len = end.saturating_add(3);
    let within = end <= limits.line_bytes && len <= limits.frame_bytes;
    (within && line_end.starts_with(b"\r\n")).then_some((Short::Error(text), len))
}
