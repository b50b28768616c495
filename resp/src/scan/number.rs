//! Numbers that frame the stream: integers and lengths, read digit by digit up to their CR LF.
//!
//! They are read again from their start when a chunk ends inside one. That is at most 20 bytes,
//! because a leading zero and a 65th bit are errors as soon as they are seen.

use super::Stop;
use crate::error::ErrorKind;

/// A number and the position behind its line.
type Read<T> = Result<(T, usize), Stop>;

/// `[+-]? (0 | [1-9][0-9]*) CR LF`, from position `from` of `bytes`.
#[inline]
pub(super) fn integer(bytes: &[u8], from: usize) -> Read<i64> {
    let overflow = || Stop::fault(ErrorKind::Overflow, from);
    match bytes.get(from) {
        Some(b'-') => {
            let (magnitude, end) = digits(bytes, from, from.saturating_add(1))?;
            Ok((0_i64.checked_sub_unsigned(magnitude).ok_or_else(overflow)?, end))
        }
        Some(b'+') => {
            let (magnitude, end) = digits(bytes, from, from.saturating_add(1))?;
            Ok((i64::try_from(magnitude).map_err(|_| overflow())?, end))
        }
        _ => {
            let (magnitude, end) = digits(bytes, from, from)?;
            Ok((i64::try_from(magnitude).map_err(|_| overflow())?, end))
        }
    }
}

/// `0 | [1-9][0-9]*` and CR LF: a length, which has no sign.
#[inline]
pub(super) fn length(bytes: &[u8], from: usize) -> Read<u64> {
    digits(bytes, from, from)
}

/// As [`length`], or `-1`, which gives `None`.
#[inline]
pub(super) fn length_or_null(bytes: &[u8], from: usize) -> Read<Option<u64>> {
    if bytes.get(from) != Some(&b'-') {
        return length(bytes, from).map(|(value, end)| (Some(value), end));
    }
    let one = from.saturating_add(1);
    match bytes.get(one) {
        None => Err(Stop::more()),
        Some(b'1') => Ok((None, line_end(bytes, one.saturating_add(1), ErrorKind::Number)?)),
        Some(_) => Err(Stop::fault(ErrorKind::Number, one)),
    }
}

/// CR LF at position `at`; gives the position behind it. `kind` is for what stands there instead.
#[inline]
pub(super) fn line_end(bytes: &[u8], at: usize, kind: ErrorKind) -> Result<usize, Stop> {
    match bytes.get(at) {
        None => return Err(Stop::more()),
        Some(b'\r') => {}
        Some(_) => return Err(Stop::fault(kind, at)),
    }
    let feed = at.saturating_add(1);
    match bytes.get(feed) {
        None => Err(Stop::more()),
        Some(b'\n') => Ok(feed.saturating_add(1)),
        Some(_) => Err(Stop::fault(ErrorKind::LineEnd, feed)),
    }
}

/// Digits from position `first` and their line end. `from` is where the number starts, sign and
/// all: the place to blame if it is too large.
#[inline]
fn digits(bytes: &[u8], from: usize, first: usize) -> Read<u64> {
    let mut value: u64 = 0;
    let mut at = first;
    loop {
        let Some(&byte) = bytes.get(at) else { return Err(Stop::more()) };
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        if value == 0 && at != first {
            return Err(Stop::fault(ErrorKind::Number, at));
        }
        value = value
            .checked_mul(10)
            .and_then(|tens| tens.checked_add(u64::from(digit)))
            .ok_or_else(|| Stop::fault(ErrorKind::Overflow, from))?;
        at = at.saturating_add(1);
    }
    if at == first {
        return Err(Stop::fault(ErrorKind::Number, at));
    }
    Ok((value, line_end(bytes, at, ErrorKind::Number)?))
}
