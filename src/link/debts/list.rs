//! The list of what is owed, by turn; and an index, so that one undo is found among thousands.
//!
//! Whatever changes a debt takes it out of the list and puts it back: so each stands where its turn
//! is, and the index knows where.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::Debt;
use crate::clock::Moment;

/// When a debt is due, and among those that are due together its age.
type Turn = (Moment, u64);

/// Debts, each with another undo.
#[derive(Debug, Default)]
pub(super) struct List {
    debts: BTreeMap<Turn, Debt>,
    /// Where the debt of an undo stands in `debts`.
    index: HashMap<Arc<[u8]>, Turn>,
}

impl List {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.debts.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.debts.len()
    }

    /// Whether an undo is among the debts'.
    pub(super) fn has(&self, undo: &[u8]) -> bool {
        self.index.contains_key(undo)
    }

    /// Puts a debt where its turn is.
    pub(super) fn put(&mut self, debt: Debt) {
        let turn = (debt.next, debt.age);
        self.index.insert(debt.undo.clone(), turn);
        self.debts.insert(turn, debt);
    }

    /// Takes the debt of an undo out.
    pub(super) fn take(&mut self, undo: &[u8]) -> Option<Debt> {
        let turn = self.index.remove(undo)?;
        self.debts.remove(&turn)
    }

    /// Takes out the one whose turn is first.
    pub(super) fn take_first(&mut self) -> Option<Debt> {
        let (_, debt) = self.debts.pop_first()?;
        self.index.remove(&debt.undo);
        Some(debt)
    }

    /// Takes out the one whose turn is last.
    pub(super) fn take_last(&mut self) -> Option<Debt> {
        let (_, debt) = self.debts.pop_last()?;
        self.index.remove(&debt.undo);
        Some(debt)
    }

    /// What is to be undone, each once.
    pub(super) fn undos(&self) -> impl Iterator<Item = &[u8]> {
        self.debts.values().map(|debt| &*debt.undo)
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

/// Each two arguments of an encoded command that are neighbours, as they stand in it: an undo is a
/// key and its value, and so do these stand in the command that set it.
pub(super) fn neighbours(command: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut begin = end_of_line(command, 0);
    let mut middle = begin.and_then(|begin| end_of_argument(command, begin));
    std::iter::from_fn(move || {
        let end = end_of_argument(command, middle?)?;
        let pair = command.get(begin?..end)?;
        (begin, middle) = (middle, Some(end));
        Some(pair)
    })
}

/// Where the argument that begins at `begin` ends, with its length before it.
fn end_of_argument(command: &[u8], begin: usize) -> Option<usize> {
    let text = end_of_line(command, begin)?;
    let length = command.get(begin..text)?.strip_prefix(b"$")?.strip_suffix(b"\r\n")?;
    let length: usize = std::str::from_utf8(length).ok()?.parse().ok()?;
    text.checked_add(length)?.checked_add(b"\r\n".len()).filter(|end| *end <= command.len())
}

fn end_of_line(command: &[u8], begin: usize) -> Option<usize> {
    let line = command.get(begin..)?.iter().position(|byte| *byte == b'\n')?;
    Some(begin + line + 1)
}

#[cfg(test)]
mod tests {
    use quorlock_resp::encode;

    use super::*;

    fn shown(command: &[u8]) -> Vec<String> {
        let text = |pair: &[u8]| String::from_utf8_lossy(pair).replace("\r\n", " ");
        neighbours(command).map(text).collect()
    }

    #[test]
    fn neighbours_are_pairs_of_whole_arguments() {
        let mut command = Vec::new();
        encode::command(&mut command, &[b"SET", b"k\r\n$1", b"", b"v"]);
        let expected = ["$3 SET $5 k $1 ", "$5 k $1 $0  ", "$0  $1 v "];
        assert_eq!(shown(&command), expected);
        assert_eq!(shown(&command[..command.len() - 1]), expected[..2]);
        for odd in ["", "*1\r\n", "*1\r\n$4\r\nPING\r\n", "PING\r\n", "*2\r\n$1\r\na\r\n$-1\r\n"] {
            assert!(neighbours(odd.as_bytes()).next().is_none(), "{odd:?}");
        }
        let huge = format!("*2\r\n$1\r\na\r\n${}\r\n", usize::MAX);
        assert!(neighbours(huge.as_bytes()).next().is_none());
    }
}
