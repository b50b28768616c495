//! What `standing.lua` does, behind which a script runs where the servers may forget.

use bytes::Bytes;
use quorlock_resp::Frame;

use super::super::call::{Refusal, float};
use super::run::{Outcome, Run, is_wrong_type};

/// How many lines stand before a script that runs behind `standing.lua`.
pub(super) const STANDING_LINES: u32 = 51;

/// `standing.lua`: what it answers, unless the node may vote.
pub(super) fn standing(run: &mut Run<'_, '_>) -> Outcome<Option<Frame>> {
    let (epoch_key, quarantine) = (run.key(0), run.key(1));
    let last = |number: usize| match run.arguments.len().checked_sub(number) {
        Some(index) => run.argument(index),
        None => b"",
    };
    let (ttl, longest, name) = (last(3), last(2), last(1));
    if !is_digits(ttl) || !is_digits(longest) {
        return Ok(Some(Refusal::of("ERR a TTL must be a whole number").into_frame()));
    }
    if number(ttl) > number(longest) {
        return Ok(Some(Refusal::of("ERR no TTL may be above the longest").into_frame()));
    }
    let (epoch, left) = match epoch_and_quarantine(run, 21, epoch_key, quarantine) {
        Ok(found) => found,
        Err(reason) => return Ok(Some(reason)),
    };
    let own = [name, b" ", longest].concat();
    if epoch.as_deref() != Some(&own[..]) {
        if let Some(reason) = other_deployment(epoch.as_deref(), longest) {
            return Ok(Some(reason));
        }
        run.call(45, &[b"SET", quarantine, name, b"PX", longest])?;
        run.call(46, &[b"SET", epoch_key, &own])?;
        return Ok(Some(reason(2, number(longest))));
    }
    Ok((left >= 0).then(|| reason(2, Some(left as f64))))
}

/// The epoch and the quarantine's time left, or what both scripts answer instead.
pub(super) fn epoch_and_quarantine(
    run: &mut Run<'_, '_>,
    line: u32,
    epoch: &[u8],
    quarantine: &[u8],
) -> Result<(Option<Bytes>, i64), Frame> {
    let (epoch, left) = (run.get(line, epoch), run.pttl(line, quarantine));
    let epoch = epoch.map_err(|error| match is_wrong_type(&error) {
        true => reason(4, Some(0.0)),
        false => error,
    })?;
    match left? {
        -1 => Err(reason(4, Some(0.0))),
        left => Ok((epoch, left)),
    }
}

/// What is answered where the epoch is none, or tells another longest TTL.
pub(super) fn other_deployment(epoch: Option<&[u8]>, longest: &[u8]) -> Option<Frame> {
    let epoch = epoch?;
    let space = epoch.iter().position(|byte| *byte == b' ');
    let (name, known) = epoch.split_at(space.unwrap_or(epoch.len()));
    let known = known.strip_prefix(b" ").unwrap_or_default();
    if name.is_empty() || !name.iter().all(u8::is_ascii_alphanumeric) || !is_digits(known) {
        return Some(reason(4, Some(0.0)));
    }
    (known != longest).then(|| reason(3, number(known)))
}

pub(super) fn reason(code: i64, millis: Option<f64>) -> Frame {
    let millis = millis.unwrap_or_default() as i64;
    Frame::Array(vec![Frame::Integer(code), Frame::Integer(millis)].into())
}

/// `^%d+$`
pub(super) fn is_digits(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

/// `tonumber`, which also reads hexadecimal.
pub(super) fn number(text: &[u8]) -> Option<f64> {
    float(std::str::from_utf8(text).ok()?.trim())
}

/// Whether a key has less than the TTL left to live, compared in this line, or it is not known.
pub(super) fn is_below(
    run: &Run<'_, '_>,
    left: Option<i64>,
    ttl: &[u8],
    line: u32,
) -> Result<bool, (u32, Refusal)> {
    let Some(left) = left else { return Ok(true) };
    let what = "attempt to compare number with nil";
    let error = || (line, Refusal::new(run.store.setup.version.lua(line, what)));
    Ok((left as f64) < number(ttl).ok_or_else(error)?)
}
