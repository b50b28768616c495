//! What `slot_ask.lua` and `slot_leave.lua` do.

use bytes::Bytes;
use quorlock_resp::Frame;

use super::queued::{
    BEAT, HAND_ON_LINES, Held, LATEST, millis, next_in, number_of, tell, text, word,
};
use super::run::{Outcome, Run};
use super::standing::{STANDING_LINES, number, reason, standing};

/// The slots that one asks for, and its place in their queue.
struct Slots<'a> {
    keys: &'a [&'a [u8]],
    queue: &'a [u8],
    beats: &'a [u8],
    own: &'a [u8],
    weight: usize,
}

/// `hand_on.lua` and `slot_ask.lua`
pub(super) fn ask(run: &mut Run<'_, '_>) -> Outcome<Frame> {
    ask_behind(run, HAND_ON_LINES)
}

/// `standing.lua`, `hand_on.lua` and `slot_ask.lua`
pub(super) fn ask_where_it_votes(run: &mut Run<'_, '_>) -> Outcome<Frame> {
    match standing(run)? {
        Some(reason) => Ok(reason),
        None => ask_behind(run, STANDING_LINES + HAND_ON_LINES),
    }
}

/// `slot_ask.lua`, behind so many lines.
fn ask_behind(run: &mut Run<'_, '_>, lines: u32) -> Outcome<Frame> {
    let before = if run.arguments.len() > 5 { 2 } else { 0 };
    let (keys, queue, beats) = slots_and_queue(run, before);
    let whole = |at: usize| number(run.argument(at)).unwrap_or_default() as i64;
    let (weight, start) = (usize::try_from(whole(2)).unwrap_or_default(), whole(3));
    let slots = Slots { keys, queue, beats, own: run.argument(0), weight };
    let own = slots.own;
    let words: Vec<&[u8]> = [&b"MGET"[..]].into_iter().chain(keys.iter().copied()).collect();
    let held = run.call(lines + 15, &words)?;
    let held: Vec<Option<Bytes>> = (0..keys.len()).map(|at| word(&held, at)).collect();
    let time = run.call(lines + 16, &[b"TIME"])?;
    let (chosen, is_left) = choose(run, lines + 26, &slots, &held, start)?;
    let is_again = held.iter().flatten().any(|held| *held == *own);
    let now = millis(&time).unwrap_or_default();
    let first = next_in(run, (queue, beats), b"", now).into_iter().next();
    let is_next = first.as_deref() == Some(own);
    if chosen.len() >= weight && (is_again || first.is_none() || is_next) {
        for at in &chosen {
            run.call(lines + 38, &[b"SET", keys[*at], own, b"PX", run.argument(4)])?;
        }
        drop(run.call(lines + 40, &[b"ZREM", queue, own])); // `pcall`, and so below
        drop(run.call(lines + 41, &[b"ZREM", beats, own]));
        if is_left && is_next {
            let found = next_in(run, (queue, beats), own, now);
            tell(run, &found, b"yours ");
        }
        let numbers = chosen.iter().map(|at| *at as i64 + 1);
        return Ok(Frame::Array([1].into_iter().chain(numbers).map(Frame::Integer).collect()));
    }
    if run.argument(1) == b"wait" {
        wait(run, lines, &slots, now)?;
    }
    let mut left = -1;
    if first.is_none() || is_next {
        let mut lefts = Vec::new();
        for (key, held) in keys.iter().zip(&held) {
            let lives = run.pttl(lines + 71, key).ok().filter(|lives| *lives >= 0);
            lefts.extend(lives.filter(|_| held.as_deref() != Some(own)));
        }
        lefts.sort_unstable();
        let missing = weight.checked_sub(chosen.len() + 1);
        left = missing.and_then(|missing| lefts.get(missing)).copied().unwrap_or(-2);
    }
    Ok(reason(-1, Some(left as f64)))
}

