//! The values themselves, in one type that every peer's can be turned into.

/// A value without the names its library gives it. Text of every kind is text, because some
/// peers do not keep the kinds apart.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
#[expect(missing_docs, reason = "each is what it is called")]
pub enum Plain {
    Null,
    Boolean(bool),
    Integer(i64),
    Double(f64),
    Text(Vec<u8>),
    /// An array or a set, sorted: one peer hashes sets, and another does not tell them apart.
    List(Vec<Self>),
    /// Sorted.
    Map(Vec<(Self, Self)>),
    Push(Vec<Self>),
}

impl Plain {
    /// A map, its entries sorted.
    pub fn map(entries: impl Iterator<Item = (Self, Self)>) -> Self {
        let mut entries: Vec<_> = entries.collect();
        entries.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        Self::Map(entries)
    }

    /// An array or a set, sorted.
    pub fn list(values: impl Iterator<Item = Self>) -> Self {
        let mut values: Vec<_> = values.collect();
        values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        Self::List(values)
    }
}
