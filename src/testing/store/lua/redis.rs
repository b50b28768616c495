//! The functions of `redis`: what a script can ask of the node that runs it.

use mlua::{Error, Lua, MultiValue, Table, Value};

use super::super::call::{Call, Refusal, Reply};
use super::super::sha1;
use super::super::state::Store;
use super::convert;
use super::raised::{Raised, line, version};

/// The commands that no script may say.
const FORBIDDEN: [&str; 13] = [
    "acl",
    "auth",
    "client",
    "config",
    "eval",
    "evalsha",
    "hello",
    "quit",
    "reset",
    "role",
    "script",
    "subscribe",
    "unsubscribe",
];

/// Whole numbers are words as they are up to this.
const WHOLE_MAX: f64 = 1e17;

/// Puts in what needs no store.
pub(super) fn install(lua: &Lua, redis: &Table) -> mlua::Result<()> {
    let error_reply = |lua: &Lua, words: MultiValue| match only_text(&words) {
        Some(text) => convert::field(lua, "err", &error_text(lua, &text)),
        None => wrong_reply(lua),
    };
    let status_reply = |lua: &Lua, words: MultiValue| match only_text(&words) {
        Some(text) => convert::field(lua, "ok", &text),
        None => wrong_reply(lua),
    };
    let sha1hex = |lua: &Lua, words: MultiValue| match only_text(&words) {
        Some(text) => lua.create_string(sha1::digest(&text)),
        None => {
            let text = version(lua).plain_in_script("wrong number of arguments");
            Err(Error::external(Raised { line: line(lua), text }))
        }
    };
    redis.raw_set("error_reply", lua.create_function(error_reply)?)?;
    redis.raw_set("status_reply", lua.create_function(status_reply)?)?;
    redis.raw_set("sha1hex", lua.create_function(sha1hex)?)
}

fn only_text(words: &MultiValue) -> Option<Vec<u8>> {
    match words.front() {
        Some(Value::String(text)) if words.len() == 1 => Some(text.as_bytes().to_vec()),
        _ => None,
    }
}

/// What `error_reply` makes of a text: its first word is the error's, or that is `ERR`.
fn error_text(lua: &Lua, text: &[u8]) -> Vec<u8> {
    if !version(lua).has_subcommands() {
        return text.to_vec();
    }
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let code: &[u8] = if text.contains(&b' ') { b"" } else { b"ERR " };
    [code, text].concat()
}

fn wrong_reply(lua: &Lua) -> mlua::Result<Table> {
    let what = version(lua).called_wrongly(["wrong number or type of arguments"; 3], line(lua));
    convert::field(lua, "err", what.0.as_bytes())
}

/// `redis.call`, or `redis.pcall` if errors are caught.
pub(super) fn say(
    lua: &Lua,
    store: &mut Store,
    call: &Call<'_>,
    words: &MultiValue,
    is_caught: bool,
) -> mlua::Result<Value> {
    let line = line(lua);
    match reply(store, call, words, line) {
        Ok(frame) => convert::to_value(lua, &frame),
        Err(Refusal(text)) if is_caught => {
            convert::field(lua, "err", text.as_bytes()).map(Value::Table)
        }
        Err(Refusal(text)) => Err(Error::external(Raised { line, text: text.into_owned() })),
    }
}

/// Whether a server of the store's version has that function.
pub(super) fn has_acl_check_cmd(store: &Store) -> bool {
    store.setup.version.has_subcommands() // either came with Redis 7.0
}

/// `redis.acl_check_cmd`
pub(super) fn acl_check_cmd(
    lua: &Lua,
    store: &mut Store,
    call: &Call<'_>,
    words: &MultiValue,
) -> mlua::Result<bool> {
    let wrong = |text: &str| Error::external(Raised { line: line(lua), text: text.to_owned() });
    let words = words.iter().map(word).collect::<Option<Vec<_>>>();
    let words = words.ok_or_else(|| wrong("ERR redis.acl_check_cmd: no words"))?;
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    match store.may_say(call, &words) {
        Some(Ok(may)) => Ok(may),
        _ => Err(wrong("ERR Invalid command passed to redis.acl_check_cmd()")),
    }
}

fn reply(store: &mut Store, call: &Call<'_>, words: &MultiValue, line: u32) -> Reply {
    let version = store.setup.version;
    let wrong = |what| version.called_wrongly(what, line);
    if words.is_empty() {
        return Err(wrong([
            "Please specify at least one argument for redis.call()",
            "Please specify at least one argument for this redis lib call",
            "Please specify at least one argument for this call",
        ]));
    }
    let words = words.iter().map(word).collect::<Option<Vec<_>>>().ok_or_else(|| {
        wrong([
            "Lua redis() command arguments must be strings or integers",
            "Lua redis lib command arguments must be strings or integers",
            "Command arguments must be strings or integers",
        ])
    })?;
    if FORBIDDEN.iter().any(|name| name.as_bytes().eq_ignore_ascii_case(&words[0])) {
        return Err(wrong([
            "This Redis command is not allowed from scripts",
            "This Redis command is not allowed from script",
            "This Valkey command is not allowed from script",
        ]));
    }
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let Call { session, now, .. } = *call;
    store.call(&Call { session, words: &words, now, line: Some(line) })
}

/// A value as a command's word; a fraction, which servers write in their own ways, is none here.
fn word(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.as_bytes().to_vec()),
        Value::Integer(number) => Some(number.to_string().into()),
        Value::Number(number) if number.fract() == 0.0 && number.abs() < WHOLE_MAX => {
            Some((*number as i64).to_string().into())
        }
        _ => None,
    }
}
