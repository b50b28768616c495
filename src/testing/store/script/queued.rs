//! What `turn_ask.lua` and `turn_leave.lua` do.

use bytes::Bytes;
use quorlock_resp::Frame;

use super::run::{Outcome, Run, is_wrong_type};
use super::standing::{STANDING_LINES, reason, standing};

/// How many of a queue are looked at for one that lives.
const LOOKS: usize = 128;

/// How long one that waits counts as living, in milliseconds.
const BEAT: f64 = 1500.0;

/// How far away a time may be by which one that lives will have asked again.
const LATEST: f64 = 2.0 * BEAT;

/// What stands under the lock's key.
#[derive(PartialEq)]
enum Held {
    Free,
    By(Bytes),
    OtherType,
    /// The script ends with this error.
    Unknown(Frame),
}

impl Held {
    fn of(got: Result<Option<Bytes>, Frame>) -> Self {
        match got {
            Ok(None) => Self::Free,
            Ok(Some(value)) => Self::By(value),
            Err(error) if is_wrong_type(&error) => Self::OtherType,
            Err(error) => Self::Unknown(error),
        }
    }

    fn is(&self, value: &[u8]) -> bool {
        matches!(self, Self::By(held) if *held == *value)
    }

    fn owner(&self) -> Option<&[u8]> {
        if let Self::By(value) = self { owner(value) } else { None }
    }
}

/// `turn_ask.lua`
pub(super) fn ask(run: &mut Run<'_, '_>) -> Outcome<Frame> {
    ask_behind(run, 0)
}

/// `standing.lua` and `turn_ask.lua`
pub(super) fn ask_where_it_votes(run: &mut Run<'_, '_>) -> Outcome<Frame> {
    match standing(run)? {
        Some(reason) => Ok(reason),
        None => ask_behind(run, STANDING_LINES),
    }
}

/// `turn_ask.lua`, behind so many lines.
fn ask_behind(run: &mut Run<'_, '_>, lines: u32) -> Outcome<Frame> {
    let own_keys = run.keys.len().saturating_sub(3);
    let [lock, queue, beats] = [0, 1, 2].map(|number| run.key(own_keys + number));
    let (value, ttl) = (run.argument(0), run.argument(1));
    let held = Held::of(run.get(lines + 15, lock));
    let time = run.call(lines + 15, &[b"TIME"])?;
    let held = match held {
        Held::Unknown(error) => return Ok(error),
        held => held,
    };
    let now = millis(&time).unwrap_or_default();
    let (mut first, mut dead) = (None, Vec::new());
    for at in 0..LOOKS {
        let at = at.to_string();
        let found = run.call(lines + 23, &[b"ZRANGE", queue, at.as_bytes(), at.as_bytes()])?;
        let Some(found) = word(&found, 0) else { break };
        let ends = run.call(lines + 27, &[b"ZSCORE", beats, &found])?;
        if *found == *value || number_of(&ends).is_some_and(|ends| lives(ends, now)) {
            first = Some(found);
            break;
        }
        dead.push(found);
    }
    let last = run.call(lines + 34, &[b"ZRANGE", queue, b"-1", b"-1", b"WITHSCORES"])?;
    let until_last = run.call(lines + 35, &[b"ZRANGE", beats, b"-1", b"-1", b"WITHSCORES"])?;
    let is_turn = dead.len() < LOOKS && first.as_deref().is_none_or(|first| *first == *value);
    if held.is(value) || held == Held::Free && is_turn {
        run.call(lines + 38, &[b"SET", lock, value, b"PX", ttl])?;
        drop(run.call(lines + 39, &[b"ZREM", queue, value])); // `pcall`, and so below
        drop(run.call(lines + 40, &[b"ZREM", beats, value]));
        let left = run.call(lines + 41, &[b"ZRANGE", queue, b"0", b"0"])?;
        let left = u8::from(word(&left, 0).is_some());
        return Ok(reason(1, Some(left.into())));
    }
    let own = now + BEAT;
    let score = |last: &Frame| word(last, 1).and_then(|score| number(&score)).unwrap_or_default();
    let ends = format!("{:.0}", own.max(score(&until_last).min(now + LATEST)));
    run.call(lines + 46, &[b"PEXPIREAT", beats, ends.as_bytes()])?;
    if !dead.is_empty() {
        for (line, key) in [(48, queue), (49, beats)] {
            let dead = dead.iter().map(|dead| &dead[..]);
            let words: Vec<&[u8]> = [&b"ZREM"[..], key].into_iter().chain(dead).collect();
            run.call(lines + line, &words)?;
        }
    }
    run.call(lines + 51, &[b"ZADD", beats, format!("{own:.0}").as_bytes(), value])?;
    run.call(lines + 52, &[b"PEXPIREAT", beats, ends.as_bytes()])?;
    let place = format!("{:.0}", score(&last) + 1.0);
    run.call(lines + 53, &[b"ZADD", queue, b"NX", place.as_bytes(), value])?;
    run.call(lines + 54, &[b"PEXPIREAT", queue, ends.as_bytes()])?;
    if !is_turn {
        return Ok(reason(-1, Some(if dead.len() < LOOKS { -1.0 } else { 0.0 })));
    }
    let is_heard = held
        .owner()
        .is_some_and(|owner| publish(run, lines + 60, owner, &[b"wanted ", lock].concat()) > 0);
    let left = run.pttl(lines + 62, lock).unwrap_or(-1);
    Ok(reason(if is_heard { -1 } else { -2 }, Some(left as f64)))
}

