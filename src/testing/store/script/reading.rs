//! What `read.lua`, `read_extend.lua`, `read_leave.lua` and `downgrade.lua` do.

use quorlock_resp::Frame;

use super::super::call::Refusal;
use super::queued::{
    HAND_ON_LINES, Held, READERS, is_reader, millis, next_in, number_of, reader, tell, tell_first,
    text, word,
};
use super::run::{Outcome, Run};
use super::standing::{STANDING_LINES, is_digits, number, standing};

/// `hand_on.lua` and `read.lua`
pub(super) fn read(run: &mut Run<'_, '_>) -> Outcome<Frame> {
    read_behind(run, HAND_ON_LINES)
}

/// `standing.lua`, `hand_on.lua` and `read.lua`
pub(super) fn read_where_it_votes(run: &mut Run<'_, '_>) -> Outcome<Frame> {
    match standing(run)? {
        Some(reason) => Ok(reason),
        None => read_behind(run, STANDING_LINES + HAND_ON_LINES),
    }
}

/// `read.lua`, behind so many lines.
fn read_behind(run: &mut Run<'_, '_>, lines: u32) -> Outcome<Frame> {
    let at = run.keys.len().saturating_sub(5);
    let [lock, readers, gate, queue, beats] = [0, 1, 2, 3, 4].map(|number| run.key(at + number));
    let (value, turn, ttl) = (run.argument(0), run.argument(1), run.argument(2));
    if !is_digits(ttl) {
        return Ok(no_ttl());
    }
    let (held, time) = (Held::of(run.get(lines + 20, lock)), run.call(lines + 20, &[b"TIME"])?);
    let is_read = match held {
        Held::Unknown(error) => return Ok(error),
        Held::Free => false,
        held if held.is(READERS) => true,
        _ => return Ok(Frame::Integer(-1)),
    };
    let own = number_of(&run.call(lines + 27, &[b"ZSCORE", readers, value])?);
    let shut = left(run, lines + 29, gate)?;
    let is_shut = shut != -2.0 && shut <= 3_000.0;
    if is_shut && !(is_read && own.is_some()) {
        let by = run.call(lines + 31, &[b"GET", gate]); // `pcall`
        let by = by.ok().and_then(|by| by.as_bytes().ok().map(<[u8]>::to_vec)).unwrap_or_default();
        if queue_of(&by) != Some(turn) {
            return Ok(Frame::Integer(-1));
        }
    }
    let now = millis(&time).unwrap_or_default();
    let mut ends = now + number(ttl).unwrap_or_default();
    let mut last = ends;
    if is_read {
        ends = ends.max(own.unwrap_or(ends));
        let latest = run.call(lines + 43, &[b"ZRANGE", readers, b"-1", b"-1", b"WITHSCORES"])?;
        let latest = word(&latest, 1).and_then(|score| number(&score));
        last = latest.unwrap_or(ends).max(ends);
    }
    run.call(lines + 46, &[b"PEXPIREAT", readers, &text(last)])?;
    if is_read {
        let before = [b"(", &*text(now)].concat();
        run.call(lines + 48, &[b"ZREMRANGEBYSCORE", readers, b"-inf", &before])?;
    } else {
        run.call(lines + 50, &[b"DEL", readers])?;
    }
    run.call(lines + 52, &[b"ZADD", readers, &text(ends), value])?;
    run.call(lines + 53, &[b"PEXPIREAT", readers, &text(last)])?;
    if left(run, lines + 55, lock)? < last - now {
        run.call(lines + 56, &[b"SET", lock, READERS, b"PX", &text(last - now)])?;
    }
    // `pcall`, and so below
    let left = run.call(lines + 58, &[b"ZREM", queue, &reader(value)]);
    if matches!(left, Ok(Frame::Integer(1))) {
        tell_first(run, (queue, beats), now);
    }
    drop(run.call(lines + 61, &[b"ZREM", beats, &reader(value)]));
    Ok(Frame::Integer(1))
}

/// `read_extend.lua`
pub(super) fn extend(run: &mut Run<'_, '_>) -> Outcome<Frame> {
    let (lock, readers) = (run.key(0), run.key(1));
    let (value, ttl) = (run.argument(0), run.argument(1));
    if !is_digits(ttl) {
        return Ok(no_ttl());
    }
    let (held, time) = (Held::of(run.get(13, lock)), run.call(13, &[b"TIME"])?);
    match held {
        Held::Free => return Ok(Frame::Integer(0)),
        Held::Unknown(error) => return Ok(error),
        held if held.is(READERS) => {}
        _ => return Ok(Frame::Integer(-1)),
    }
    let now = millis(&time).unwrap_or_default();
    let own = number_of(&run.call(24, &[b"ZSCORE", readers, value])?);
    let Some(own) = own.filter(|own| *own >= now) else { return Ok(Frame::Integer(0)) };
    let is_exact = run.arguments.len() > 2;
    let ends = now + number(ttl).unwrap_or_default();
    let ends = if is_exact { ends } else { ends.max(own) };
    let last = last_of_others(run, 32, readers, value)?.max(ends);
    if is_exact || left(run, 39, lock)? < last - now {
        run.call(40, &[b"PEXPIREAT", lock, &text(last)])?;
    }
    run.call(43, &[b"PEXPIREAT", readers, &text(last)])?;
    run.call(44, &[b"ZADD", readers, b"XX", &text(ends), value])?;
    Ok(Frame::Integer(1))
}

