//! `quorlock demo`: still to be written.

use crate::exit::{self, Cause, Failure};

pub(crate) fn run() -> u8 {
    exit::tell(&Failure::new(Cause::Unavailable, "the demo is still to be written"))
}
