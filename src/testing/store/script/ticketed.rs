//! What `ticket_ask.lua` does.

use bytes::Bytes;
use quorlock_resp::Frame;

use super::super::call::Refusal;
use super::queued::{
    BEAT, Held, LATEST, LOOKS, READERS, lives, millis, number_of, publish, publish_to_owner, text,
    word,
};
use super::run::{Outcome, Run};
use super::standing::{STANDING_LINES, is_digits, number, reason, standing};

/// No ticket is above this.
const TICKET_MAX: f64 = 9_007_199_254_740_991.0;

/// Who stands first in a queue of tickets, of those that live and have not got the lock.
struct Found {
    first: Option<(Bytes, f64)>,
    /// All that stand there were looked at, or those before that one.
    is_end: bool,
    dead: Vec<Bytes>,
}

/// `ticket_ask.lua`
pub(super) fn ask(run: &mut Run<'_, '_>) -> Outcome<Frame> {
    ask_behind(run, 0)
}

/// `standing.lua` and `ticket_ask.lua`
pub(super) fn ask_where_it_votes(run: &mut Run<'_, '_>) -> Outcome<Frame> {
    match standing(run)? {
        Some(reason) => Ok(reason),
        None => ask_behind(run, STANDING_LINES),
    }
}

/// `ticket_ask.lua`; `lines`: how many stand before it in the script.
fn ask_behind(run: &mut Run<'_, '_>, lines: u32) -> Outcome<Frame> {
    let before = if run.arguments.len() > 3 { 2 } else { 0 };
    let [lock, queue, beats] = [0, 1, 2].map(|number| run.key(before + number));
    let [own, told, ttl] = [0, 1, 2].map(|number| run.argument(number));
    let ticket = number(told).filter(|ticket| is_digits(told) && *ticket <= TICKET_MAX);
    let Some(ticket) = ticket else {
        let error = Refusal::of("ERR a ticket must be a whole number below 2^53");
        return Ok(error.into_frame());
    };
    let held = Held::of(run.get(lines + 26, lock));
    let time = run.call(lines + 26, &[b"TIME"])?;
    let held = match held {
        Held::Unknown(error) => return Ok(error),
        held => held,
    };
    let now = millis(&time).unwrap_or_default();
    let Found { first, is_end, dead } = find(run, lines, (queue, beats), (own, &held), now)?;
    let is_own = first.as_ref().is_some_and(|(first, _)| *first == *own);
    let is_least = is_own || is_end;
    if ticket == 0.0 {
        if held.is(own) || is_least && held == Held::Free {
            run.call(lines + 53, &[b"SET", lock, own, b"PX", ttl])?;
            return Ok(reason(1, Some(0.0)));
        }
        let last = run.call(lines + 56, &[b"ZRANGE", queue, b"-1", b"-1", b"WITHSCORES"])?;
        return Ok(reason(-1, Some(score(&last).clamp(0.0, TICKET_MAX))));
    }
    let is_before = |(first, at): &(Bytes, f64)| !is_own && (ticket, own) < (*at, &**first);
    let is_least = is_least || first.as_ref().is_some_and(is_before);
    let takes = is_least && (held == Held::Free || held.is(own));
    register(run, lines, (queue, beats), (own, told, ttl), (takes, &dead), now)?;
    if takes {
        run.call(lines + 78, &[b"SET", lock, own, b"PX", ttl])?;
        let other = run.call(lines + 79, &[b"ZRANGE", queue, b"1", b"1"])?;
        return Ok(reason(1, Some(u8::from(word(&other, 0).is_some()).into())));
    }
    if held.is(own) {
        run.call(lines + 82, &[b"DEL", lock])?;
        if let Some((first, _)) = &first {
            let first = first.strip_prefix(b"r").unwrap_or(first);
            publish_to_owner(run, lines + 85, first, b"first ");
        }
    }
    if !is_least {
        return Ok(reason(-1, Some(if first.is_some() { -1.0 } else { 0.0 })));
    }
    let is_heard = held
        .owner()
        .is_some_and(|owner| publish(run, lines + 93, owner, &[b"wanted ", lock].concat()) > 0);
    let left = run.pttl(lines + 95, lock).unwrap_or(-1);
    let code = if is_heard { -1 } else { -2 };
    Ok(reason(if held.is(READERS) { -3 } else { code }, Some(left as f64)))
}

/// Looks at the queue, up to the first that lives and has not got the lock, or to itself.
fn find(
    run: &mut Run<'_, '_>,
    lines: u32,
    (queue, beats): (&[u8], &[u8]),
    (own, held): (&[u8], &Held),
    now: f64,
) -> Outcome<Found> {
    let mut dead = Vec::new();
    for at in 0..LOOKS {
        let at = at.to_string();
        let words: [&[u8]; 5] = [b"ZRANGE", queue, at.as_bytes(), at.as_bytes(), b"WITHSCORES"];
        let one = run.call(lines + 34, &words)?;
        let Some(found) = word(&one, 0) else {
            return Ok(Found { first: None, is_end: true, dead });
        };
        let ends = run.call(lines + 39, &[b"ZSCORE", beats, &found])?;
        let is_own = *found == *own;
        if !is_own && !number_of(&ends).is_some_and(|ends| lives(ends, now)) {
            dead.push(found);
        } else if is_own || !held.is(&found) {
            let first = Some((found, score(&one)));
            return Ok(Found { first, is_end: false, dead });
        }
    }
    Ok(Found { first: None, is_end: false, dead })
}

/// Puts the value into the queue, or says that it lives, and takes the dead ones out.
fn register(
    run: &mut Run<'_, '_>,
    lines: u32,
    (queue, beats): (&[u8], &[u8]),
    (own, ticket, ttl): (&[u8], &[u8], &[u8]),
    (takes, dead): (bool, &[Bytes]),
    now: f64,
) -> Outcome<()> {
    let until_last = run.call(lines + 63, &[b"ZRANGE", beats, b"-1", b"-1", b"WITHSCORES"])?;
    let life = number(ttl).filter(|_| takes).map_or(BEAT, |ttl| ttl.min(BEAT));
    let next_beat = now + life;
    let ends = text(next_beat.max(score(&until_last).min(now + LATEST)));
    run.call(lines + 68, &[b"PEXPIREAT", beats, &ends])?;
    if !dead.is_empty() {
        for (line, key) in [(70, queue), (71, beats)] {
            let dead = dead.iter().map(|dead| &dead[..]);
            let words: Vec<&[u8]> = [&b"ZREM"[..], key].into_iter().chain(dead).collect();
            run.call(lines + line, &words)?;
        }
    }
    run.call(lines + 73, &[b"ZADD", beats, &text(next_beat), own])?;
    run.call(lines + 74, &[b"PEXPIREAT", beats, &ends])?;
    run.call(lines + 75, &[b"ZADD", queue, b"NX", ticket, own])?;
    run.call(lines + 76, &[b"PEXPIREAT", queue, &ends])?;
    Ok(())
}

/// The score beside the first of what a set has told; 0 where that is empty.
fn score(told: &Frame) -> f64 {
    word(told, 1).and_then(|score| number(&score)).unwrap_or_default()
}
