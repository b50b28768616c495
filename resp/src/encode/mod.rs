//! Encoding: commands, frames, and [`Template`]s of commands whose arguments change.
//!
//! Every function here knows the exact length of what it writes before it writes, reserves that
//! once, and then copies. A *hole* is an argument of a template that each use fills.

mod frame;
mod number;
mod output;
mod template;

pub use self::frame::{frame, frame_len};
pub use self::output::Output;
pub use self::template::{Argument, HoleCount, Template};

use self::number::{Decimal, decimal_len};

/// Writes one command: an array of bulk strings, which is all that servers accept.
///
/// ```
/// let mut out = Vec::new();
/// quorlock_resp::encode::command(&mut out, &[b"GET", b"key"]);
/// assert_eq!(out, b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n");
/// ```
pub fn command<O: Output + ?Sized>(out: &mut O, args: &[&[u8]]) {
    out.reserve(command_len(args));
    array_header(out, args.len());
    for arg in args {
        bulk(out, arg);
    }
}

/// The length of what [`command`] writes.
#[must_use]
pub fn command_len(args: &[&[u8]]) -> usize {
    args.iter().fold(header_len(args.len()), |len, arg| len.saturating_add(bulk_len(arg.len())))
}

/// Writes the header of an array of `len` elements, which must follow.
#[inline]
pub fn array_header<O: Output + ?Sized>(out: &mut O, len: usize) {
    header(out, b'*', len);
}

/// Writes one bulk string.
#[inline]
pub fn bulk<O: Output + ?Sized>(out: &mut O, bytes: &[u8]) {
    header(out, b'$', bytes.len());
    out.put(bytes);
    out.put(b"\r\n");
}

/// The length of what [`bulk`] writes for so many bytes.
#[inline]
#[must_use]
pub fn bulk_len(bytes: usize) -> usize {
    header_len(bytes).saturating_add(bytes).saturating_add(2)
}

/// Writes a type byte, a count and CR LF.
#[inline]
fn header<O: Output + ?Sized>(out: &mut O, kind: u8, count: usize) {
    // Nearly every argument is shorter than a hundred bytes, and a copy of a size known here is
    // two stores where any other is a call.
    match u8::try_from(count) {
        Ok(ones @ 0..=9) => out.put(&[kind, ones | b'0', b'\r', b'\n']),
        Ok(count @ 10..=99) => {
            let (tens, ones) = (count.wrapping_div(10), count.wrapping_rem(10));
            out.put(&[kind, tens | b'0', ones | b'0', b'\r', b'\n']);
        }
        _ => out.put(Decimal::header(kind, count).as_bytes()),
    }
}

/// The length of what [`header`] writes.
#[inline]
fn header_len(count: usize) -> usize {
    decimal_len(count).saturating_add(3)
}
