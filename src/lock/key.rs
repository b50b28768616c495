//! A lock's key as it stands on the wire: the prefix and the caller's bytes, verbatim.
//!
//! [`Key::new`] is the only way to make one, and everything that names a lock takes one: what it
//! refuses is refused in every way in.

use std::fmt::{self, Write as _};
use std::hash::{Hash, Hasher};
use std::ops::Deref;

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

/// What a lock is called: the key as it was asked for, without the locker's prefix.
///
/// Any bytes, which it derefs to. Shown, those that are text stand as they are, and others escaped.
#[derive(Clone, Eq)]
pub struct LockKey(Box<[u8]>);

impl LockKey {
    pub(crate) fn new(key: Vec<u8>) -> Self {
        Self(key.into())
    }

    /// The bytes.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.0.into()
    }
}

impl Deref for LockKey {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for LockKey {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for LockKey {
    fn eq(&self, other: &T) -> bool {
        *self.0 == *other.as_ref()
    }
}

impl Hash for LockKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Display for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for char in chunk.valid().chars() {
                match char.is_control() {
                    true => write!(f, "{}", char.escape_default())?,
                    false => f.write_char(char)?,
                }
            }
            write!(f, "{}", chunk.invalid().escape_ascii())?;
        }
        Ok(())
    }
}

impl fmt::Debug for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
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
    fn a_key_is_shown_as_text_and_what_is_none_of_it_escaped() {
        let shown = |key: &[u8]| LockKey::new(key.to_vec()).to_string();
        assert_eq!(shown(b"order:42"), "order:42");
        assert_eq!(shown("caf\u{e9}\r\n\0".as_bytes()), "caf\u{e9}\\r\\n\\u{0}");
        assert_eq!(shown(b"a\xff\xfeb"), "a\\xff\\xfeb");
        let key = LockKey::new(b"k".to_vec());
        assert_eq!(format!("{key:?}"), "\"k\"");
        assert!(key == "k" && key == b"k" && *key == *b"k" && key.clone().into_bytes() == b"k");
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
