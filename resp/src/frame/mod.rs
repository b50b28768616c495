//! Frames: [`Frame`] is one value of the protocol; [`Items`] and [`Pairs`] hold the values inside
//! one; [`Attributed`] is a value with what the server said about it.
//!
//! ```text
//! Frame ─┬─ scalar: text is Bytes, a reference-counted piece of the read buffer
//!        ├─ Array, Set, Push ── Items ── Frame …
//!        ├─ Map ── Pairs ── (Frame, Frame) …
//!        └─ Attributed ── Pairs + one Frame that is not itself Attributed
//! ```
//!
//! These four types contain each other, so they stand in one file, `value`. What each can do is in
//! a file of its own above that: `access` for a frame, `items`, `pairs` and `attributed`.

mod access;
mod attributed;
mod items;
mod kind;
mod pairs;
mod value;

pub use self::kind::FrameKind;
pub use self::pairs::{IntoPairs, PairIter};
pub use self::value::{Attributed, Frame, Items, Pairs};
