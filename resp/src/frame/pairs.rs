//! The entries of a map: [`Pairs`].

use core::fmt;
use core::slice;

use super::value::{Frame, Items, Pairs};

impl fmt::Debug for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

impl Pairs {
    /// Entries from keys and values in turn. A last key without a value is dropped.
    pub(crate) fn from_flat(mut frames: Vec<Frame>) -> Self {
        if frames.len() & 1 == 1 {
            frames.pop();
        }
        Self(Items::from(frames))
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len().wrapping_shr(1)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each entry, as key and value.
    #[must_use]
    pub fn iter(&self) -> PairIter<'_> {
        PairIter(self.0.iter())
    }

    /// The value of the first entry whose key is a string of these bytes.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<&Frame> {
        self.iter().find(|(found, _)| found.as_bytes() == Ok(key)).map(|(_, value)| value)
    }

    /// Keys and values in turn.
    #[must_use]
    pub fn as_frames(&self) -> &[Frame] {
        &self.0
    }

    pub(super) fn frames_mut(&mut self) -> slice::IterMut<'_, Frame> {
        self.0.iter_mut()
    }

    /// Keys and values in turn, taken out.
    pub(super) fn take(&mut self) -> Vec<Frame> {
        self.0.take()
    }
}

impl FromIterator<(Frame, Frame)> for Pairs {
    fn from_iter<I: IntoIterator<Item = (Frame, Frame)>>(entries: I) -> Self {
        Self(entries.into_iter().flat_map(|(key, value)| [key, value]).collect())
    }
}

impl<'a> IntoIterator for &'a Pairs {
    type Item = (&'a Frame, &'a Frame);
    type IntoIter = PairIter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl IntoIterator for Pairs {
    type Item = (Frame, Frame);
    type IntoIter = IntoPairs;

    fn into_iter(self) -> IntoPairs {
        IntoPairs(self.0.into_iter())
    }
}

/// Iterator over the entries of [`Pairs`], to keep.
#[derive(Clone, Debug)]
pub struct IntoPairs(std::vec::IntoIter<Frame>);

impl Iterator for IntoPairs {
    type Item = (Frame, Frame);

    fn next(&mut self) -> Option<Self::Item> {
        Some((self.0.next()?, self.0.next()?))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let entries = self.0.len().wrapping_shr(1);
        (entries, Some(entries))
    }
}

impl ExactSizeIterator for IntoPairs {}

/// Iterator over the entries of [`Pairs`].
#[derive(Clone, Debug)]
pub struct PairIter<'a>(slice::Iter<'a, Frame>);

impl<'a> Iterator for PairIter<'a> {
    type Item = (&'a Frame, &'a Frame);

    fn next(&mut self) -> Option<Self::Item> {
        Some((self.0.next()?, self.0.next()?))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let entries = self.0.len().wrapping_shr(1);
        (entries, Some(entries))
    }
}

impl ExactSizeIterator for PairIter<'_> {}
