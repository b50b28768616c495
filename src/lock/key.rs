//! A lock's key as callers see it.

use std::fmt::{self, Write as _};
use std::hash::{Hash, Hasher};
use std::ops::Deref;

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
    fn a_key_is_shown_as_text_and_what_is_none_of_it_escaped() {
        let shown = |key: &[u8]| LockKey::new(key.to_vec()).to_string();
        assert_eq!(shown(b"order:42"), "order:42");
        assert_eq!(shown("caf\u{e9}\r\n\0".as_bytes()), "caf\u{e9}\\r\\n\\u{0}");
        assert_eq!(shown(b"a\xff\xfeb"), "a\\xff\\xfeb");
        let key = LockKey::new(b"k".to_vec());
        assert_eq!(format!("{key:?}"), "\"k\"");
        assert_eq!(AsRef::<[u8]>::as_ref(&key), b"k");
        assert!(key == "k" && key == b"k" && *key == *b"k" && key.clone().into_bytes() == b"k");
    }
}
