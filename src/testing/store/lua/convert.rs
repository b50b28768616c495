//! Replies to Lua values and back, as servers convert them.
//!
//! | reply | value |
//! |---|---|
//! | integer, bulk string | number, string |
//! | null | `false` |
//! | status, error | a table with `ok`, with `err` |
//! | array, map | a table, a map as keys and values by turns |
//!
//! Back, a number loses its fraction, `true` is 1, `false` and all else are null, and an array ends
//! before its first `nil`.

use bytes::Bytes;
use mlua::{Error, Lua, Table, Value};
use quorlock_resp::Frame;

/// A command's reply, as a script gets it.
pub(super) fn to_value(lua: &Lua, frame: &Frame) -> mlua::Result<Value> {
    Ok(match frame {
        Frame::Null => Value::Boolean(false),
        Frame::Integer(number) => Value::Number(*number as f64),
        Frame::Bulk(text) | Frame::Verbatim { text, .. } => Value::String(lua.create_string(text)?),
        Frame::Simple(text) => Value::Table(field(lua, "ok", text)?),
        Frame::Error(text) => Value::Table(field(lua, "err", text)?),
        Frame::Array(items) => {
            let items = items.iter().map(|item| to_value(lua, item));
            let items = items.collect::<mlua::Result<Vec<_>>>()?;
            Value::Table(lua.create_sequence_from(items)?)
        }
        Frame::Map(pairs) => {
            let items = pairs.as_frames().iter().map(|item| to_value(lua, item));
            let items = items.collect::<mlua::Result<Vec<_>>>()?;
            Value::Table(lua.create_sequence_from(items)?)
        }
        other => return Err(Error::runtime(format!("no command of a node replies {other:?}"))),
    })
}

/// A table with one field.
pub(super) fn field(lua: &Lua, name: &str, text: &[u8]) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set(name, lua.create_string(text)?)?;
    Ok(table)
}

/// What a script returns, as its reply.
pub(super) fn to_frame(value: &Value) -> mlua::Result<Frame> {
    Ok(match value {
        Value::String(text) => Frame::Bulk(Bytes::copy_from_slice(&text.as_bytes())),
        Value::Integer(number) => Frame::Integer(*number),
        Value::Number(number) => Frame::Integer(*number as i64),
        Value::Boolean(true) => Frame::Integer(1),
        Value::Table(table) => of_table(table)?,
        _ => Frame::Null,
    })
}

fn of_table(table: &Table) -> mlua::Result<Frame> {
    if let Value::String(text) = table.get::<Value>("err")? {
        return Ok(Frame::Error(one_line(&text.as_bytes())));
    }
    if let Value::String(text) = table.get::<Value>("ok")? {
        return Ok(Frame::Simple(one_line(&text.as_bytes())));
    }
    let mut items = Vec::new();
    loop {
        match table.get::<Value>(items.len() + 1)? {
            Value::Nil => return Ok(Frame::Array(items.into())),
            item => items.push(to_frame(&item)?),
        }
    }
}

/// Without line ends, which would end the reply.
fn one_line(text: &[u8]) -> Bytes {
    text.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }).collect()
}
