//! What a node has of a lock that readers may have: the word of theirs under its key, and each of
//! them beside it, until its own end by the node's clock.

use std::time::Duration;

/// What a lock's key holds while readers have it, and how the key of these ends.
pub(super) const READERS: &[u8] = b"quorlock:readers";

/// The key of a lock's readers, beside that of the lock.
pub(super) fn readers_of(key: &str) -> String {
    format!("{{{key}}}:quorlock:readers")
}

/// The lock that this is the key of the readers of.
pub(super) fn lock_of(readers: &[u8]) -> Option<&[u8]> {
    readers.strip_suffix(b"}:quorlock:readers")?.strip_prefix(b"{")
}

/// Those of a lock's readers that have it at this time of the node.
pub(super) fn living(
    readers: &[(bytes::Bytes, f64)],
    now: Duration,
) -> impl Iterator<Item = &bytes::Bytes> {
    let now = now.as_millis() as f64;
    readers.iter().filter(move |(_, end)| *end >= now).map(|(value, _)| value)
}

/// The value of one that stands in a queue. (A reader's has an `r` before it.)
pub(super) fn value_in_queue(member: &str) -> String {
    member.strip_prefix('r').unwrap_or(member).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_has_its_lock_until_its_own_end() {
        let readers = [("a", 5.0), ("b", 7.0)].map(|(value, end)| (value.into(), end));
        let living = |now| -> Vec<&[u8]> {
            living(&readers, Duration::from_millis(now)).map(|value| &value[..]).collect()
        };
        assert_eq!((living(5), living(6)), (vec![&b"a"[..], b"b"], vec![&b"b"[..]]));
        assert!(living(8).is_empty());
    }

    #[test]
    fn names_are_those_of_the_library() {
        let readers = readers_of("k0");
        assert_eq!(lock_of(readers.as_bytes()), Some(&b"k0"[..]));
        assert_eq!(lock_of(b"{k0}:quorlock:queue"), None);
        assert_eq!(["rab@m0", "ab@m0"].map(value_in_queue), ["ab@m0", "ab@m0"]);
    }
}
