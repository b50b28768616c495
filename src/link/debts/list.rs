//! The list of what is owed, by turn; and an index, so that one undo is found among thousands.
//!
//! Whatever changes a debt takes it out of the list and puts it back: so each stands where its turn
//! is, and the index knows where. There is one debt for each pair of a key and a value (see
//! [`undo`](super::super::undo)).

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};

use super::super::undo::{Kept, Undo};
use super::Debt;
use crate::clock::Moment;

/// When a debt is due, and among those that are due together its age.
type Turn = (Moment, u64);

/// Debts, each of another pair.
#[derive(Debug, Default)]
pub(super) struct List {
    debts: BTreeMap<Turn, Debt>,
    /// Where the debt of a pair stands in `debts`.
    index: HashMap<Pair, Turn>,
}

/// The pair of an undo, which it shares with its debt.
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

impl List {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.debts.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.debts.len()
    }

    /// Whether there is a debt of this pair.
    pub(super) fn has(&self, pair: &[u8]) -> bool {
        self.index.contains_key(pair)
    }

    /// Puts a debt where its turn is.
    pub(super) fn put(&mut self, debt: Debt) {
        let turn = (debt.next, debt.age);
        self.index.insert(Pair(debt.undo.clone()), turn);
        self.debts.insert(turn, debt);
    }

    /// Takes the debt of a pair out.
    pub(super) fn take(&mut self, pair: &[u8]) -> Option<Debt> {
        let turn = self.index.remove(pair)?;
        self.debts.remove(&turn)
    }

    /// Takes out the one whose turn is first.
    pub(super) fn take_first(&mut self) -> Option<Debt> {
        let (_, debt) = self.debts.pop_first()?;
        self.index.remove(debt.undo.lent().pair());
        Some(debt)
    }

    /// Takes out the one whose turn is last.
    pub(super) fn take_last(&mut self) -> Option<Debt> {
        let (_, debt) = self.debts.pop_last()?;
        self.index.remove(debt.undo.lent().pair());
        Some(debt)
    }

    /// What is to be undone, each once.
    pub(super) fn undos(&self) -> impl Iterator<Item = Undo<'_>> {
        self.debts.values().map(|debt| debt.undo.lent())
    }

    /// The one whose turn is first.
    pub(super) fn first(&self) -> Option<&Debt> {
        self.debts.first_key_value().map(|(_, debt)| debt)
    }

    /// The one whose turn is last.
    pub(super) fn last(&self) -> Option<&Debt> {
        self.debts.last_key_value().map(|(_, debt)| debt)
    }
}
