//! Lines of text: where they end, and whether the text of a double or big number is one.

use core::str;

use super::Stop;
use crate::error::ErrorKind;

/// Finds the end of the line whose text starts at position `start`: the position of its CR, with
/// its LF there as well. `searched` says where to go on, so that no byte is searched twice.
pub(super) fn find_end(
    bytes: &[u8],
    start: usize,
    searched: usize,
    limit: usize,
) -> Result<usize, Stop> {
    let from = searched.max(start);
    let rest = bytes.get(from..).unwrap_or_default();
    let found = rest.iter().position(|&byte| byte == b'\r' || byte == b'\n');
    let end = found.map_or(bytes.len(), |distance| from.saturating_add(distance));
    // Asked before anything else, so that the verdict does not depend on how much came at once.
    if end.saturating_sub(start) > limit {
        return Err(Stop::fault(ErrorKind::LineBytes, start.saturating_add(limit)));
    }
    match bytes.get(end) {
        None => return Err(Stop::More { need: 0, searched: end }),
        Some(b'\r') => {}
        Some(_) => return Err(Stop::fault(ErrorKind::LineEnd, end)),
    }
    let feed = end.saturating_add(1);
    match bytes.get(feed) {
        None => Err(Stop::More { need: 0, searched: end }),
        Some(b'\n') => Ok(end),
        Some(_) => Err(Stop::fault(ErrorKind::LineEnd, feed)),
    }
}

/// Reads a double from the line text `text`. The error is the position in `text` of the first
/// byte that can not be right, which is its end if there is too little.
pub(super) fn double(text: &[u8]) -> Result<f64, usize> {
    match text {
        b"inf" => return Ok(f64::INFINITY),
        b"-inf" => return Ok(f64::NEG_INFINITY),
        b"nan" | b"-nan" => return Ok(f64::NAN),
        _ => {}
    }
    let mut at = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    at = some_digits(text, at)?;
    if text.get(at) == Some(&b'.') {
        at = some_digits(text, at.saturating_add(1))?;
    }
    if let Some(b'e' | b'E') = text.get(at) {
        at = at.saturating_add(1);
        at = at.saturating_add(usize::from(matches!(text.get(at), Some(b'+' | b'-'))));
        at = some_digits(text, at)?;
    }
    if at != text.len() {
        return Err(at);
    }
    // What passed the checks above is within what the standard library reads.
    str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or(0)
}

/// Checks that `text` is a sign, or none, and digits. The error is as for [`double`].
pub(super) fn big_number(text: &[u8]) -> Result<(), usize> {
    let sign = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let end = some_digits(text, sign)?;
    if end == text.len() { Ok(()) } else { Err(end) }
}

/// The position behind the digits at `from`, of which there must be one.
fn some_digits(text: &[u8], from: usize) -> Result<usize, usize> {
    let rest = text.get(from..).unwrap_or_default();
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if count == 0 { Err(from) } else { Ok(from.saturating_add(count)) }
}
