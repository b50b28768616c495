//! The values inside an aggregate: [`Items`], and how what stands inside a frame is dropped.
//!
//! It exists, rather than a plain vector, for one reason: a vector of frames is dropped by
//! recursion, and a frame can be nested deeper than a stack. This takes itself apart with a list
//! of its own instead. (A destructor on `Frame` would do as well, but then no pattern could move a
//! value out of a frame.)

use core::fmt;
use core::mem;
use core::ops::{Deref, DerefMut};
use core::slice;

use super::value::{Frame, Items};

impl fmt::Debug for Items {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}

impl Items {
    /// The values as a vector, without a copy.
    #[must_use]
    pub fn into_vec(mut self) -> Vec<Frame> {
        self.take()
    }

    /// What is inside, taken out.
    pub(super) fn take(&mut self) -> Vec<Frame> {
        mem::take(&mut self.0)
    }
}

impl Drop for Items {
    fn drop(&mut self) {
        // Values, and aggregates of values only, cost a constant depth of stack. This covers
        // nearly every reply and keeps the list, which allocates, out of their way.
        if self.0.iter().any(is_tall) {
            take_apart(self.take());
        }
    }
}

/// Whether an aggregate stands inside an aggregate inside `frame`.
fn is_tall(frame: &Frame) -> bool {
    match frame {
        Frame::Array(items) | Frame::Set(items) | Frame::Push(items) => items.iter().any(has_items),
        Frame::Map(pairs) => pairs.as_frames().iter().any(has_items),
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
                frames.append(&mut items.take());
            }
            Frame::Map(mut pairs) => frames.append(&mut pairs.take()),
            Frame::Attributed(attributed) => {
                let (mut attributes, value) = attributed.into_parts();
                frames.append(&mut attributes.take());
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
