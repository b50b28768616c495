//! Commands about the ends of keys.

use std::time::Duration;

use quorlock_resp::Frame;

use super::call::{Call, Refusal, Reply, integer, lower};
use super::keyspace::Entry;
use super::state::Store;
use super::version::Since;

/// The end that a number of this unit means: `ex`, `px`, `exat` or `pxat`. `None` where servers
/// have no such time.
pub(super) fn end_of(now: Duration, unit: &str, number: i64) -> Option<Duration> {
    let millis = if unit.starts_with('e') { number.checked_mul(1_000)? } else { number };
    if unit.ends_with("at") {
        return Some(Duration::from_millis(u64::try_from(millis).unwrap_or(0)));
    }
    i64::try_from(now.as_millis()).ok()?.checked_add(millis)?;
    let more = Duration::from_millis(millis.unsigned_abs());
    if millis < 0 { Some(now.saturating_sub(more)) } else { now.checked_add(more) }
}

pub(super) fn pexpire(store: &mut Store, call: &Call<'_>) -> Reply {
    set_end(store, call, "px")
}

pub(super) fn expire(store: &mut Store, call: &Call<'_>) -> Reply {
    set_end(store, call, "ex")
}

pub(super) fn pexpireat(store: &mut Store, call: &Call<'_>) -> Reply {
    set_end(store, call, "pxat")
}

/// `NX`, `XX`, `GT` and `LT`.
const CONDITIONS: Since = Since::redis([7, 0]);

fn set_end(store: &mut Store, call: &Call<'_>, unit: &str) -> Reply {
    if call.words.len() > 3 && !store.setup.version.knows(CONDITIONS) {
        return Err(Refusal::arity(&call.name()));
    }
    let number = integer(call.argument(1))?;
    let Some(end) = end_of(call.now, unit, number) else {
        return Err(store.setup.version.wrong_expiry(&call.name()));
    };
    let condition = call.arguments().get(2).map(|word| (lower(word), word));
    let place = store.place(call, call.argument(0));
    let Some(entry) = store.keys.get(&place).cloned() else { return Ok(Frame::Integer(0)) };
    // Without an end it lasts longer than with any.
    let may = match condition.as_ref().map(|(condition, said)| (condition.as_str(), said)) {
        None => true,
        Some(("nx", _)) => entry.end.is_none(),
        Some(("xx", _)) => entry.end.is_some(),
        Some(("gt", _)) => entry.end.is_some_and(|former| end > former),
        Some(("lt", _)) => entry.end.is_none_or(|former| end < former),
        Some((_, said)) => {
            let said = String::from_utf8_lossy(said);
            return Err(Refusal::new(format!("ERR Unsupported option {said}")));
        }
    };
    if may {
        store.write(call, place, Entry { end: Some(end), ..entry });
    }
    Ok(Frame::Integer(may.into()))
}

pub(super) fn persist(store: &mut Store, call: &Call<'_>) -> Reply {
    let place = store.place(call, call.argument(0));
    let entry = store.keys.get(&place).cloned().filter(|entry| entry.end.is_some());
    let changed = entry.is_some();
    if let Some(entry) = entry {
        store.write(call, place, Entry { end: None, ..entry });
    }
    Ok(Frame::Integer(changed.into()))
}

pub(super) fn pttl(store: &mut Store, call: &Call<'_>) -> Reply {
    tell_end(store, call, |end, now| end.saturating_sub(now).as_millis())
}

pub(super) fn ttl(store: &mut Store, call: &Call<'_>) -> Reply {
    // Servers round to the nearest second.
    tell_end(store, call, |end, now| (end.saturating_sub(now).as_millis() + 500) / 1_000)
}

pub(super) fn pexpiretime(store: &mut Store, call: &Call<'_>) -> Reply {
    tell_end(store, call, |end, _| end.as_millis())
}

pub(super) fn expiretime(store: &mut Store, call: &Call<'_>) -> Reply {
    tell_end(store, call, |end, _| (end.as_millis() + 500) / 1_000)
}

fn tell_end(store: &Store, call: &Call<'_>, tell: fn(Duration, Duration) -> u128) -> Reply {
    let entry = store.keys.get(&store.place(call, call.argument(0)));
    Ok(Frame::Integer(match entry.map(|entry| entry.end) {
        None => -2,
        Some(None) => -1,
        Some(Some(end)) => i64::try_from(tell(end, call.now)).unwrap_or(i64::MAX),
    }))
}
