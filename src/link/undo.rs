//! What undoes a command, and which of two undos is meant.
//!
//! An *undo* is the tail of a command whose head is common to all (the script that undoes): a key,
//! the value that was set, and for a lock that was being handed over the former value, which is put
//! back. Its *pair* is the key and the value: no two attempts have the same value, so the pair says
//! which undo it is. The encoder of a command states all this; nothing is parsed back from the
//! bytes.

use std::sync::Arc;

use quorlock_resp::encode;

/// How many arguments stand in the head: the command, the script, and how many keys follow.
const HEAD_ARGUMENTS: usize = 3;

/// What undoes a command, in encoded arguments that begin with its pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Undo<'a> {
    bytes: &'a [u8],
    form: Form,
}

/// What is known of an undo beside its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Form {
    pair_len: usize,
    means: Means,
}

/// What an undo does to the key, where that holds the pair's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Means {
    /// The command needs no undo.
    Nothing,
    /// It deletes the key.
    Delete,
    /// It puts the former value back.
    PutBack,
}

impl Undo<'static> {
    /// A command that is about no pair needs none.
    pub(crate) const NONE: Self = Self::nothing(&[]);
}

impl<'a> Undo<'a> {
    /// A command about this pair that needs no undo.
    pub(crate) const fn nothing(pair: &'a [u8]) -> Self {
        Self { bytes: pair, form: Form { pair_len: pair.len(), means: Means::Nothing } }
    }

    /// Deletes the key of this pair.
    pub(crate) const fn delete(pair: &'a [u8]) -> Self {
        Self { bytes: pair, form: Form { pair_len: pair.len(), means: Means::Delete } }
    }

    /// Puts the former value back, which stands behind the pair.
    pub(crate) const fn put_back(bytes: &'a [u8], pair_len: usize) -> Self {
        Self { bytes, form: Form { pair_len, means: Means::PutBack } }
    }

    /// One whose bytes were kept apart from its form.
    pub(super) const fn of(bytes: &'a [u8], form: Form) -> Self {
        Self { bytes, form }
    }

    pub(super) fn form(self) -> Form {
        self.form
    }

    pub(super) fn is_nothing(self) -> bool {
        self.form.means == Means::Nothing
    }

    /// What it adds to the head; empty where there is nothing to undo.
    pub(crate) fn tail(self) -> &'a [u8] {
        if self.is_nothing() { &[] } else { self.bytes }
    }

    /// The key and the value that the command is about.
    pub(super) fn pair(self) -> &'a [u8] {
        &self.bytes[..self.form.pair_len]
    }

    /// Whether this is meant where both are known: a lock that was to be put back, and was released
    /// after all, is deleted.
    pub(super) fn supersedes(self, other: Self) -> bool {
        let means = (self.form.means, other.form.means);
        means == (Means::Delete, Means::PutBack) && self.pair() == other.pair()
    }

    /// The whole command: `head` is the script's call up to the key, without the header that counts
    /// the arguments.
    pub(super) fn whole(self, head: &[u8]) -> Vec<u8> {
        let own = match self.form.means {
            Means::Nothing => return Vec::new(),
            Means::Delete => 2,
            Means::PutBack => 3,
        };
        let mut command = Vec::with_capacity(head.len() + self.bytes.len() + b"*9\r\n".len());
        encode::array_header(&mut command, HEAD_ARGUMENTS + own);
        command.extend_from_slice(head);
        command.extend_from_slice(self.bytes);
        command
    }

    pub(super) fn kept(self) -> Kept {
        Kept { bytes: self.bytes.into(), form: self.form }
    }
}

/// An undo that outlives its command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Kept {
    bytes: Arc<[u8]>,
    form: Form,
}

impl Kept {
    pub(super) fn lent(&self) -> Undo<'_> {
        Undo::of(&self.bytes, self.form)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(arguments: &[&[u8]]) -> Vec<u8> {
        let mut tail = Vec::new();
        arguments.iter().for_each(|argument| encode::bulk(&mut tail, argument));
        tail
    }

    #[test]
    fn a_whole_undo_counts_its_arguments() {
        let words: [&[u8]; 6] = [b"EVAL", b"a script", b"1", b"k", b"new", b"old"];
        let (head, undo) = words.split_at(3);
        let (pair, all) = (tail(&undo[..2]), tail(undo));
        for (undo, count) in [(Undo::delete(&pair), 5), (Undo::put_back(&all, pair.len()), 6)] {
            let mut expected = Vec::new();
            encode::command(&mut expected, &words[..count]);
            assert_eq!(undo.whole(&tail(head)), expected);
            assert_eq!(undo.pair(), pair);
            assert_eq!(undo.kept().lent(), undo);
        }
        assert!(Undo::nothing(&pair).whole(&tail(head)).is_empty());
        assert_eq!((Undo::nothing(&pair).tail(), Undo::nothing(&pair).pair()), (&[][..], &*pair));
    }

    #[test]
    fn a_deletion_is_meant_where_its_pair_was_to_be_put_back() {
        let (delete, back) = (Undo::delete(b"k:v;"), Undo::put_back(b"k:v;old;", 4));
        assert!(delete.supersedes(back) && !back.supersedes(delete));
        assert!(!delete.supersedes(delete) && !back.supersedes(back));
        assert!(!Undo::nothing(b"k:v;").supersedes(back));
        // A pair that another one begins with, and a former value that begins as a pair.
        for other in [Undo::put_back(b"k:v;old;", 6), Undo::put_back(b"k:v;old;", 2)] {
            assert!(!delete.supersedes(other));
        }
    }
}
