//! The bytes that undo a command: encoded arguments, of which a link needs to know little.
//!
//! An *undo* is the tail of a command whose head is common to all (the script that undoes): a key,
//! the value that was set, and for a lock that was being handed over the former value, which is put
//! back. Its *pair* is the key and the value: no two attempts have the same value, so the pair says
//! which undo it is.

use quorlock_resp::encode;

/// The whole command for an undo: `head` is the script's call up to the key, without the header
/// that counts the arguments.
pub(super) fn whole(head: &[u8], undo: &[u8]) -> Vec<u8> {
    let mut command = Vec::with_capacity(head.len() + undo.len() + b"*9\r\n".len());
    encode::array_header(&mut command, arguments(head).count() + arguments(undo).count());
    command.extend_from_slice(head);
    command.extend_from_slice(undo);
    command
}

/// The key and the value of an undo, as they stand in it.
pub(super) fn pair(undo: &[u8]) -> &[u8] {
    let end = arguments(undo).nth(1).map_or(undo.len(), |(_, end)| end);
    &undo[..end]
}

/// Each two arguments of an encoded command that are neighbours, as they stand in it: a key and its
/// value stand so in an undo, and in the command that set it.
pub(super) fn neighbours(command: &[u8]) -> impl Iterator<Item = &[u8]> {
    let first = end_of_line(command, 0).unwrap_or(command.len());
    let mut begin = first;
    arguments(&command[first..]).skip(1).map(move |(middle, end)| {
        let pair = &command[begin..first + end];
        begin = first + middle;
        pair
    })
}

/// Where each argument of some begins and ends, with its length before it.
fn arguments(encoded: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    let mut begin = 0;
    std::iter::from_fn(move || {
        let end = end_of_argument(encoded, begin)?;
        Some((std::mem::replace(&mut begin, end), end))
    })
}

/// Where the argument that begins at `begin` ends.
fn end_of_argument(encoded: &[u8], begin: usize) -> Option<usize> {
    let text = end_of_line(encoded, begin)?;
    let length = encoded.get(begin..text)?.strip_prefix(b"$")?.strip_suffix(b"\r\n")?;
    let length: usize = std::str::from_utf8(length).ok()?.parse().ok()?;
    text.checked_add(length)?.checked_add(b"\r\n".len()).filter(|end| *end <= encoded.len())
}

fn end_of_line(encoded: &[u8], begin: usize) -> Option<usize> {
    let line = encoded.get(begin..)?.iter().position(|byte| *byte == b'\n')?;
    Some(begin + line + 1)
}

#[cfg(test)]
mod tests {
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

    fn tail(arguments: &[&[u8]]) -> Vec<u8> {
        let mut tail = Vec::new();
        arguments.iter().for_each(|argument| encode::bulk(&mut tail, argument));
        tail
    }

    #[test]
    fn a_whole_undo_counts_its_arguments_and_its_pair_is_the_key_and_the_value() {
        let words: [&[u8]; 6] = [b"EVAL", b"a script", b"1", b"k", b"new", b"old"];
        let (head, undo) = words.split_at(3);
        for count in [2, 3] {
            let mut expected = Vec::new();
            encode::command(&mut expected, &words[..3 + count]);
            assert_eq!(whole(&tail(head), &tail(&undo[..count])), expected);
        }
        assert_eq!(pair(&tail(&[b"k", b"new", b"old"])), tail(&[b"k", b"new"]));
        assert_eq!(pair(&tail(&[b"k", b"new"])), tail(&[b"k", b"new"]));
    }
}
