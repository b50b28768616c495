//! What `fence.lua` does.

use bytes::Bytes;
use quorlock_resp::Frame;

use super::super::call::Refusal;
use super::run::{Outcome, Run, is_wrong_type};
use super::standing::{STANDING_LINES, is_digits, number, standing};

/// How long a fence lives behind the server's time, in milliseconds.
const WEEK_MS: f64 = 604_800_000.0;

/// How far above the server's time a missing fence is stored that does not rise to a token.
const MARGIN: f64 = 10_000.0;

const LIMIT: f64 = 9_007_199_254_740_991.0;

/// `fence.lua`
pub(super) fn rise(run: &mut Run<'_, '_>) -> Outcome<Frame> {
    rise_behind(run, 0)
}

/// `standing.lua` and `fence.lua`
pub(super) fn rise_where_it_votes(run: &mut Run<'_, '_>) -> Outcome<Frame> {
    match standing(run)? {
        Some(reason) => Ok(reason),
        None => rise_behind(run, STANDING_LINES),
    }
}

/// `fence.lua`, behind so many lines.
fn rise_behind(run: &mut Run<'_, '_>, lines: u32) -> Outcome<Frame> {
    let own = run.keys.get(if run.arguments.len() > 5 { 2.. } else { 0.. }).unwrap_or_default();
    let (fences, locks) = own.split_at(own.len() / 2);
    let (value, token, ttl) = (run.argument(0), run.argument(1), run.arguments.get(4));
    let numbers = (fence(token), fence(run.argument(2)), fence(run.argument(3)));
    let (Some(set), Some(ahead), Some(step)) = numbers else {
        return Ok(Refusal::of("ERR a fence must be a whole number below 2^53").into_frame());
    };
    for lock in locks.iter().filter(|_| ttl.is_none()) {
        match run.get(lines + 31, lock) {
            Err(error) if !is_wrong_type(&error) => return Ok(error),
            Ok(Some(held)) if *held == *value => {}
            _ => return Ok(Frame::Integer(0)),
        }
    }
    let time = match run.call(lines + 40, &[b"TIME"]) {
        Ok(time) => time,
        Err((_, error)) => return Ok(error.into_frame()),
    };
    let now = micros(&time).unwrap_or_default();
    let (mut highest, mut missing) = (0.0, false);
    for key in fences {
        let found = match run.get(lines + 47, key) {
            Ok(found) => found,
            Err(error) => return Ok(error),
        };
        missing |= found.is_none();
        let Some(found) = found.map_or(Some(now), |found| fence(&found)) else {
            let what = "ERR the fence of this lock is not a whole number below 2^53";
            return Ok(Refusal::of(what).into_frame());
        };
        highest = f64::max(highest, found);
    }
    let rises = set > highest && set <= (now + ahead).max(highest + step);
    if missing {
        highest = highest.max(now + MARGIN.min(ahead));
    }
    let lock = locks.first().copied().unwrap_or_default();
    if let Some(ttl) = ttl {
        match run.call(lines + 63, &[b"SET", lock, value, b"NX", b"PX", ttl]) {
            Ok(acquired) if acquired.is_null() => return Ok(Frame::Integer(0)),
            Ok(_) => {}
            Err((_, error)) => return Ok(error.into_frame()),
        }
    }
    if rises || missing {
        let stands = if rises { set } else { highest };
        let life = ((stands - now) / 1000.0).floor().max(0.0) + WEEK_MS;
        let (stands, life) = (format!("{stands:.0}"), format!("{life:.0}"));
        for key in fences {
            run.call(lines + 75, &[b"SET", key, stands.as_bytes(), b"PX", life.as_bytes()])?;
        }
    }
    Ok(Frame::Integer(if rises { 1 } else { -(highest as i64).max(1) }))
}

/// A whole number below 2⁵³.
fn fence(text: &[u8]) -> Option<f64> {
    let is_short = is_digits(text) && text.len() <= 16;
    number(text).filter(|found| is_short && *found <= LIMIT)
}

/// What `TIME` tells, in microseconds.
fn micros(time: &Frame) -> Option<f64> {
    let word =
        |at: usize| -> Option<Bytes> { time.as_items().ok()?.get(at)?.clone().into_bytes().ok() };
    Some(number(&word(0)?)? * 1_000_000.0 + number(&word(1)?)?)
}
