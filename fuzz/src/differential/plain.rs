//! Values in one type that each decoder's can be turned into.

use quorlock_resp::Frame;

/// A value without what some decoder does not keep: kinds of text, texts of errors (`redis`
/// takes them apart), order of sets and maps (`redis-protocol` hashes them), attributes.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub(super) enum Plain {
    Null,
    Boolean(bool),
    Integer(i64),
    /// As bits, the same for all that is not a number.
    Double(u64),
    Text(Vec<u8>),
    Error,
    List(Vec<Self>),
    Push(Vec<Self>),
    Map(Vec<(Self, Self)>),
}

impl Plain {
    pub(super) fn of(frame: &Frame) -> Self {
        match frame.value() {
            Frame::Null => Self::Null,
            Frame::Boolean(value) => Self::Boolean(*value),
            Frame::Integer(value) => Self::Integer(*value),
            Frame::Double(value) => Self::double(*value),
            Frame::BigNumber(text) => Self::Text(text.to_vec()),
            Frame::Error(_) | Frame::BulkError(_) => Self::Error,
            Frame::Array(items) => Self::List(items.iter().map(Self::of).collect()),
            Frame::Set(items) => Self::set(items.iter().map(Self::of).collect()),
            Frame::Push(items) => Self::Push(items.iter().map(Self::of).collect()),
            Frame::Map(pairs) => {
                Self::map(pairs.iter().map(|(key, value)| (Self::of(key), Self::of(value))))
            }
            text => Self::Text(text.as_bytes().map(<[u8]>::to_vec).unwrap_or_default()),
        }
    }

    pub(super) fn double(value: f64) -> Self {
        Self::Double(if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() })
    }

    /// Sorted, each value once.
    pub(super) fn set(mut values: Vec<Self>) -> Self {
        values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        values.dedup();
        Self::List(values)
    }

    /// Sorted by key and value.
    pub(super) fn map(entries: impl Iterator<Item = (Self, Self)>) -> Self {
        let mut entries: Vec<_> = entries.collect();
        entries.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        Self::Map(entries)
    }
}