/// `hand_on.lua` and `read_leave.lua`
pub(super) fn leave(run: &mut Run<'_, '_>) -> Outcome<Frame> {
    let [lock, readers, queue, beats] = [0, 1, 3, 4].map(|number| run.key(number));
    let (value, lines) = (run.argument(0), HAND_ON_LINES);
    let (held, time) = (Held::of(run.get(lines + 13, lock)), run.call(lines + 13, &[b"TIME"]));
    if let Held::Unknown(error) = held {
        return Ok(error);
    }
    let is_writer = held.is_own(value);
    let now = match &time {
        Err(_) if is_writer => None,
        Err((_, refused)) => return Ok(refused.clone().into_frame()),
        Ok(time) => millis(time),
    };
    let has_time = now.is_some();
    let now = now.unwrap_or_default();
    let (mut own, mut last) = (None, 0.0);
    if held.is(READERS) {
        own = number_of(&run.call(lines + 25, &[b"ZSCORE", readers, value])?);
        last = last_of_others(run, lines + 26, readers, value)?;
    }
    let score = run.call(lines + 33, &[b"ZSCORE", queue, value]); // `pcall`
    let is_there = score.is_ok_and(|score| score.as_bytes().is_ok());
    let place = if is_there { value.to_vec() } else { reader(value) };
    let is_last = is_writer || own.is_some() && last <= now;
    let is_next = is_last || held == Held::Free;
    let found =
        if is_next && has_time { next_in(run, (queue, beats), &place, now) } else { Vec::new() };
    if is_last {
        let writer = found.first().filter(|found| !is_reader(found));
        let hands_over = |writer: &bytes::Bytes| {
            run.call(lines + 41, &[b"SET", lock, writer, b"PX", b"1000"]).is_ok()
        };
        if !writer.is_some_and(hands_over) {
            run.call(lines + 42, &[b"DEL", lock])?;
        }
        run.call(lines + 44, &[b"DEL", readers])?;
    } else if own.is_some() {
        if left(run, lines + 46, lock)? > last - now {
            run.call(lines + 47, &[b"PEXPIREAT", lock, &text(last)])?;
            run.call(lines + 48, &[b"PEXPIREAT", readers, &text(last)])?;
        }
        run.call(lines + 50, &[b"ZREM", readers, value])?;
    }
    // `pcall`, and so below
    let left = run.call(lines + 53, &[b"ZREM", queue, &place]);
    if matches!(left, Ok(Frame::Integer(1))) && !is_next {
        tell_first(run, (queue, beats), now);
    }
    drop(run.call(lines + 56, &[b"ZREM", beats, &place]));
    tell(run, &found, b"yours ");
    Ok(Frame::Integer(match held {
        _ if is_writer || own.is_some_and(|own| own >= now) => 1,
        held if held == Held::Free || held.is(READERS) => 0,
        _ => -1,
    }))
}

/// `hand_on.lua` and `downgrade.lua`
pub(super) fn downgrade(run: &mut Run<'_, '_>) -> Outcome<Frame> {
    let [lock, readers, queue, beats] = [0, 1, 3, 4].map(|number| run.key(number));
    let (value, ttl, lines) = (run.argument(0), run.argument(1), HAND_ON_LINES);
    if !is_digits(ttl) {
        return Ok(no_ttl());
    }
    let (held, time) = (Held::of(run.get(lines + 15, lock)), run.call(lines + 15, &[b"TIME"])?);
    match held {
        Held::Unknown(error) => return Ok(error),
        Held::Free => return Ok(Frame::Integer(0)),
        held if held.is(value) => {}
        _ => return Ok(Frame::Integer(-1)),
    }
    let now = millis(&time).unwrap_or_default();
    let life = number(ttl).unwrap_or_default().max(left(run, lines + 23, lock)?);
    let ends = text(now + life);
    let found = next_in(run, (queue, beats), value, now);
    run.call(lines + 27, &[b"PEXPIREAT", readers, &ends])?;
    run.call(lines + 28, &[b"DEL", readers])?;
    run.call(lines + 29, &[b"ZADD", readers, &ends, value])?;
    run.call(lines + 30, &[b"PEXPIREAT", readers, &ends])?;
    run.call(lines + 31, &[b"SET", lock, READERS, b"PX", &text(life)])?;
    drop(run.call(lines + 33, &[b"ZREM", queue, value])); // `pcall`
    drop(run.call(lines + 34, &[b"ZREM", beats, value])); // the same
    if found.first().is_some_and(|found| is_reader(found)) {
        tell(run, &found, b"yours ");
    }
    Ok(Frame::Integer(1))
}

/// The queue of the writer by whom a gate is shut: `^(%d+):`
fn queue_of(by: &[u8]) -> Option<&[u8]> {
    let digits = by.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (digits > 0 && by.get(digits) == Some(&b':')).then(|| &by[..digits])
}

fn no_ttl() -> Frame {
    Refusal::of("ERR a TTL must be a whole number").into_frame()
}

/// When the last of the other readers ends; 0 where there is none.
fn last_of_others(run: &mut Run<'_, '_>, line: u32, readers: &[u8], value: &[u8]) -> Outcome<f64> {
    let latest = run.call(line, &[b"ZRANGE", readers, b"-2", b"-1", b"WITHSCORES"])?;
    let end = |at: usize| {
        let other = word(&latest, at).filter(|member| **member != *value)?;
        drop(other);
        word(&latest, at + 1).and_then(|score| number(&score))
    };
    Ok([0, 2].into_iter().filter_map(end).fold(0.0, f64::max))
}

/// `redis.call('PTTL', lock)`
fn left(run: &mut Run<'_, '_>, line: u32, lock: &[u8]) -> Outcome<f64> {
    let left = run.call(line, &[b"PTTL", lock])?;
    Ok(left.as_integer().unwrap_or_default() as f64)
}
