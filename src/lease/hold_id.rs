//! Which hold is meant.

/// A hold, by its place and the generation of what the place holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(test, derive(Default))]
pub(super) struct HoldId {
    pub(super) index: u32,
    pub(super) generation: u32,
}
