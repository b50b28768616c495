//! What undoes a command, and which of two undos is meant.
//!
//! An *undo* is a script, by which it is a command of its own, and the arguments of that: the keys,
//! the value that was set, and for a lock that was being handed over the former value, which is
//! put back. Its *pair* is the keys and the value: no two attempts have the same value, so the pair
//! says which undo it is. The encoder of a command states all this; the value, and what undoes the
//! first key alone, are all that is read back from the bytes.

use std::sync::Arc;

use quorlock_resp::encode;

/// How many arguments stand before the keys: `EVAL`, the script, and how many keys follow.
const HEAD_ARGUMENTS: usize = 3;

/// The script that undoes commands of one kind.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct UndoScript {
    pub(crate) text: &'static str,
    /// Whether all that it does to one key is to [compare and delete](super::native) it, where no
    /// former value is put back.
    pub(crate) compares_and_deletes: bool,
    /// What compares and deletes the first of several keys and no other, for a user who has no
    /// right to the others.
    pub(crate) for_first_key: Option<&'static Self>,
}

/// That of commands which need none.
static NO_SCRIPT: UndoScript =
    UndoScript { text: "", compares_and_deletes: false, for_first_key: None };

/// What undoes a command, in encoded arguments that begin with its pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Undo<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) form: Form,
}

/// What is known of an undo beside its bytes. Small, for it is noted with every command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Form {
    script: &'static UndoScript,
    pair_len: u32,
    keys: u16,
    means: Means,
}

/// What an undo does to the keys, where they hold the pair's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Means {
    /// The command needs no undo.
    Nothing,
    /// It deletes the keys.
    Delete,
    /// It puts the former value back.
    PutBack,
}

impl Form {
    /// Whether there is an undo [for the first key](Undo::for_first_key).
    pub(super) fn has_first_key_form(self) -> bool {
        self.means == Means::Delete && self.script.for_first_key.is_some()
    }
}

impl Undo<'static> {
    /// A command that is about no pair needs none.
    pub(crate) const NONE: Self = Self::nothing(&[]);
}

impl<'a> Undo<'a> {
    /// A command about this pair that needs no undo.
    pub(crate) const fn nothing(pair: &'a [u8]) -> Self {
        Self::new((&NO_SCRIPT, 0), pair, pair.len(), Means::Nothing)
    }

    /// Deletes the keys of this pair, of which there are so many, by this script.
    pub(crate) const fn delete(script: (&'static UndoScript, u16), pair: &'a [u8]) -> Self {
        Self::new(script, pair, pair.len(), Means::Delete)
    }

    /// Puts the former value back, which stands behind the pair.
    pub(crate) const fn put_back(
        script: (&'static UndoScript, u16),
        bytes: &'a [u8],
        pair_len: usize,
    ) -> Self {
        Self::new(script, bytes, pair_len, Means::PutBack)
    }

    const fn new(
        (script, keys): (&'static UndoScript, u16),
        bytes: &'a [u8],
        pair_len: usize,
        means: Means,
    ) -> Self {
        // A command is far below four gigabytes: a link holds no more than its bounds.
        Self { bytes, form: Form { script, pair_len: pair_len as u32, keys, means } }
    }

    pub(super) fn is_nothing(self) -> bool {
        self.form.means == Means::Nothing
    }

    /// The keys and the value that the command is about.
    pub(super) fn pair(self) -> &'a [u8] {
        &self.bytes[..self.form.pair_len as usize]
    }

    /// The pair's value, which no other attempt has: its last line. It tells whether commands about
    /// other keys are about the same attempt, as one that stands in a queue and one that extends
    /// the lock.
    pub(super) fn value(self) -> &'a [u8] {
        let pair = self.pair();
        let end = pair.len().saturating_sub(b"\r\n".len());
        let line = pair[..end].iter().rposition(|byte| *byte == b'\n');
        &pair[line.map_or(0, |at| at + 1)..end]
    }

    /// Whether this is meant where both are known: a lock that was to be put back, and was released
    /// after all, is deleted.
    pub(super) fn supersedes(self, other: Self) -> bool {
        let means = (self.form.means, other.form.means);
        means == (Means::Delete, Means::PutBack) && self.pair() == other.pair()
    }

    /// Whether a [native command](super::native) does the same.
    #[inline]
    pub(super) fn has_native_form(self) -> bool {
        let Form { script, keys, means, .. } = self.form;
        means == Means::Delete && keys == 1 && script.compares_and_deletes
    }

    /// What deletes the first of the keys and no other.
    pub(super) fn for_first_key(self) -> Option<Kept> {
        let script = self.form.script.for_first_key.filter(|_| self.form.has_first_key_form())?;
        let mut rest = self.pair();
        let first = split_bulk(&mut rest)?;
        for _ in 1..self.form.keys {
            split_bulk(&mut rest)?;
        }
        Some(Undo::delete((script, 1), &[first, rest].concat()).kept())
    }

    /// The whole command, in the form that a server executes even if it has never seen the script.
    pub(crate) fn whole(self) -> Vec<u8> {
        let Form { script: UndoScript { text, .. }, keys, .. } = self.form;
        let values = match self.form.means {
            Means::Nothing => return Vec::new(),
            Means::Delete => 1,
            Means::PutBack => 2,
        };
        let mut command = Vec::with_capacity(text.len() + self.bytes.len() + 64);
        encode::array_header(&mut command, HEAD_ARGUMENTS + usize::from(keys) + values);
        encode::bulk(&mut command, b"EVAL");
        encode::bulk(&mut command, text.as_bytes());
        encode::bulk(&mut command, keys.to_string().as_bytes());
        command.extend_from_slice(self.bytes);
        command
    }

    pub(super) fn kept(self) -> Kept {
        Kept { bytes: self.bytes.into(), form: self.form }
    }
}

/// Takes an encoded argument from the front of others.
fn split_bulk<'a>(encoded: &mut &'a [u8]) -> Option<&'a [u8]> {
    let line = encoded.iter().position(|byte| *byte == b'\r')?;
    let len: usize = std::str::from_utf8(encoded.get(1..line)?).ok()?.parse().ok()?;
    let (bulk, rest) = encoded.split_at_checked(line + len + 2 * b"\r\n".len())?;
    *encoded = rest;
    Some(bulk)
}

