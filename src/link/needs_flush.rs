//! Whether a link has queued bytes that must be flushed.
//!
//! The flag lets the driver skip the locks of links that have nothing to write. It is set under the
//! link's lock when bytes stay queued, and every flush clears it. Whatever sets it also wakes the
//! driver, or is the driver.
//!
//! The races:
//! - *A command is queued while the link is flushed.* A flush clears the flag before it takes the
//!   lock. What was queued before is written; what is queued behind it sets the flag again.
//! - *A caller flushes, and the socket is full.* The driver alone waits for room in the socket, and
//!   the caller may have cleared the flag that the driver was woken for. The caller sets it again.

use crate::sync::atomic::{AtomicBool, Ordering};

/// Whether something is queued that the driver should write.
#[derive(Debug)]
pub(super) struct NeedsFlush(AtomicBool);

impl NeedsFlush {
    pub(super) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Bytes are queued.
    pub(super) fn set(&self) {
        // Ordering: the link's lock orders the bytes, in each case with the flag as well.
        self.0.store(true, Ordering::Release);
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// What is queued by now will be written, or will never be.
    pub(super) fn clear(&self) {
        self.0.store(false, Ordering::Release);
    }
}
