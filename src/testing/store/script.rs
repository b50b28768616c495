//! The locks' own scripts: known by their digests, each a function that does what its Lua does.
//!
//! Whatever a script says to the node goes through the same door as a command, so that a missing
//! right, a full memory or a value of another type is met where the Lua would meet it. `call` ends
//! the script with its error, `pcall` hands the error over; either in a line of the Lua, which some
//! servers tell. There is no Lua here: any other script can be loaded, and is refused when it is to
//! run. Our own tests have the Lua too, beside it (`lua`), and compare the two.

mod fence;
mod found;
mod name_set;
mod queued;
mod reading;
mod revoke;
mod run;
mod slotted;
mod standing;
mod ticketed;

use std::sync::OnceLock;

use bytes::Bytes;
use quorlock_resp::Frame;

use super::call::{Call, Refusal, Reply, bulk, integer, lower, ok};
use super::sha1::digest;
use super::state::Store;
use found::{is_own, is_revoked, is_value, not_extended, not_ours, revoked};
#[cfg(test)]
pub(crate) use queued::LATEST;
use run::{Outcome, Run, is_wrong_type};
use standing::{
    STANDING_LINES, epoch_and_quarantine, is_below, is_digits, number, other_deployment, reason,
    standing,
};

/// What a script does: its reply, or the error that ends it and the line in which that is met.
type Body = fn(&mut Run<'_, '_>) -> Outcome<Frame>;

/// A script behind the one that says whether the node may vote.
macro_rules! behind_standing {
    ($script:literal) => {
        concat!(include_str!("../../lease/script/standing.lua"), include_str!($script))
    };
}

/// A script behind the one that says who comes next.
macro_rules! behind_hand_on {
    ($script:literal) => {
        concat!(include_str!("../../lock/script/hand_on.lua"), include_str!($script))
    };
}

/// A script behind both.
macro_rules! behind_both {
    ($script:literal) => {
        concat!(
            include_str!("../../lease/script/standing.lua"),
            include_str!("../../lock/script/hand_on.lua"),
            include_str!($script)
        )
    };
}

/// The scripts that this node can run, with their names.
static KNOWN: [(&str, &str, Body); 29] = [
    ("release", include_str!("../../lock/script/release.lua"), release),
    ("extend", include_str!("../../lock/script/extend.lua"), extend),
    ("acquire", behind_standing!("../../lock/script/acquire.lua"), acquire),
    ("adopt", include_str!("../../lock/script/adopt.lua"), adopt),
    ("adopt", behind_standing!("../../lock/script/adopt.lua"), adopt_where_it_votes),
    ("initialise", include_str!("../../lease/script/initialise.lua"), initialise),
    ("acquire_all", include_str!("../../lock/script/acquire_all.lua"), acquire_all),
    (
        "acquire_all",
        behind_standing!("../../lock/script/acquire_all.lua"),
        acquire_all_where_it_votes,
    ),
    ("extend_all", include_str!("../../lock/script/extend_all.lua"), extend_all),
    ("release_all", include_str!("../../lock/script/release_all.lua"), release_all),
    ("fence", include_str!("../../lease/script/fence.lua"), fence::rise),
    ("fence", behind_standing!("../../lease/script/fence.lua"), fence::rise_where_it_votes),
    ("turn_ask", include_str!("../../lock/script/turn_ask.lua"), queued::ask),
    ("turn_ask", behind_standing!("../../lock/script/turn_ask.lua"), queued::ask_where_it_votes),
    ("ticket_ask", include_str!("../../lock/script/ticket_ask.lua"), ticketed::ask),
    (
        "ticket_ask",
        behind_standing!("../../lock/script/ticket_ask.lua"),
        ticketed::ask_where_it_votes,
    ),
    ("turn_leave", behind_hand_on!("../../lock/script/turn_leave.lua"), queued::leave),
    ("read", behind_hand_on!("../../lock/script/read.lua"), reading::read),
    ("read", behind_both!("../../lock/script/read.lua"), reading::read_where_it_votes),
    ("read_extend", include_str!("../../lock/script/read_extend.lua"), reading::extend),
    ("read_leave", behind_hand_on!("../../lock/script/read_leave.lua"), reading::leave),
    ("downgrade", behind_hand_on!("../../lock/script/downgrade.lua"), reading::downgrade),
    ("slot_ask", behind_hand_on!("../../lock/script/slot_ask.lua"), slotted::ask),
    ("slot_ask", behind_both!("../../lock/script/slot_ask.lua"), slotted::ask_where_it_votes),
    ("slot_leave", behind_hand_on!("../../lock/script/slot_leave.lua"), slotted::leave),
    ("name_set", include_str!("../../lease/script/name_set.lua"), name_set::add_and_read),
    (
        "name_set",
        behind_standing!("../../lease/script/name_set.lua"),
        name_set::add_and_read_where_it_votes,
    ),
    ("revoke", include_str!("../../lease/script/revoke.lua"), revoke::revoke),
    ("may_delifeq", include_str!("../../link/script/may_delifeq.lua"), may_delifeq),
];

