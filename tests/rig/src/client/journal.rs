//! The lines that a client tells the supervisor, written one whole line at a time.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::line::Line;

/// Writes the lines of all tasks of a client, and numbers their holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal(Arc<AtomicU64>);

impl Journal {
    /// The number of another hold.
    pub(crate) fn number(&self) -> u64 {
        // Ordering: a counter and nothing else; no memory is published through it.
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn write(&self, line: &Line) {
        let text = format!("{line}\n");
        let mut out = std::io::stdout().lock();
        if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
            // The reader of the history is gone: what is not written down must not be done.
            std::process::exit(0);
        }
    }

    pub(crate) fn count(&self, what: &str) {
        self.write(&Line::Count(what.into()));
    }
}
