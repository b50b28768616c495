//! What a holder hands over: the value of its key, and whether its guard has let go of it.

use std::fmt;

use super::wire::owner_of;
use crate::error::Error;

/// What it takes to release a lock, or to [`adopt`](crate::Locker::adopt) it. Its text travels
/// between processes.
///
/// The text is the value that the nodes hold. That of a lock of several keys
/// ([`lock_all`](crate::Locker::lock_all)) has `all:` before it, that of a read lock
/// ([`read`](crate::Locker::read)) `read:`, and that of a slot
/// ([`slots`](crate::Locker::slots)) `slot:`: such are neither adopted nor released by their token.
/// It has `left:` before it when the guard has let go of the lock, by
/// [`forget`](crate::LockGuard::forget) or
/// [`shutdown_leaving`](crate::Locker::shutdown_leaving): such a lock is adopted at once. The text
/// is believed; with a `left:` of your own making before the token of a guard that lives, two
/// guards of one lock are valid at once.
///
/// Anyone who has it can release the lock, so it does not show in `Debug`.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct OwnerToken {
    text: String,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Kind {
    /// Its guard may live.
    #[default]
    Held,
    /// Its guard has let go of the lock.
    Left,
    /// Its lock has several keys, and is not adopted.
    Several,
    /// It is a read lock, which is not adopted.
    Read,
    /// It has a slot, or several, which are not adopted.
    Slot,
}

impl Kind {
    /// How its text begins, before the value: unlike any value, which begins with 40 hexadecimal
    /// digits.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Held => "",
            Self::Left => "left:",
            Self::Several => "all:",
            Self::Read => "read:",
            Self::Slot => "slot:",
        }
    }
}

impl From<String> for OwnerToken {
    /// A token that was handed over as text, from [`OwnerToken::as_str`].
    fn from(text: String) -> Self {
        let is_ours = |value: &str| owner_of(value.as_bytes()).is_some();
        let is = |kind: Kind| text.strip_prefix(kind.prefix()).is_some_and(is_ours);
        let kinds = [Kind::Left, Kind::Several, Kind::Read, Kind::Slot];
        let kind = kinds.into_iter().find(|kind| is(*kind));
        Self { text, kind: kind.unwrap_or_default() }
    }
}

impl OwnerToken {
    pub(crate) fn new(kind: Kind, value: impl fmt::Display) -> Self {
        Self { text: format!("{}{value}", kind.prefix()), kind }
    }

    /// Refuses what names no lock that can be adopted, or released by its token.
    pub(super) fn check_one_key(&self) -> Result<(), Error> {
        match self.kind {
            Kind::Several => Err(Error::misuse(
                "the token is that of a lock of several keys, which is not adopted and not \
                 released by its token; it ends with its TTL",
            )),
            Kind::Read => Err(Error::misuse(
                "the token is that of a read lock, which is not adopted and not released by its \
                 token; it ends with its TTL",
            )),
            Kind::Slot => Err(Error::misuse(
                "the token is that of a slot, which is not adopted and not released by its token; \
                 it ends with its TTL",
            )),
            Kind::Held | Kind::Left => Ok(()),
        }
    }

    /// Its text, to be handed over.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The value that the nodes hold under the lock's key.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.text[self.kind.prefix().len()..]
    }

    /// Whether the guard has let go of the lock and left it behind.
    #[must_use]
    pub fn is_left_behind(&self) -> bool {
        self.kind == Kind::Left
    }
}

impl fmt::Debug for OwnerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnerToken")
            .field("is_left_behind", &self.is_left_behind())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_does_not_show_in_debug() {
        let token = OwnerToken::new(Kind::Left, "canary");
        assert_eq!(format!("{token:?}"), "OwnerToken { is_left_behind: true, .. }");
    }

    #[test]
    fn a_token_survives_as_text_and_only_a_value_of_a_lock_can_be_left_behind() {
        let value = "ab".repeat(20) + "@me@h:1";
        for kind in [Kind::Held, Kind::Left, Kind::Several, Kind::Read, Kind::Slot] {
            let token = OwnerToken::new(kind, &value);
            let handed = OwnerToken::from(token.as_str().to_owned());
            assert_eq!(handed, token);
            assert_eq!(handed.value(), value);
            assert_eq!(handed.is_left_behind(), token.as_str().starts_with("left:"));
        }
        let foreign =
            ["left:", "left:abc", "all:", "all:abc", "read:", "read:abc", "slot:", "mine"];
        for foreign in foreign.into_iter().chain([""]) {
            let token = OwnerToken::from(foreign.to_owned());
            assert_eq!((token.value(), token.is_left_behind()), (foreign, false));
        }
    }
}
