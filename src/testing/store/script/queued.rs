//! What `turn_ask.lua` and `turn_leave.lua` do, and `hand_on.lua` for scripts that free a lock.

use bytes::Bytes;
use quorlock_resp::Frame;

use super::found::is_own;
use super::run::{Outcome, Run, is_wrong_type};
use super::standing::{STANDING_LINES, reason, standing};

/// How many of a queue are looked at for one that lives.
pub(super) const LOOKS: usize = 128;

/// How long one that waits counts as living, in milliseconds.
pub(super) const BEAT: f64 = 1500.0;

/// How far away a time may be by which one that lives will have asked again.
pub(crate) const LATEST: f64 = 2.0 * BEAT;

/// How many lines `hand_on.lua` has, behind which scripts run that free a lock.
pub(super) const HAND_ON_LINES: u32 = 43;

/// What a lock holds that readers have.
pub(super) const READERS: &[u8] = b"quorlock:readers";

/// What stands under the lock's key.
#[derive(PartialEq)]
pub(super) enum Held {
    Free,
    By(Bytes),
    OtherType,
    /// The script ends with this error.
    Unknown(Frame),
}

impl Held {
    pub(super) fn of(got: Result<Option<Bytes>, Frame>) -> Self {
        match got {
            Ok(None) => Self::Free,
            Ok(Some(value)) => Self::By(value),
            Err(error) if is_wrong_type(&error) => Self::OtherType,
            Err(error) => Self::Unknown(error),
        }
    }

    pub(super) fn is(&self, value: &[u8]) -> bool {
        matches!(self, Self::By(held) if *held == *value)
    }

    /// Whether it is this value, revoked or not.
    pub(super) fn is_own(&self, value: &[u8]) -> bool {
        matches!(self, Self::By(held) if is_own(held, value))
    }