/// How long a script's name is.
const DIGEST_CHARS: usize = 40;

pub(super) fn eval(store: &mut Store, call: &Call<'_>) -> Reply {
    split(call.arguments())?;
    let name = store.load(call.argument(0))?;
    execute(store, call, &name)
}

pub(super) fn evalsha(store: &mut Store, call: &Call<'_>) -> Reply {
    let name = lower(call.argument(0));
    // What cannot be a digest is refused before all else.
    if name.len() == DIGEST_CHARS {
        split(call.arguments())?;
    }
    if !store.scripts.contains_key(&name) {
        return Err(store.setup.version.no_script());
    }
    execute(store, call, &name)
}

pub(super) fn script(store: &mut Store, call: &Call<'_>) -> Reply {
    let words = call.arguments().get(1..).unwrap_or_default();
    match (lower(call.argument(0)).as_str(), words) {
        ("load", [text]) => Ok(bulk(store.load(text)?)),
        ("exists", names) => {
            let known = names.iter().map(|name| store.scripts.contains_key(&lower(name)));
            Ok(Frame::Array(known.map(|known| Frame::Integer(known.into())).collect()))
        }
        ("flush", [mode]) if !matches!(lower(mode).as_str(), "async" | "sync") => {
            Err(Refusal::of("ERR SCRIPT FLUSH only support SYNC|ASYNC option"))
        }
        ("flush", _) => {
            store.scripts.clear();
            Ok(ok())
        }
        _ => Err(Refusal::SYNTAX),
    }
}

/// Some words of a command.
type Words<'a> = &'a [&'a [u8]];

/// The keys and the arguments of `EVAL` and `EVALSHA`, out of the words behind the name.
pub(super) fn split<'a>(words: Words<'a>) -> Result<(Words<'a>, Words<'a>), Refusal> {
    let count = integer(words.get(1).copied().unwrap_or_default())?;
    let count =
        usize::try_from(count).map_err(|_| Refusal::of("ERR Number of keys can't be negative"))?;
    words
        .get(2..)
        .and_then(|rest| rest.split_at_checked(count))
        .ok_or(Refusal::of("ERR Number of keys can't be greater than number of args"))
}

/// The digests of the scripts, in their order.
fn digests() -> &'static [String; KNOWN.len()] {
    static DIGESTS: OnceLock<[String; KNOWN.len()]> = OnceLock::new();
    DIGESTS.get_or_init(|| KNOWN.map(|(_, text, _)| digest(text.as_bytes())))
}

/// The names of the locks' scripts.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|(name, ..)| *name)
}

/// The name of one of the locks' scripts, by its digest or its text.
pub(crate) fn script_name(script: &[u8]) -> Option<&'static str> {
    let mut known = KNOWN.iter().zip(digests());
    let is_it = |text: &str, digest: &str| {
        text.as_bytes() == script || digest.as_bytes().eq_ignore_ascii_case(script)
    };
    known.find(|((_, text, _), digest)| is_it(text, digest)).map(|((name, ..), _)| *name)
}

fn execute(store: &mut Store, call: &Call<'_>, name: &str) -> Reply {
    let (keys, arguments) = split(call.arguments())?;
    let known = KNOWN.iter().zip(digests()).find(|(_, digest)| *digest == name);
    if let Some(((script, ..), _)) = known {
        *store.counts.scripts.entry(script).or_default() += 1;
    }
    store.script_is_starved = store.is_full();
    store.script_keys = keys.iter().map(|key| Bytes::copy_from_slice(key)).collect();
    #[cfg(test)]
    if store.setup.runs_lua {
        let text = store.scripts.get(name).cloned().unwrap_or_default();
        return super::lua::run(store, call, (name, &text), [keys, arguments]);
    }
    let Some(((.., run), _)) = known else {
        return Err(Refusal::of(
            "ERR an in-process node has no Lua: it runs quorlock's own scripts and no other",
        ));
    };
    let version = store.setup.version;
    run(&mut Run { store, call, keys, arguments })
        .map_err(|(line, Refusal(error))| version.raised(name, line, &error))
}

