//! A value with attributes: [`Attributed`].

use core::slice;

use super::value::{Attributed, Frame, Pairs};

impl Attributed {
    /// Attaches `attributes` to `value`, in front of those it has already.
    #[must_use]
    pub fn new(mut attributes: Pairs, value: Frame) -> Self {
        match value {
            Frame::Attributed(inner) => {
                let (mut more, value) = inner.into_parts();
                let mut all = attributes.take();
                all.append(&mut more.take());
                Self { attributes: Pairs::from_flat(all), value }
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

    pub(super) fn frames_mut(&mut self) -> impl Iterator<Item = &mut Frame> {
        self.attributes.frames_mut().chain(slice::from_mut(&mut self.value))
    }
}
