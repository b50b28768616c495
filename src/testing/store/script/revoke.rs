//! What `revoke.lua` does.

use quorlock_resp::Frame;

use super::found::{is_revoked, is_value, not_ours, revoked};
use super::queued::publish_to_owner;
use super::run::{Outcome, Run};
use super::standing::{is_below, number, reason};

/// `revoke.lua`
pub(super) fn revoke(run: &mut Run<'_, '_>) -> Outcome<Frame> {
    let (key, value, least) = (run.key(0), run.argument(0), run.argument(1));
    let held = run.get(12, key);
    let left = run.call(12, &[b"PTTL", key])?.as_integer().unwrap_or(-1);
    let was_revoked = is_revoked(&held, value);
    if !was_revoked && !is_value(&held, value) {
        return Ok(not_ours(held));
    }
    if left == -1 {
        return Ok(Frame::Integer(-1));
    }
    let mut life = left as f64;
    if is_below(run, Some(left), least, 22)? {
        run.call(23, &[b"SET", key, &revoked(value), b"XX", b"PX", least])?;
        life = number(least).unwrap_or_default();
    } else if !was_revoked {
        run.call(26, &[b"SET", key, &revoked(value), b"XX", b"KEEPTTL"])?;
    }
    publish_to_owner(run, 30, value, b"revoked ");
    Ok(reason(1, Some(life)))
}