impl Store {
    /// Remembers a script; returns its digest.
    fn load(&mut self, text: &[u8]) -> Result<String, Refusal> {
        let name = digest(text);
        #[cfg(test)]
        if self.setup.runs_lua {
            super::lua::check(&name, text)?;
        }
        self.scripts.insert(name.clone(), Bytes::copy_from_slice(text));
        Ok(name)
    }
}

/// `release.lua`
fn release(run: &mut Run<'_, '_>) -> Outcome<Frame> {
    let key = run.key(0);
    let held = run.get(8, key);
    let is_revoked = is_revoked(&held, run.argument(0));
    if is_revoked || is_value(&held, run.argument(0)) {
        if let Some(former) = run.arguments.get(1) {
            let former = if is_revoked { revoked(former) } else { former.to_vec() };
            run.call(12, &[b"SET", key, &former, b"KEEPTTL"])?;
            return Ok(Frame::Integer(1));
        }
        return run.call(15, &[b"DEL", key]);
    }
    Ok(not_ours(held))
}

/// `extend.lua`
fn extend(run: &mut Run<'_, '_>) -> Outcome<Frame> {
    let key = run.key(0);
    let held = run.get(8, key);
    let is_revoked = is_revoked(&held, run.argument(0));
    if !is_revoked && !is_value(&held, run.argument(0)) {
        return Ok(not_ours(held));
    }
    let (ttl, is_exact) = (run.argument(1), run.arguments.len() > 2);
    let left = run.pttl(11, key).ok();
    let is_short = is_below(run, left, ttl, 12)?;
    if is_revoked && (is_short || !is_exact) {
        return Ok(Frame::Integer(-2));
    }
    if is_exact || is_short {
        run.call(17, &[b"PEXPIRE", key, ttl])?;
    }
    Ok(Frame::Integer(1))
}

/// `acquire.lua`
fn acquire(run: &mut Run<'_, '_>) -> Outcome<Frame> {
    if let Some(reason) = standing(run)? {
        return Ok(reason);
    }
    let (key, value, ttl) = (run.key(2), run.argument(0), run.argument(1));
    let set = run.call(STANDING_LINES + 4, &[b"SET", key, value, b"NX", b"PX", ttl])?;
    Ok(Frame::Integer(if set.is_null() { -1 } else { 1 }))
}

/// `adopt.lua`
fn adopt(run: &mut Run<'_, '_>) -> Outcome<Frame> {
    adopt_behind(run, 0)
}

/// `standing.lua` and `adopt.lua`
fn adopt_where_it_votes(run: &mut Run<'_, '_>) -> Outcome<Frame> {
    match standing(run)? {
        Some(reason) => Ok(reason),
        None => adopt_behind(run, STANDING_LINES),
    }
}

/// `adopt.lua`, behind so many lines.
fn adopt_behind(run: &mut Run<'_, '_>, lines: u32) -> Outcome<Frame> {
    let key = run.keys.last().copied().unwrap_or_default();
    let (value, former, ttl) = (run.argument(0), run.argument(1), run.argument(2));
    if !is_digits(ttl) {
        return Ok(Refusal::of("ERR a TTL must be a whole number").into_frame());
    }
    let (held, left) = (run.get(lines + 12, key), run.pttl(lines + 12, key));
    if !is_value(&held, former) {
        return Ok(not_extended(held, former));
    }
    let left = match left {
        Ok(-1) => return Ok(Frame::Integer(-1)),
        Ok(left) => left,
        Err(error) => return Ok(error),
    };
    let life = (left as f64).max(number(ttl).unwrap_or_default());
    let life = format!("{life:.0}");
    run.call(lines + 29, &[b"SET", key, value, b"PX", life.as_bytes()])?;
    Ok(reason(1, Some(left as f64)))
}