/// `turn_leave.lua`
pub(super) fn leave(run: &mut Run<'_, '_>) -> Outcome<Frame> {
    let [lock, queue, beats] = [0, 1, 2].map(|number| run.key(number));
    let value = run.argument(0);
    let (held, time) = (Held::of(run.get(13, lock)), run.call(13, &[b"TIME"]).ok());
    if let Held::Unknown(error) = held {
        return Ok(error);
    }
    let is_ours = held.is(value);
    let now = time.as_ref().and_then(millis).filter(|_| is_ours || held == Held::Free);
    let first = now.and_then(|now| first_that_lives(run, (queue, beats), value, now));
    let hands_over = |first: &Bytes| run.call(35, &[b"SET", lock, first, b"PX", b"1000"]).is_ok();
    if is_ours && !first.as_ref().is_some_and(hands_over) {
        run.call(36, &[b"DEL", lock])?;
    }
    drop(run.call(39, &[b"ZREM", queue, value])); // `pcall`, and so below
    drop(run.call(40, &[b"ZREM", beats, value]));
    if let Some((first, owner)) = first.as_deref().and_then(|first| Some((first, owner(first)?))) {
        publish(run, 43, owner, &[b"yours ", first.get(..8).unwrap_or(first)].concat());
    }
    Ok(Frame::Integer(match held {
        _ if is_ours => 1,
        Held::Free => 0,
        _ => -1,
    }))
}

/// The first in the queue that lives, but for this value.
fn first_that_lives(
    run: &mut Run<'_, '_>,
    (queue, beats): (&[u8], &[u8]),
    value: &[u8],
    now: f64,
) -> Option<Bytes> {
    for at in 0..LOOKS {
        let at = at.to_string();
        let found = run.call(22, &[b"ZRANGE", queue, at.as_bytes(), at.as_bytes()]).ok()?;
        let found = word(&found, 0)?;
        let ends = run.call(26, &[b"ZSCORE", beats, &found]).ok();
        let ends = ends.as_ref().and_then(number_of);
        if *found != *value && ends.is_some_and(|ends| lives(ends, now)) {
            return Some(found);
        }
    }
    None
}

/// Whether one lives that will have asked again by then.
fn lives(ends: f64, now: f64) -> bool {
    (now..=now + LATEST).contains(&ends)
}

/// `redis.pcall('PUBLISH', …)`: how many have heard it; none where that may not be said.
fn publish(run: &mut Run<'_, '_>, line: u32, owner: &[u8], said: &[u8]) -> i64 {
    let channel = [b"quorlock:wake:", owner].concat();
    let heard = run.call(line, &[b"PUBLISH", &channel, said]).ok();
    heard.and_then(|heard| heard.as_integer().ok()).unwrap_or_default()
}

/// `^%x+@(.*)$`
fn owner(value: &[u8]) -> Option<&[u8]> {
    let at = value.iter().position(|byte| !byte.is_ascii_hexdigit()).filter(|at| *at > 0)?;
    value[at..].strip_prefix(b"@")
}

fn word(reply: &Frame, at: usize) -> Option<Bytes> {
    reply.as_items().ok()?.get(at)?.clone().into_bytes().ok()
}

fn number_of(reply: &Frame) -> Option<f64> {
    number(reply.as_bytes().ok()?)
}

fn number(text: &[u8]) -> Option<f64> {
    super::standing::number(text)
}

/// What `TIME` tells, in milliseconds.
fn millis(time: &Frame) -> Option<f64> {
    let seconds = number(&word(time, 0)?)?;
    Some(seconds * 1000.0 + (number(&word(time, 1)?)? / 1000.0).floor())
}
