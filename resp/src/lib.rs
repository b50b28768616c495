//! RESP2 and RESP3, bytes to [`Frame`]s and back.
//!
//! [`Decoder`] reads, [`encode`] writes. Neither does any I/O.

#![forbid(unsafe_code)]
#![deny(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice
)]

mod decode;
pub mod encode;
mod error;
mod frame;
mod limits;
mod scan;

pub use decode::{Decoder, Short};
pub use error::{DecodeError, ErrorKind, UnexpectedFrame};
pub use frame::{Attributed, Frame, FrameKind, Items, PairIter, Pairs};
pub use limits::Limits;
