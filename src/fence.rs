//! The number that rises with every holder of a lock: a value, and nothing of how it is got.

use std::fmt;

/// A fencing token: a number that rises with every holder of a lock. See
/// [`LockGuard::fence`](crate::LockGuard::fence), and [`guarded`](crate::guarded) for what to do
/// with it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Fence(u64);

impl Fence {
    /// The greatest one: all of them are below 2⁵³, so that they stay exact in JSON, in JavaScript
    /// and in Lua.
    pub const MAX: Self = Self((1 << 53) - 1);

    /// The number. `None` for one that is no fence.
    #[must_use]
    pub fn from_number(number: u64) -> Option<Self> {
        (number <= Self::MAX.0).then_some(Self(number))
    }

    /// As a number, to be stored beside what is written.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// For a SQL `bigint`: never below zero, and below 2⁵³.
impl From<Fence> for i64 {
    fn from(fence: Fence) -> Self {
        // Below 2⁵³.
        fence.0 as Self
    }
}

/// As a number.
#[cfg(feature = "serde")]
impl serde::Serialize for Fence {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

/// A number below 2⁵³.
#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Fence {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u64::deserialize(deserializer)?;
        Self::from_number(number)
            .ok_or_else(|| serde::de::Error::custom("a fence is a whole number below 2^53"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_fence_is_above_the_highest() {
        assert_eq!(Fence::from_number(Fence::MAX.number()), Some(Fence::MAX));
        assert_eq!(Fence::from_number(Fence::MAX.number() + 1), None);
        assert_eq!(Fence(42).to_string(), "42");
        assert_eq!(i64::from(Fence::MAX), 9_007_199_254_740_991);
    }

    #[cfg(feature = "serde")]
    #[test]
    fn a_fence_is_a_number_to_serde() {
        assert_eq!(serde_json::to_string(&Fence::MAX).unwrap(), "9007199254740991");
        assert_eq!(serde_json::from_str::<Fence>("42").unwrap().number(), 42);
        for none in ["9007199254740992", "-1", "1.5", "\"42\""] {
            assert!(serde_json::from_str::<Fence>(none).is_err(), "{none}");
        }
    }
}
