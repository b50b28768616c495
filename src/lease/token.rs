//! What a holder hands over: the value of its key, and whether its guard has let go of it.

use std::fmt;

use super::command;

/// How the text of a token begins whose lock was left behind. No value of a lock begins so: it
/// begins with 40 hexadecimal digits.
const LEFT: &str = "left:";

/// What it takes to release a lock, or to [`adopt`](crate::Locker::adopt) it. Its text travels
/// between processes.
///
/// The text is the value that the nodes hold. It has `left:` before it when the guard has let go of
/// the lock, by [`forget`](crate::LockGuard::forget) or
/// [`shutdown_leaving`](crate::Locker::shutdown_leaving): such a lock is adopted at once. The text
/// is believed; with a `left:` of your own making before the token of a guard that lives, two
/// guards of one lock are valid at once.
///
/// Anyone who has it can release the lock, so it does not show in `Debug`.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct OwnerToken {
    text: String,
    is_left: bool,
}

impl From<String> for OwnerToken {
    /// A token that was handed over as text, from [`OwnerToken::as_str`].
    fn from(text: String) -> Self {
        let is_ours = |value: &str| command::owner_of(value.as_bytes()).is_some();
        let is_left = text.strip_prefix(LEFT).is_some_and(is_ours);
        Self { text, is_left }
    }
}

impl OwnerToken {
    pub(crate) fn held(value: impl fmt::Display) -> Self {
        Self { text: value.to_string(), is_left: false }
    }

    pub(crate) fn left(value: impl fmt::Display) -> Self {
        Self { text: format!("{LEFT}{value}"), is_left: true }
    }

    /// Its text, to be handed over.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The value that the nodes hold under the lock's key.
    #[must_use]
    pub fn value(&self) -> &str {
        if self.is_left { &self.text[LEFT.len()..] } else { &self.text }
    }

    /// Whether the guard has let go of the lock and left it behind.
    #[must_use]
    pub fn is_left_behind(&self) -> bool {
        self.is_left
    }
}

impl fmt::Debug for OwnerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnerToken").field("is_left_behind", &self.is_left).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_does_not_show_in_debug() {
        let token = OwnerToken::left("canary");
        assert_eq!(format!("{token:?}"), "OwnerToken { is_left_behind: true, .. }");
    }

    #[test]
    fn a_token_survives_as_text_and_only_a_value_of_a_lock_can_be_left_behind() {
        let value = "ab".repeat(20) + "@me@h:1";
        for token in [OwnerToken::held(&value), OwnerToken::left(&value)] {
            let handed = OwnerToken::from(token.as_str().to_owned());
            assert_eq!(handed, token);
            assert_eq!(handed.value(), value);
            assert_eq!(handed.is_left_behind(), token.as_str().starts_with("left:"));
        }
        for foreign in ["left:", "left:abc", "mine", ""] {
            let token = OwnerToken::from(foreign.to_owned());
            assert_eq!((token.value(), token.is_left_behind()), (foreign, false));
        }
    }
}
