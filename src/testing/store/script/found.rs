//! What a script finds under a lock's key: the caller's value, that value revoked, or another.

use bytes::Bytes;
use quorlock_resp::Frame;

use super::run::is_wrong_type;

/// A value that its holder was asked to let go of.
pub(super) fn revoked(value: &[u8]) -> Vec<u8> {
    [value, b"!"].concat()
}

/// What was found under the lock's key, if that is not the caller's value: 0 for nothing, an error
/// for an error, −1 for all else.
pub(super) fn not_ours(held: Result<Option<Bytes>, Frame>) -> Frame {
    match held {
        Ok(None) => Frame::Integer(0),
        Err(error) if !is_wrong_type(&error) => error,
        _ => Frame::Integer(-1),
    }
}

/// As [`not_ours`], where −2 says that it is the caller's value, revoked.
pub(super) fn not_extended(held: Result<Option<Bytes>, Frame>, value: &[u8]) -> Frame {
    if is_revoked(&held, value) { Frame::Integer(-2) } else { not_ours(held) }
}

/// Whether just this value was found.
pub(super) fn is_value(held: &Result<Option<Bytes>, Frame>, value: &[u8]) -> bool {
    held.as_ref().is_ok_and(|held| held.as_deref() == Some(value))
}

/// Whether this value was found, revoked.
pub(super) fn is_revoked(held: &Result<Option<Bytes>, Frame>, value: &[u8]) -> bool {
    is_value(held, &revoked(value))
}

/// Whether what was found is this value, revoked or not.
pub(super) fn is_own(held: &[u8], value: &[u8]) -> bool {
    *held == *value || *held == revoked(value)
}
