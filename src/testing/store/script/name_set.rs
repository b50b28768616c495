//! What `name_set.lua` does.

use bytes::Bytes;
use quorlock_resp::Frame;

use super::super::call::Refusal;
use super::queued::text;
use super::run::{Outcome, Run};
use super::standing::{STANDING_LINES, is_digits, number, standing};

/// `name_set.lua`
pub(super) fn add_and_read(run: &mut Run<'_, '_>) -> Outcome<Frame> {
    add_and_read_behind(run, 0)
}

/// `standing.lua` and `name_set.lua`
pub(super) fn add_and_read_where_it_votes(run: &mut Run<'_, '_>) -> Outcome<Frame> {
    match standing(run)? {
        Some(reason) => Ok(reason),
        None => add_and_read_behind(run, STANDING_LINES),
    }
}

/// `name_set.lua`, behind so many lines.
fn add_and_read_behind(run: &mut Run<'_, '_>, lines: u32) -> Outcome<Frame> {
    let set = run.keys.last().copied().unwrap_or_default();
    let (added, unless, ttl) = (run.argument(0), run.argument(1), run.argument(2));
    if !is_digits(ttl) {
        return Ok(Refusal::of("ERR a TTL must be a whole number").into_frame());
    }
    let ttl = number(ttl).unwrap_or_default();
    let found = run.call(lines + 13, &[b"ZRANGE", set, b"0", b"-1"]);
    let left = run.call(lines + 13, &[b"PTTL", set])?.as_integer().unwrap_or_default();
    let found = match found {
        Ok(found) => found.into_items().unwrap_or_default().to_vec(),
        Err((_, error)) => return Ok(error.into_frame()),
    };
    if left == -1 {
        return Ok(Refusal::of("WRONGTYPE the key holds a sorted set that never ends").into_frame());
    }
    let (mut stays, mut is_there) = (added, added.is_empty());
    for name in found.iter().filter_map(|name| name.as_bytes().ok()) {
        if let Some(name) = [added, unless].into_iter().find(|one| *one == name) {
            (stays, is_there) = (name, is_there || left as f64 >= ttl);
        }
    }
    let mut answer = vec![Frame::Integer(1)];
    answer.extend(found);
    if !is_there {
        let life = text((left as f64).max(ttl * 1.5));
        run.call(lines + 29, &[b"PEXPIRE", set, &life])?;
        if run.call(lines + 30, &[b"ZADD", set, b"0", stays])? == Frame::Integer(1) {
            answer.push(Frame::Bulk(Bytes::copy_from_slice(stays)));
        }
        run.call(lines + 33, &[b"PEXPIRE", set, &life])?;
    }
    Ok(Frame::Array(answer.into()))
}