    /// Whose it is, also where it was revoked: `^%x+@(.-)!?$`
    pub(super) fn owner(&self) -> Option<&[u8]> {
        let Self::By(value) = self else { return None };
        owner(value).map(|owner| owner.strip_suffix(b"!").unwrap_or(owner))
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
    let before = if run.arguments.len() > 2 { 2 } else { 0 };
    let lock = run.key(before);
    let [beats, queue] = [1, 2].map(|number| run.key(run.keys.len().saturating_sub(number)));
    let reads = run.keys.len().saturating_sub(before) > 3;
    let (value, ttl) = (run.argument(0), run.argument(1));
    let own = if reads { reader(value) } else { value.to_vec() };
    let held = Held::of(run.get(lines + 24, lock));
    let time = run.call(lines + 24, &[b"TIME"])?;
    let held = match held {
        Held::Unknown(error) => return Ok(error),
        held => held,
    };
    let now = millis(&time).unwrap_or_default();
    let (first, dead) = first_before(run, lines, (queue, beats), (&own, reads, &held), now)?;
    let last = run.call(lines + 51, &[b"ZRANGE", queue, b"-1", b"-1", b"WITHSCORES"])?;
    let until_last = run.call(lines + 52, &[b"ZRANGE", beats, b"-1", b"-1", b"WITHSCORES"])?;
    let (is_read, is_next) = (held.is(READERS), first.as_deref() == Some(&own));
    if is_next && reads && (held == Held::Free || is_read) {
        return Ok(reason(1, Some(0.0)));
    }
    if held.is(&own) || is_next && held == Held::Free {
        run.call(lines + 58, &[b"SET", lock, &own, b"PX", ttl])?;
        drop(run.call(lines + 59, &[b"ZREM", queue, &own])); // `pcall`, and so below
        drop(run.call(lines + 60, &[b"ZREM", beats, &own]));
        let left = run.call(lines + 61, &[b"ZRANGE", queue, b"0", b"0"])?;
        let left = u8::from(word(&left, 0).is_some());
        return Ok(reason(1, Some(left.into())));
    }
    let next_beat = now + BEAT;
    let score = |last: &Frame| word(last, 1).and_then(|score| number(&score)).unwrap_or_default();
    let ends = text(next_beat.max(score(&until_last).min(now + LATEST)));
    run.call(lines + 66, &[b"PEXPIREAT", beats, &ends])?;
    if !dead.is_empty() {
        for (line, key) in [(68, queue), (69, beats)] {
            let dead = dead.iter().map(|dead| &dead[..]);
            let words: Vec<&[u8]> = [&b"ZREM"[..], key].into_iter().chain(dead).collect();
            run.call(lines + line, &words)?;
        }
    }
    run.call(lines + 71, &[b"ZADD", beats, &text(next_beat), &own])?;
    run.call(lines + 72, &[b"PEXPIREAT", beats, &ends])?;
    run.call(lines + 73, &[b"ZADD", queue, b"NX", &text(score(&last) + 1.0), &own])?;
    run.call(lines + 74, &[b"PEXPIREAT", queue, &ends])?;
    if !is_next {
        let is_told_no_more = first.is_some() || dead.is_empty();
        return Ok(reason(-1, Some(if is_told_no_more { -1.0 } else { 0.0 })));
    }
    let is_heard = held
        .owner()
        .is_some_and(|owner| publish(run, lines + 80, owner, &[b"wanted ", lock].concat()) > 0);
    let left = run.pttl(lines + 82, lock).unwrap_or(-1);
    let code = if is_heard { -1 } else { -2 };
    Ok(reason(if is_read { -3 } else { code }, Some(left as f64)))
}

/// Who is waited for in `turn_ask.lua`, and who is dead: up to the first that lives, or itself.
fn first_before(
    run: &mut Run<'_, '_>,
    lines: u32,
    (queue, beats): (&[u8], &[u8]),
    (own, reads, held): (&[u8], bool, &Held),
    now: f64,
) -> Outcome<(Option<Bytes>, Vec<Bytes>)> {
    let mut dead = Vec::new();
    let all = match reads {
        true => Some(run.call(lines + 33, &[b"ZRANGE", queue, b"0", b"127"])?),
        false => None,
    };
    for at in 0..LOOKS {
        let found = match all.as_ref().and_then(|all| word(all, at)) {
            Some(found) => Some(found),
            None => {
                let at = at.to_string();
                let at = at.as_bytes();
                word(&run.call(lines + 35, &[b"ZRANGE", queue, at, at])?, 0)
            }
        };
        let Some(found) = found.filter(|found| *found != *own) else {
            return Ok((Some(Bytes::copy_from_slice(own)), dead));
        };
        let waits = !(reads && is_reader(&found));
        if !waits && at >= 8 {
            continue;
        }
        let ends = run.call(lines + 42, &[b"ZSCORE", beats, &found])?;
        if !number_of(&ends).is_some_and(|ends| lives(ends, now)) {
            dead.push(found);
        } else if waits && !held.is(&found) {
            return Ok((Some(found), dead));
        }
    }
    Ok((None, dead))
}

/// `hand_on.lua` and `turn_leave.lua`
pub(super) fn leave(run: &mut Run<'_, '_>) -> Outcome<Frame> {
    let [lock, queue, beats] = [0, 1, 2].map(|number| run.key(number));
    let (value, lines) = (run.argument(0), HAND_ON_LINES);
    let held = Held::of(run.get(lines + 13, lock));
    let time = run.call(lines + 13, &[b"TIME"]).ok();
    if let Held::Unknown(error) = held {
        return Ok(error);
    }
    let (is_ours, is_read) = (held.is_own(value), held.is(READERS));
    let now = time.as_ref().and_then(millis);
    let now = now.filter(|_| is_ours || is_read || held == Held::Free);
    let found = now.map(|now| next_in(run, (queue, beats), value, now)).unwrap_or_default();
    let writer = found.first().filter(|found| !is_reader(found));
    let hands_over =
        |writer: &Bytes| run.call(lines + 24, &[b"SET", lock, writer, b"PX", b"1000"]).is_ok();
    if is_ours && !writer.is_some_and(hands_over) {
        run.call(lines + 25, &[b"DEL", lock])?;
    }
    drop(run.call(lines + 28, &[b"ZREM", queue, value])); // `pcall`, and so below
    drop(run.call(lines + 29, &[b"ZREM", beats, value]));
    let is_first = is_read && writer.is_some();
    tell(run, &found, if is_first { b"first " } else { b"yours " });
    Ok(Frame::Integer(match held {
        _ if is_ours => 1,
        Held::Free => 0,
        _ => -1,
    }))
}

/// Who comes next in the queue, but for the one that leaves it.
pub(super) fn next_in(
    run: &mut Run<'_, '_>,
    (queue, beats): (&[u8], &[u8]),
    leaving: &[u8],
    now: f64,
) -> Vec<Bytes> {
    let mut found = Vec::new();
    for at in 0..LOOKS {
        let at = at.to_string();
        let one = run.call(11, &[b"ZRANGE", queue, at.as_bytes(), at.as_bytes()]).ok();
        let Some(one) = one.and_then(|one| word(&one, 0)) else { break };
        let ends = run.call(15, &[b"ZSCORE", beats, &one]).ok();
        let ends = ends.as_ref().and_then(number_of).filter(|_| *one != *leaving);
        if !ends.is_some_and(|ends| lives(ends, now)) {
            continue;
        }
        let reads = is_reader(&one);
        if reads || found.is_empty() {
            found.push(one);
        }
        if !reads {
            break;
        }
    }
    found
}

/// Tells those who come next that it is their turn, or that they are the first.
pub(super) fn tell(run: &mut Run<'_, '_>, found: &[Bytes], what: &[u8]) {
    for one in found {
        publish_to_owner(run, 33, one.strip_prefix(b"r").unwrap_or(one), what);
    }
}

/// Tells a writer that it is the first now, where one before it has left the queue.
pub(super) fn tell_first(run: &mut Run<'_, '_>, (queue, beats): (&[u8], &[u8]), now: f64) {
    let head = run.call(39, &[b"ZRANGE", queue, b"0", b"0"]).ok().and_then(|head| word(&head, 0));
    if head.is_some_and(|head| !is_reader(&head)) {
        let found = next_in(run, (queue, beats), b"", now);
        tell(run, &found, b"first ");
    }
}

/// Tells the one whose value this is what it is, with the first digits of the value.
pub(super) fn publish_to_owner(run: &mut Run<'_, '_>, line: u32, value: &[u8], what: &[u8]) {
    if let Some(owner) = owner(value) {
        let nonce = &value[..value.len() - owner.len() - 1];
        let told = [what, nonce.get(..8).unwrap_or(nonce)].concat();
        publish(run, line, owner, &told);
    }
}

/// How a reader of this value stands in a queue.
pub(super) fn reader(value: &[u8]) -> Vec<u8> {
    [b"r", value].concat()
}

pub(super) fn is_reader(one: &[u8]) -> bool {
    one.starts_with(b"r")
}

/// `string.format('%.0f', …)`
pub(super) fn text(number: f64) -> Vec<u8> {
    format!("{number:.0}").into_bytes()
}

/// Whether one lives that will have asked again by then.
pub(super) fn lives(ends: f64, now: f64) -> bool {
    (now..=now + LATEST).contains(&ends)
}

/// `redis.pcall('PUBLISH', …)`: how many have heard it; none where that may not be said.
pub(super) fn publish(run: &mut Run<'_, '_>, line: u32, owner: &[u8], said: &[u8]) -> i64 {
    let channel = [b"quorlock:wake:", owner].concat();
    let heard = run.call(line, &[b"PUBLISH", &channel, said]).ok();
    heard.and_then(|heard| heard.as_integer().ok()).unwrap_or_default()
}

/// `^%x+@(.*)$`
fn owner(value: &[u8]) -> Option<&[u8]> {
    let at = value.iter().position(|byte| !byte.is_ascii_hexdigit()).filter(|at| *at > 0)?;
    value[at..].strip_prefix(b"@")
}

pub(super) fn word(reply: &Frame, at: usize) -> Option<Bytes> {
    reply.as_items().ok()?.get(at)?.clone().into_bytes().ok()
}

pub(super) fn number_of(reply: &Frame) -> Option<f64> {
    number(reply.as_bytes().ok()?)
}

fn number(text: &[u8]) -> Option<f64> {
    super::standing::number(text)
}

/// What `TIME` tells, in milliseconds.
pub(super) fn millis(time: &Frame) -> Option<f64> {
    let seconds = number(&word(time, 0)?)?;
    Some(seconds * 1000.0 + (number(&word(time, 1)?)? / 1000.0).floor())
}