/// An undo that outlives its command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Kept {
    bytes: Arc<[u8]>,
    form: Form,
}

impl Kept {
    pub(super) fn lent(&self) -> Undo<'_> {
        Undo { bytes: &self.bytes, form: self.form }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: (&UndoScript, u16) =
        (&UndoScript { text: "a script", compares_and_deletes: true, for_first_key: None }, 1);

    fn encoded(arguments: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        arguments.iter().for_each(|argument| encode::bulk(&mut bytes, argument));
        bytes
    }

    #[test]
    fn a_whole_undo_is_a_command_that_counts_its_keys_and_its_arguments() {
        let words: [&[u8]; 7] = [b"EVAL", b"a script", b"2", b"k", b"l", b"new", b"old"];
        let script = (SCRIPT.0, 2);
        let (pair, all) = (encoded(&words[3..6]), encoded(&words[3..]));
        let undos = [Undo::delete(script, &pair), Undo::put_back(script, &all, pair.len())];
        for (undo, count) in undos.into_iter().zip([6, 7]) {
            let mut expected = Vec::new();
            encode::command(&mut expected, &words[..count]);
            assert_eq!(undo.whole(), expected);
            assert_eq!(undo.pair(), pair);
            assert_eq!(undo.kept().lent(), undo);
        }
        let nothing = Undo::nothing(&pair);
        assert!(nothing.whole().is_empty());
        assert_eq!(nothing.pair(), pair);
    }

    #[test]
    fn only_the_deletion_of_one_key_has_a_native_form() {
        const OTHER: UndoScript =
            UndoScript { text: "another", compares_and_deletes: false, for_first_key: None };
        assert!(Undo::delete(SCRIPT, b"k:v;").has_native_form());
        for other in [
            Undo::put_back(SCRIPT, b"k:v;old;", 4),
            Undo::delete((SCRIPT.0, 2), b"k:l:v;"),
            Undo::delete((&OTHER, 1), b"k:v;"),
            Undo::nothing(b"k:v;"),
        ] {
            assert!(!other.has_native_form(), "{other:?}");
        }
    }

    #[test]
    fn of_several_keys_the_first_can_be_deleted_alone() {
        const BOTH: UndoScript =
            UndoScript { text: "both", compares_and_deletes: false, for_first_key: Some(SCRIPT.0) };
        let pair = encoded(&[b"$3\r\nkey", b"$queue", b"", b"the value"]);
        let alone = encoded(&[b"$3\r\nkey", b"the value"]);
        let undo = Undo::delete((&BOTH, 3), &pair);
        assert_eq!(undo.for_first_key(), Some(Undo::delete(SCRIPT, &alone).kept()));
        for other in [
            Undo::delete(SCRIPT, &alone),
            Undo::put_back((&BOTH, 3), &pair, pair.len() - 1),
            Undo::nothing(&pair),
        ] {
            assert_eq!(other.for_first_key(), None, "{other:?}");
        }
    }

    #[test]
    fn a_deletion_is_meant_where_its_pair_was_to_be_put_back() {
        let (delete, back) =
            (Undo::delete(SCRIPT, b"k:v;"), Undo::put_back(SCRIPT, b"k:v;old;", 4));
        assert!(delete.supersedes(back) && !back.supersedes(delete));
        assert!(!delete.supersedes(delete) && !back.supersedes(back));
        assert!(!Undo::nothing(b"k:v;").supersedes(back));
        // A pair that another one begins with, and a former value that begins as a pair.
        for other in
            [Undo::put_back(SCRIPT, b"k:v;old;", 6), Undo::put_back(SCRIPT, b"k:v;old;", 2)]
        {
            assert!(!delete.supersedes(other));
        }
    }
}