/// `acquire_all.lua`
fn acquire_all(run: &mut Run<'_, '_>) -> Outcome<Frame> {
    acquire_all_behind(run, 0)
}

/// `standing.lua` and `acquire_all.lua`
fn acquire_all_where_it_votes(run: &mut Run<'_, '_>) -> Outcome<Frame> {
    match standing(run)? {
        Some(reason) => Ok(reason),
        None => acquire_all_behind(run, STANDING_LINES),
    }
}

/// `acquire_all.lua`, behind so many lines.
fn acquire_all_behind(run: &mut Run<'_, '_>, lines: u32) -> Outcome<Frame> {
    let (value, ttl) = (run.argument(0), run.argument(1));
    let own = run.keys.get(if run.arguments.len() > 2 { 2.. } else { 0.. }).unwrap_or_default();
    let mut left = Vec::new();
    for (number, key) in (1..).zip(own) {
        left.push(match run.get(lines + 13, key) {
            Ok(None) => None,
            Ok(Some(held)) if *held == *value => run.pttl(lines + 15, key).ok(),
            Err(error) if !is_wrong_type(&error) => return Ok(error),
            _ => return Ok(Frame::Integer(-number)),
        });
    }
    for (key, left) in own.iter().zip(left) {
        if is_below(run, left, ttl, lines + 24)? {
            run.call(lines + 25, &[b"SET", key, value, b"PX", ttl])?;
        }
    }
    Ok(Frame::Integer(1))
}

/// `extend_all.lua`
fn extend_all(run: &mut Run<'_, '_>) -> Outcome<Frame> {
    let (ttl, is_exact) = (run.argument(1), run.arguments.len() > 2);
    for key in run.keys {
        let held = run.get(10, key);
        if is_revoked(&held, run.argument(0)) {
            let left = run.pttl(18, key).ok();
            if !is_exact || is_below(run, left, ttl, 19)? {
                return Ok(Frame::Integer(-2));
            }
        } else if !is_value(&held, run.argument(0)) {
            return Ok(not_ours(held));
        }
    }
    for key in run.keys {
        let left = run.pttl(27, key).ok();
        if is_exact || is_below(run, left, ttl, 28)? {
            run.call(29, &[b"PEXPIRE", key, ttl])?;
        }
    }
    Ok(Frame::Integer(1))
}

/// `release_all.lua`
fn release_all(run: &mut Run<'_, '_>) -> Outcome<Frame> {
    let (mut answer, mut words) = (1, vec![&b"DEL"[..]]);
    for key in run.keys {
        match run.get(7, key) {
            Ok(Some(held)) if is_own(&held, run.argument(0)) => words.push(key),
            Ok(None) => answer = answer.min(0),
            Err(error) if !is_wrong_type(&error) => return Ok(error),
            _ => answer = -1,
        }
    }
    if words.len() > 1 {
        run.call(19, &words)?;
    }
    Ok(Frame::Integer(answer))
}

/// `may_delifeq.lua`
fn may_delifeq(run: &mut Run<'_, '_>) -> Outcome<Frame> {
    let may = run.arguments.first().is_some_and(|key| {
        matches!(run.store.may_say(run.call, &[b"DELIFEQ", key, key]), Some(Ok(true)))
    });
    Ok(Frame::Integer(may.into()))
}

/// `initialise.lua`
fn initialise(run: &mut Run<'_, '_>) -> Outcome<Frame> {
    let (epoch_key, quarantine) = (run.key(0), run.key(1));
    let (act, longest, name) = (run.argument(0), run.argument(1), run.argument(2));
    if !is_digits(longest) {
        return Ok(Refusal::of("ERR a TTL must be a whole number").into_frame());
    }
    let (epoch, left) = match epoch_and_quarantine(run, 14, epoch_key, quarantine) {
        Ok(standing) => standing,
        Err(reason) => return Ok(reason),
    };
    if let Some(reason) = other_deployment(epoch.as_deref(), longest) {
        return Ok(reason);
    }
    let own = [name, b" ", longest].concat();
    if act == b"write" {
        run.call(38, &[b"SET", epoch_key, &own])?;
        run.call(39, &[b"DEL", quarantine])?;
        return Ok(Frame::Integer(1));
    }
    let serves = epoch.as_deref() == Some(&own[..]) && left == -2;
    Ok(Frame::Integer(serves.into()))
}
