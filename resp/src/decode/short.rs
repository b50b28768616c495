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
    pub(super) fn into_frame(self) -> Frame {
        match self {
            Self::Ok => Frame::Simple(Bytes::from_static(b"OK")),
            Self::Null => Frame::Null,
            Self::Integer(value) => Frame::Integer(value),
            Self::Error(text) => Frame::Error(Bytes::copy_from_slice(text)),
        }
    }
}

/// The replies of fixed bytes, and their length.
#[inline]
pub(super) fn constant(bytes: &[u8]) -> Option<(Short<'static>, usize)> {
    match *bytes {
        [b':', digit @ b'0'..=b'9', b'\r', b'\n', ..] => {
            Some((Short::Integer(i64::from(digit.wrapping_sub(b'0'))), 4))
        }
        [b'+', b'O', b'K', b'\r', b'\n', ..] => Some((Short::Ok, 5)),
        [b'$', b'-', b'1', b'\r', b'\n', ..] => Some((Short::Null, 5)),
        [b'_', b'\r', b'\n', ..] => Some((Short::Null, 3)),
        [b':', b'-', b'1', b'\r', b'\n', ..] => Some((Short::Integer(-1), 5)),
        _ => None,
    }
}

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
