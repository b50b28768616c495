//! What stands inside a frame: [`Items`], [`Pairs`], [`Attributed`].
//!
//! They exist, rather than plain vectors, for one reason: a vector of frames is dropped by
//! recursion, and a frame can be nested deeper than a stack. Each of them takes itself apart with
//! a list of its own instead. (A destructor on `Frame` would do as well, but then no pattern
//! could move a value out of a frame.)

use core::fmt;
use core::mem;
use core::ops::{Deref, DerefMut};
use core::slice;

use super::Frame;

/// The values of an array, set or push. Derefs to a slice of frames.
#[derive(Clone, Default, PartialEq)]
pub struct Items(Vec<Frame>);

impl fmt::Debug for Items {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}

impl Items {
    /// The values as a vector, without a copy.
    #[must_use]
    pub fn into_vec(mut self) -> Vec<Frame> {
        mem::take(&mut self.0)
    }
}

impl Drop for Items {
    fn drop(&mut self) {
        // Values, and aggregates of values only, cost a constant depth of stack. This covers
        // nearly every reply and keeps the list, which allocates, out of their way.
        if self.0.iter().any(is_tall) {
            take_apart(mem::take(&mut self.0));
        }
    }
}

/// Whether an aggregate stands inside an aggregate inside `frame`.
fn is_tall(frame: &Frame) -> bool {
    match frame {
        Frame::Array(items) | Frame::Set(items) | Frame::Push(items) => items.iter().any(has_items),
        Frame::Map(pairs) => pairs.0.iter().any(has_items),
        Frame::Attributed(_) => true,
        _ => false,
    }
}

fn has_items(frame: &Frame) -> bool {
    match frame {
        Frame::Array(items) | Frame::Set(items) | Frame::Push(items) => !items.is_empty(),
        Frame::Map(pairs) => !pairs.is_empty(),
        Frame::Attributed(_) => true,
        _ => false,
    }
}

/// Drops `frames` and everything below with a list instead of the stack.
fn take_apart(mut frames: Vec<Frame>) {
    while let Some(frame) = frames.pop() {
        if !is_tall(&frame) {
            continue;
        }
        match frame {
            Frame::Array(mut items) | Frame::Set(mut items) | Frame::Push(mut items) => {
                frames.append(&mut items.0);
            }
            Frame::Map(mut pairs) => frames.append(&mut pairs.0.0),
            Frame::Attributed(attributed) => {
                let (mut attributes, value) = attributed.into_parts();
                frames.append(&mut attributes.0.0);
                frames.push(value);
            }
            _ => {}
        }
    }
}

impl Deref for Items {
    type Target = [Frame];

    fn deref(&self) -> &[Frame] {
        &self.0
    }
}

impl DerefMut for Items {
    fn deref_mut(&mut self) -> &mut [Frame] {
        &mut self.0
    }
}

impl From<Vec<Frame>> for Items {
    fn from(frames: Vec<Frame>) -> Self {
        Self(frames)
    }
}

impl FromIterator<Frame> for Items {
    fn from_iter<I: IntoIterator<Item = Frame>>(frames: I) -> Self {
        Self(frames.into_iter().collect())
    }
}

impl IntoIterator for Items {
    type Item = Frame;
    type IntoIter = std::vec::IntoIter<Frame>;

    fn into_iter(self) -> Self::IntoIter {
        self.into_vec().into_iter()
    }
}

impl<'a> IntoIterator for &'a Items {
    type Item = &'a Frame;
    type IntoIter = slice::Iter<'a, Frame>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// The entries of a map, or of an attribute, in the order sent.
#[derive(Clone, Default, PartialEq)]
pub struct Pairs(
    /// Keys and values in turn, so always an even number of frames.
    Items,
);

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
        Self(Items(frames))
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

    pub(crate) fn frames_mut(&mut self) -> slice::IterMut<'_, Frame> {
        self.0.0.iter_mut()
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

/// A value, and what the server said about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Attributed {
    attributes: Pairs,
    /// Never [`Frame::Attributed`]: so a chain of attributes has no depth.
    value: Frame,
}

impl Attributed {
    /// Attaches `attributes` to `value`, in front of those it has already.
    #[must_use]
    pub fn new(mut attributes: Pairs, value: Frame) -> Self {
        match value {
            Frame::Attributed(inner) => {
                let (mut more, value) = inner.into_parts();
                attributes.0.0.append(&mut more.0.0);
                Self { attributes, value }
            }
            value => Self { attributes, value },
        }
    }

    /// The attributes.
    #[must_use]
    pub fn attributes(&self) -> &Pairs {
        &self.attributes
    }

    /// The value, which has no further attributes of its own.
    #[must_use]
    pub fn value(&self) -> &Frame {
        &self.value
    }

    /// Both parts.
    #[must_use]
    pub fn into_parts(self) -> (Pairs, Frame) {
        (self.attributes, self.value)
    }

    pub(crate) fn frames_mut(&mut self) -> impl Iterator<Item = &mut Frame> {
        self.attributes.frames_mut().chain(slice::from_mut(&mut self.value))
    }
}
