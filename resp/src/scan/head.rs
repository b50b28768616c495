//! Heads: what the line at the start of an element says.

use super::token::{Shape, TextKind};
use super::{Stop, line, number};
use crate::error::ErrorKind;
use crate::limits::Limits;

/// The line an element starts with. For a scalar in one line, that is all of it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Head {
    Null,
    Boolean(bool),
    Integer(i64),
    Double(f64),
    /// The text of the line, all but its type byte.
    Line(TextKind),
    /// So many bytes follow, and CR LF.
    Blob(TextKind, u64),
    /// So many elements, or pairs, follow.
    Open(Shape, u64),
    OpenStream(Shape),
    End,
    TextStream,
    Chunk(u64),
}

/// Reads the head at position `at`, whose type byte is `kind`; gives it and the position behind
/// its line.
///
/// `searched` is what an earlier [`Stop::More`] for the same head said.
#[inline]
pub(super) fn read(
    kind: u8,
    bytes: &[u8],
    at: usize,
    searched: usize,
    limits: &Limits,
) -> Result<(Head, usize), Stop> {
    let next = at.saturating_add(1);
    match kind {
        b'$' => bulk(bytes, next),
        b':' => {
            let (value, end) = number::integer(bytes, next)?;
            Ok((Head::Integer(value), end))
        }
        b'+' => text(bytes, next, searched, limits, TextKind::Simple),
        b'*' => array(bytes, next),
        b'%' => open_or_stream(bytes, next, Shape::Map),
        b'~' => open_or_stream(bytes, next, Shape::Set),
        b'>' => open(bytes, next, Shape::Push),
        b'|' => open(bytes, next, Shape::Attribute),
        b'-' => text(bytes, next, searched, limits, TextKind::Error),
        b'_' => Ok((Head::Null, number::line_end(bytes, next, ErrorKind::LineEnd)?)),
        b'#' => boolean(bytes, next),
        b',' => double(bytes, next, searched, limits),
        b'(' => big_number(bytes, next, searched, limits),
        b'!' => blob(bytes, next, TextKind::BulkError),
        b'=' => verbatim(bytes, next),
        b';' => {
            let (len, end) = number::length(bytes, next)?;
            Ok((Head::Chunk(len), end))
        }
        b'.' => Ok((Head::End, number::line_end(bytes, next, ErrorKind::LineEnd)?)),
        _ => Err(Stop::fault(ErrorKind::Type, at)),
    }
}

type Read = Result<(Head, usize), Stop>;

/// `$5`, `$-1` or `$?`.
fn bulk(bytes: &[u8], next: usize) -> Read {
    if bytes.get(next) == Some(&b'?') {
        return Ok((Head::TextStream, stream_end(bytes, next)?));
    }
    let (len, end) = number::length_or_null(bytes, next)?;
    Ok((len.map_or(Head::Null, |len| Head::Blob(TextKind::Bulk, len)), end))
}

/// `*2`, `*-1` or `*?`.
fn array(bytes: &[u8], next: usize) -> Read {
    if bytes.get(next) == Some(&b'?') {
        return Ok((Head::OpenStream(Shape::Array), stream_end(bytes, next)?));
    }
    let (count, end) = number::length_or_null(bytes, next)?;
    Ok((count.map_or(Head::Null, |count| Head::Open(Shape::Array, count)), end))
}

fn open_or_stream(bytes: &[u8], next: usize, shape: Shape) -> Read {
    if bytes.get(next) == Some(&b'?') {
        return Ok((Head::OpenStream(shape), stream_end(bytes, next)?));
    }
    open(bytes, next, shape)
}

fn open(bytes: &[u8], next: usize, shape: Shape) -> Read {
    let (count, end) = number::length(bytes, next)?;
    Ok((Head::Open(shape, count), end))
}

/// The line end behind the question mark at `mark`.
fn stream_end(bytes: &[u8], mark: usize) -> Result<usize, Stop> {
    number::line_end(bytes, mark.saturating_add(1), ErrorKind::Number)
}

fn blob(bytes: &[u8], next: usize, kind: TextKind) -> Read {
    let (len, end) = number::length(bytes, next)?;
    Ok((Head::Blob(kind, len), end))
}

/// `=15`: three bytes of format and a colon are the least there can be.
fn verbatim(bytes: &[u8], next: usize) -> Read {
    let (len, end) = number::length(bytes, next)?;
    if len < 4 {
        return Err(Stop::fault(ErrorKind::Verbatim, next));
    }
    Ok((Head::Blob(TextKind::Verbatim, len), end))
}

fn boolean(bytes: &[u8], next: usize) -> Read {
    let value = match bytes.get(next) {
        None => return Err(Stop::more()),
        Some(b't') => true,
        Some(b'f') => false,
        Some(_) => return Err(Stop::fault(ErrorKind::Boolean, next)),
    };
    let end = number::line_end(bytes, next.saturating_add(1), ErrorKind::LineEnd)?;
    Ok((Head::Boolean(value), end))
}

fn text(bytes: &[u8], next: usize, searched: usize, limits: &Limits, kind: TextKind) -> Read {
    let end = line::find_end(bytes, next, searched, limits.line_bytes)?;
    Ok((Head::Line(kind), end.saturating_add(2)))
}

fn double(bytes: &[u8], next: usize, searched: usize, limits: &Limits) -> Read {
    let end = line::find_end(bytes, next, searched, limits.line_bytes)?;
    let value = line::double(bytes.get(next..end).unwrap_or_default())
        .map_err(|at| Stop::fault(ErrorKind::Double, next.saturating_add(at)))?;
    Ok((Head::Double(value), end.saturating_add(2)))
}

fn big_number(bytes: &[u8], next: usize, searched: usize, limits: &Limits) -> Read {
    let end = line::find_end(bytes, next, searched, limits.line_bytes)?;
    line::big_number(bytes.get(next..end).unwrap_or_default())
        .map_err(|at| Stop::fault(ErrorKind::BigNumber, next.saturating_add(at)))?;
    Ok((Head::Line(TextKind::BigNumber), end.saturating_add(2)))
}
