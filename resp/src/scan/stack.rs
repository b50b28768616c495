//! The stack of open levels: what the aggregates around the next element still wait for.

use super::Stop;
use super::token::Shape;
use crate::error::ErrorKind;

/// An aggregate, or a streamed string, that is not complete.
#[derive(Clone, Copy, Debug)]
pub(super) enum Level {
    /// So many elements are missing; never none.
    Counted { shape: Shape, missing: u32 },
    /// Elements until an end marker. `odd` is set while so many came that a key has no value.
    Stream { shape: Shape, odd: bool },
    /// Chunks until an empty one.
    Text,
    /// The attributes are complete; the value they belong to is not.
    Owner,
}

/// The open levels, innermost last.
#[derive(Clone, Debug, Default)]
pub(super) struct Levels {
    open: Vec<Level>,
}

impl Levels {
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.open.clear();
    }

    pub(super) fn innermost(&self) -> Option<Level> {
        self.open.last().copied()
    }

    /// Whether a push may stand here: at the top, or behind an attribute that stands there.
    pub(super) fn is_top(&self) -> bool {
        matches!(self.open.as_slice(), [] | [Level::Owner])
    }

    /// Opens a level whose head is at position `at`.
    pub(super) fn open(&mut self, level: Level, depth: usize, at: usize) -> Result<(), Stop> {
        if self.open.len() >= depth {
            return Err(Stop::fault(ErrorKind::Depth, at));
        }
        self.open.push(level);
        Ok(())
    }

    /// Opens attributes. Behind other attributes they join them, so that a row of attributes,
    /// however long, is one level.
    pub(super) fn open_attribute(
        &mut self,
        missing: u32,
        depth: usize,
        at: usize,
    ) -> Result<(), Stop> {
        if let Some(Level::Owner) = self.open.last() {
            self.open.pop();
        }
        let level = match missing {
            0 => Level::Owner,
            missing => Level::Counted { shape: Shape::Attribute, missing },
        };
        self.open(level, depth, at)
    }

    /// Closes the innermost level, for an end marker.
    pub(super) fn close(&mut self) {
        self.open.pop();
    }

    /// Counts a complete element, and whatever became complete by it. Says whether that was the
    /// whole frame.
    #[inline]
    pub(super) fn complete(&mut self) -> bool {
        while let Some(level) = self.open.last_mut() {
            match level {
                Level::Counted { missing, .. } if *missing > 1 => {
                    *missing = missing.saturating_sub(1);
                    return false;
                }
                Level::Counted { shape: Shape::Attribute, .. } => {
                    *level = Level::Owner;
                    return false;
                }
                Level::Stream { odd, .. } => {
                    *odd = !*odd;
                    return false;
                }
                Level::Text => return false,
                Level::Counted { .. } | Level::Owner => {
                    self.open.pop();
                }
            }
        }
        true
    }
}
