//! The pending undos by turn, and an index, so that one is found among thousands.
//!
//! To change one is to take it out of the queue and put it back: so each stands where its turn is,
//! and the index knows where. There is one for each pair of a key and a value (see
//! [`undo`](super::super::undo)).

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};

use super::super::undo::{Kept, Undo};
use super::item::PendingUndo;
use crate::clock::Moment;

/// When an undo is due, and among those that are due together its age.
type Turn = (Moment, u64);

/// Pending undos, each of another pair.
#[derive(Debug, Default)]
pub(super) struct Queue {
    items: BTreeMap<Turn, PendingUndo>,
    /// Where the undo of a pair stands in `items`.
    index: HashMap<Pair, Turn>,
    /// How many there are of each value.
    values: HashMap<Box<[u8]>, usize>,
}

/// The pair of an undo, which it shares with its item.
#[derive(Debug)]
struct Pair(Kept);

impl Borrow<[u8]> for Pair {
    fn borrow(&self) -> &[u8] {
        self.0.lent().pair()
    }
}

impl PartialEq for Pair {
    fn eq(&self, other: &Self) -> bool {
        let (ours, theirs): (&[u8], &[u8]) = (self.borrow(), other.borrow());
        ours == theirs
    }
}

impl Eq for Pair {}

impl Hash for Pair {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let pair: &[u8] = self.borrow();
        pair.hash(state);
    }
}

impl Queue {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether the undo of this pair is pending.
    pub(super) fn has(&self, pair: &[u8]) -> bool {
        self.index.contains_key(pair)
    }

    /// Whether an undo of this value is pending, of whichever keys.
    pub(super) fn has_value(&self, value: &[u8]) -> bool {
        self.values.contains_key(value)
    }

    /// Puts an undo where its turn is.
    pub(super) fn put(&mut self, item: PendingUndo) {
        let turn = (item.next, item.age);
        self.index.insert(Pair(item.undo.clone()), turn);
        *self.values.entry(item.undo.lent().value().into()).or_default() += 1;
        self.items.insert(turn, item);
    }

    /// Takes the undo of a pair out.
    pub(super) fn take(&mut self, pair: &[u8]) -> Option<PendingUndo> {
        let turn = *self.index.get(pair)?;
        let item = self.items.remove(&turn)?;
        Some(self.forget(item))
    }

    /// Takes out the one whose turn is first.
    pub(super) fn take_first(&mut self) -> Option<PendingUndo> {
        let (_, item) = self.items.pop_first()?;
        Some(self.forget(item))
    }

    /// Takes out the one whose turn is last.
    pub(super) fn take_last(&mut self) -> Option<PendingUndo> {
        let (_, item) = self.items.pop_last()?;
        Some(self.forget(item))
    }

    /// An item that was taken out is not found any more.
    fn forget(&mut self, item: PendingUndo) -> PendingUndo {
        let undo = item.undo.lent();
        self.index.remove(undo.pair());
        if let Some(count) = self.values.get_mut(undo.value()) {
            *count -= 1;
            if *count == 0 {
                self.values.remove(undo.value());
            }
        }
        item
    }

    /// What is to be undone, each once.
    pub(super) fn undos(&self) -> impl Iterator<Item = Undo<'_>> {
        self.items.values().map(|item| item.undo.lent())
    }

    /// The one whose turn is first.
    pub(super) fn first(&self) -> Option<&PendingUndo> {
        self.items.first_key_value().map(|(_, item)| item)
    }

    /// The one whose turn is last.
    pub(super) fn last(&self) -> Option<&PendingUndo> {
        self.items.last_key_value().map(|(_, item)| item)
    }
}
