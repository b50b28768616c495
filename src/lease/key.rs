//! A lock's key as it stands on the wire: the prefix and the caller's bytes, verbatim.
//!
//! [`Key::new`] is the only way to make one, and everything that names a lock takes one: what it
//! refuses is refused in every way in.

use super::durability::is_nodes_own;
use crate::error::Error;

/// Keys up to this length, prefix included, are held without an allocation.
const INLINE: usize = 128;

/// The longest key, prefix included. Servers take more; a lock's name of this size is a mistake,
/// and it would travel to every node twice for each acquisition.
const LENGTH_MAX: usize = 4_096;

/// A checked key, and the class that its lock is counted under.
#[derive(Clone)]
pub(crate) struct Key {
    bytes: KeyBytes,
    pub(crate) class: &'static str,
}

/// The lengths are as small as they may be: a key is moved often (see `claim`).
#[derive(Clone)]
enum KeyBytes {
    Inline { prefix_len: u8, len: u8, bytes: [u8; INLINE] },
    Heap { prefix_len: u16, bytes: Box<[u8]> },
}

const _: () = assert!(INLINE <= u8::MAX as usize && LENGTH_MAX <= u16::MAX as usize);

impl Key {
    pub(crate) fn new(prefix: &[u8], key: &[u8]) -> Result<Self, Error> {
        if key.is_empty() {
            return Err(Error::misuse("the key is empty; name what is locked"));
        }
        let len = prefix.len().saturating_add(key.len());
        if len > LENGTH_MAX {
            return Err(Error::misuse(format!(
                "the key has {len} bytes with its prefix; at most {LENGTH_MAX} are allowed (hash \
                 what it names)"
            )));
        }
        let bytes = if len <= INLINE {
            let mut bytes = [0; INLINE];
            bytes[..prefix.len()].copy_from_slice(prefix);
            bytes[prefix.len()..len].copy_from_slice(key);
            KeyBytes::Inline { prefix_len: prefix.len() as u8, len: len as u8, bytes }
        } else {
            let bytes = [prefix, key].concat().into_boxed_slice();
            KeyBytes::Heap { prefix_len: prefix.len() as u16, bytes }
        };
        let key = Self { bytes, class: "" };
        match is_nodes_own(key.full()) {
            true => Err(Error::misuse(
                "the key ends in `quorlock:epoch` or `quorlock:quarantine`, which are the nodes' \
                 own; choose another name",
            )),
            false => Ok(key),
        }
    }

    /// As the servers know it.
    pub(crate) fn full(&self) -> &[u8] {
        match &self.bytes {
            KeyBytes::Inline { len, bytes, .. } => &bytes[..usize::from(*len)],
            KeyBytes::Heap { bytes, .. } => bytes,
        }
    }

    /// As the caller gave it.
    pub(crate) fn given(&self) -> &[u8] {
        let prefix_len = match &self.bytes {
            KeyBytes::Inline { prefix_len, .. } => usize::from(*prefix_len),
            KeyBytes::Heap { prefix_len, .. } => usize::from(*prefix_len),
        };
        &self.full()[prefix_len..]
    }

    /// Which of a node's links carries it: FNV-1a, the same on all nodes and for all uses.
    pub(crate) fn affinity(&self) -> u64 {
        self.full().iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_goes_before_and_is_not_the_callers() {
        for length in [1, 64, INLINE - 4, INLINE - 3, 1_000] {
            let given = vec![b'k'; length];
            let key = Key::new(b"pay:", &given).unwrap();
            assert_eq!(key.given(), given);
            assert_eq!(key.full(), [b"pay:", &given[..]].concat());
        }
        assert_eq!(Key::new(b"", "\0🐉\r\n".as_bytes()).unwrap().full(), "\0🐉\r\n".as_bytes());
    }

    #[test]
    fn the_nodes_own_keys_are_refused_behind_any_prefix() {
        let own = [
            ("", "quorlock:epoch"),
            ("", "quorlock:quarantine"),
            ("p:", "quorlock:epoch"),
            ("p:", "quorlock:quarantine"),
            // Another locker's, whose prefix is `p:`.
            ("", "p:quorlock:epoch"),
            ("p", ":quorlock:quarantine"),
            ("p:quorlock", ":epoch"),
            ("p:quorlock:quarantin", "e"),
        ];
        for (prefix, key) in own {
            let error = Key::new(prefix.as_bytes(), key.as_bytes()).err().unwrap();
            assert!(error.is_misuse(), "{prefix} {key}: {error}");
            assert!(error.to_string().contains("nodes' own"), "{error}");
        }
        let long = [&[b'p'; 200][..], b"quorlock:epoch"].concat();
        assert!(Key::new(&long[..200], &long[200..]).is_err());
        for key in ["epoch", "quarantine", "quorlock:epoch:1", "quorlock:", "Quorlock:epoch"] {
            assert!(Key::new(b"p:", key.as_bytes()).is_ok(), "{key}");
        }
    }

    #[test]
    fn no_key_and_too_long_a_key_are_refused() {
        assert!(Key::new(b"pay:", b"").err().unwrap().is_misuse());
        let error = Key::new(b"", &vec![b'k'; 1 << 20]).err().unwrap();
        assert!(error.to_string().contains("1048576 bytes"), "{error}");
    }
}