/// The slots that are its own and those that it takes, from 0; whether free ones are left. Asks in
/// this line whether a key is there.
fn choose(
    run: &mut Run<'_, '_>,
    line: u32,
    slots: &Slots<'_>,
    held: &[Option<Bytes>],
    start: i64,
) -> Outcome<(Vec<usize>, bool)> {
    let count = slots.keys.len();
    let is_own = |at: &usize| held[*at].as_deref() == Some(slots.own);
    let mut chosen: Vec<usize> = (0..count).filter(is_own).collect();
    for step in 0..count as i64 {
        let at = (start + step).rem_euclid(count as i64) as usize;
        if held[at].is_none() && run.call(line, &[b"EXISTS", slots.keys[at]])? == Frame::Integer(0)
        {
            if chosen.len() >= slots.weight {
                return Ok((chosen, true));
            }
            chosen.push(at);
        }
    }
    Ok((chosen, false))
}

/// Puts it into the queue, without those that are long dead.
fn wait(run: &mut Run<'_, '_>, lines: u32, slots: &Slots<'_>, now: f64) -> Outcome<()> {
    let Slots { queue, beats, own, .. } = *slots;
    let score = |last: &Frame| word(last, 1).and_then(|score| number(&score)).unwrap_or_default();
    let last = run.call(lines + 50, &[b"ZRANGE", queue, b"-1", b"-1", b"WITHSCORES"])?;
    let oldest = run.call(lines + 51, &[b"ZRANGE", beats, b"0", b"7", b"WITHSCORES"])?;
    let until_last = run.call(lines + 52, &[b"ZRANGE", beats, b"-1", b"-1", b"WITHSCORES"])?;
    let ends = text((now + BEAT).max(score(&until_last).min(now + LATEST)));
    run.call(lines + 56, &[b"PEXPIREAT", beats, &ends])?;
    for pair in oldest.as_items().unwrap_or_default().chunks_exact(2) {
        let [one, until] = pair else { continue };
        let one = one.as_bytes().unwrap_or_default();
        if number_of(until).is_some_and(|until| until < now) && *one != *own {
            run.call(lines + 59, &[b"ZREM", queue, one])?;
            run.call(lines + 60, &[b"ZREM", beats, one])?;
        }
    }
    run.call(lines + 63, &[b"ZADD", beats, &text(now + BEAT), own])?;
    run.call(lines + 64, &[b"PEXPIREAT", beats, &ends])?;
    run.call(lines + 65, &[b"ZADD", queue, b"NX", &text(score(&last) + 1.0), own])?;
    run.call(lines + 66, &[b"PEXPIREAT", queue, &ends])?;
    Ok(())
}

/// `hand_on.lua` and `slot_leave.lua`
pub(super) fn leave(run: &mut Run<'_, '_>) -> Outcome<Frame> {
    let (keys, queue, beats) = slots_and_queue(run, 0);
    let (value, lines) = (run.argument(0), HAND_ON_LINES);
    let (mut answer, mut words) = (1, vec![&b"DEL"[..]]);
    for key in keys {
        match Held::of(run.get(lines + 12, key)) {
            Held::Unknown(error) => return Ok(error),
            Held::Free => answer = answer.min(0),
            held if held.is_own(value) => words.push(key),
            _ => answer = -1,
        }
    }
    let had_any = words.len() > 1;
    let now = run.call(lines + 23, &[b"TIME"]).ok().as_ref().and_then(millis);
    let mut found = Vec::new();
    if let Some(now) = now {
        let is_first = |run: &mut Run<'_, '_>| {
            next_in(run, (queue, beats), b"", now).first().is_some_and(|first| *first == *value)
        };
        if had_any || is_first(run) {
            found = next_in(run, (queue, beats), value, now);
        }
    }
    if had_any {
        run.call(lines + 31, &words)?;
    }
    drop(run.call(lines + 34, &[b"ZREM", queue, value])); // `pcall`, and so below
    drop(run.call(lines + 35, &[b"ZREM", beats, value]));
    tell(run, &found, b"yours ");
    Ok(Frame::Integer(answer))
}

/// The slots, behind so many other keys; their queue; its beats.
fn slots_and_queue<'c>(run: &Run<'_, 'c>, before: usize) -> (&'c [&'c [u8]], &'c [u8], &'c [u8]) {
    let end = run.keys.len().saturating_sub(2);
    let slots = run.keys.get(before..end).unwrap_or_default();
    (slots, run.key(end), run.key(end + 1))
}
