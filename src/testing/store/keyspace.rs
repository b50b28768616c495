//! Keys with their values and ends, by database.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;

use super::sorted_set::SortedSet;

/// What stands under a key. A lock is a text, those who wait for it a sorted set; the others are
/// there because a lock's key may hold anything.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Value {
    Text(Bytes),
    Hash(BTreeMap<Bytes, Bytes>),
    List(Vec<Bytes>),
    /// Never empty: its key goes with its last member.
    Sorted(SortedSet),
}

impl Value {
    /// As `TYPE` names it.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "string",
            Self::Hash(_) => "hash",
            Self::List(_) => "list",
            Self::Sorted(_) => "zset",
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Hash(fields) => fields.iter().map(|(name, value)| name.len() + value.len()).sum(),
            Self::List(items) => items.iter().map(Bytes::len).sum(),
            Self::Sorted(set) => set.bytes(),
        }
    }
}

/// A key's value, and until when it is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) value: Value,
    /// By the node's own clock; `None` is forever.
    pub(super) end: Option<Duration>,
}

/// A key and the database it is in.
pub(super) type Place = (u32, Bytes);

/// All databases of a node. Who reads it has removed first what was due.
#[derive(Clone, Default, Debug)]
pub(super) struct Keyspace {
    entries: BTreeMap<Place, Entry>,
    /// The ends of `entries`, soonest first.
    ends: BTreeSet<(Duration, Place)>,
}

impl Keyspace {
    pub(super) fn get(&self, place: &Place) -> Option<&Entry> {
        self.entries.get(place)
    }

    pub(super) fn put(&mut self, place: Place, entry: Entry) {
        self.remove(&place);
        if let Some(end) = entry.end {
            self.ends.insert((end, place.clone()));
        }
        self.entries.insert(place, entry);
    }

    pub(super) fn remove(&mut self, place: &Place) -> Option<Entry> {
        let entry = self.entries.remove(place)?;
        if let Some(end) = entry.end {
            self.ends.remove(&(end, place.clone()));
        }
        Some(entry)
    }

    /// Removes a key whose end has come, if there is one.
    pub(super) fn expire_one(&mut self, now: Duration) -> Option<Place> {
        let (_, place) = self.ends.first().filter(|(end, _)| *end <= now)?.clone();
        self.remove(&place);
        Some(place)
    }

    /// When the next key ends.
    pub(super) fn next_end(&self) -> Option<Duration> {
        self.ends.first().map(|(end, _)| *end)
    }

    /// Empties one database, or all.
    pub(super) fn clear(&mut self, database: Option<u32>) {
        let goes = |found: u32| database.is_none_or(|database| database == found);
        self.entries.retain(|(found, _), _| !goes(*found));
        self.ends.retain(|(_, (found, _))| !goes(*found));
    }

    /// A database's keys, in their order.
    pub(super) fn keys(&self, database: u32) -> impl Iterator<Item = &Bytes> {
        let from = (database, Bytes::new());
        let inside =
            self.entries.range(from..).take_while(move |((found, _), _)| *found == database);
        inside.map(|((_, key), _)| key)
    }

    /// How many keys each database that is not empty has, and how many of them have an end.
    pub(super) fn counts(&self) -> BTreeMap<u32, [usize; 2]> {
        let mut counts = BTreeMap::new();
        for ((database, _), entry) in &self.entries {
            let [keys, ends] = counts.entry(*database).or_insert([0; 2]);
            *keys += 1;
            *ends += usize::from(entry.end.is_some());
        }
        counts
    }

    /// About how much memory the keys take.
    pub(super) fn bytes(&self) -> usize {
        self.entries.iter().map(|((_, key), entry)| key.len() + entry.value.bytes()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(key: &'static str) -> Place {
        (0, Bytes::from_static(key.as_bytes()))
    }

    fn text(end: Option<u64>) -> Entry {
        let value = Value::Text(Bytes::from_static(b"v"));
        Entry { value, end: end.map(Duration::from_millis) }
    }

    #[test]
    fn keys_end_in_the_order_of_their_ends_and_forget_former_ones() {
        let mut keys = Keyspace::default();
        keys.put(place("late"), text(Some(30)));
        keys.put(place("soon"), text(Some(10)));
        keys.put(place("ever"), text(None));
        keys.put(place("moved"), text(Some(5)));
        keys.put(place("moved"), text(Some(20)));
        assert_eq!(keys.next_end(), Some(Duration::from_millis(10)));
        assert_eq!(keys.expire_one(Duration::from_millis(9)), None);
        let mut ended = Vec::new();
        while let Some(place) = keys.expire_one(Duration::from_millis(30)) {
            ended.push(place);
        }
        assert_eq!(ended, [place("soon"), place("moved"), place("late")]);
        assert_eq!(keys.counts(), BTreeMap::from([(0, [1, 0])]));
    }

    #[test]
    fn databases_are_apart() {
        let mut keys = Keyspace::default();
        keys.put(place("k"), text(Some(1)));
        keys.put((7, Bytes::from_static(b"k")), text(Some(2)));
        keys.clear(Some(0));
        assert_eq!(keys.keys(0).count(), 0);
        assert_eq!(keys.keys(7).collect::<Vec<_>>(), ["k"]);
        assert_eq!(keys.next_end(), Some(Duration::from_millis(2)));
        keys.clear(None);
        assert_eq!((keys.next_end(), keys.bytes()), (None, 0));
    }
}
