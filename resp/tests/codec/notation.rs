//! Frames as the data files write them.

use quorlock_resp::{Frame, Pairs};

/// Several frames, with blanks between.
pub(crate) fn frames(frames: &[Frame]) -> String {
    join(frames.iter(), " ")
}

fn frame(value: &Frame) -> String {
    match value {
        Frame::Simple(text) => quoted("simple", text),
        Frame::Error(text) => quoted("error", text),
        Frame::Integer(value) => format!("int {value}"),
        Frame::Bulk(text) => quoted("bulk", text),
        Frame::Null => "null".to_owned(),
        Frame::Boolean(value) => value.to_string(),
        Frame::Double(value) if *value != 0.0 && !(1e-5..1e16).contains(&value.abs()) => {
            format!("double {value:e}")
        }
        Frame::Double(value) => format!("double {value}"),
        Frame::BigNumber(text) => quoted("big", text),
        Frame::BulkError(text) => quoted("bulk-error", text),
        Frame::Verbatim { format, text } => {
            quoted(&format!("verbatim:{}", format.escape_ascii()), text)
        }
        Frame::Array(items) => format!("[{}]", join(items.iter(), ", ")),
        Frame::Set(items) => format!("set[{}]", join(items.iter(), ", ")),
        Frame::Push(items) => format!("push[{}]", join(items.iter(), ", ")),
        Frame::Map(pairs) => entries(pairs),
        Frame::Attributed(attributed) => {
            format!("attr{} {}", entries(attributed.attributes()), frame(attributed.value()))
        }
        other => panic!("no notation for {other:?}"),
    }
}

fn quoted(name: &str, text: &[u8]) -> String {
    format!("{name}\"{}\"", text.escape_ascii().to_string().replace("\\'", "'"))
}

fn entries(pairs: &Pairs) -> String {
    let entries = pairs.iter().map(|(key, value)| format!("{}: {}", frame(key), frame(value)));
    format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
}

fn join<'a>(values: impl Iterator<Item = &'a Frame>, between: &str) -> String {
    values.map(frame).collect::<Vec<_>>().join(between)
}
