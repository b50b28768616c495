//! The lines that a client tells the supervisor, written one whole line at a time.
//!
//! A supervisor that is slow to read them keeps the thread that writes waiting, and with it the
//! tasks of its runtime. That is the rig's doing: a monitor of stalls may be told of it.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::stalls::StallMonitor;
use crate::line::Line;

/// Writes the lines of all tasks of a client, and numbers their holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal {
    holds: Arc<AtomicU64>,
    monitor: Option<StallMonitor>,
}

impl Journal {
    /// One that tells this monitor for how long a thread has waited to write.
    pub(super) fn watched_by(monitor: &StallMonitor) -> Self {
        Self { monitor: Some(monitor.clone()), ..Self::default() }
    }

    /// The number of another hold.
    pub(crate) fn number(&self) -> u64 {
        // Ordering: a counter and nothing else; no memory is published through it.
        self.holds.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn write(&self, line: &Line) {
        let (text, began) = (format!("{line}\n"), Instant::now());
        let mut out = std::io::stdout().lock();
        if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
            // The reader of the history is gone: what is not written down must not be done.
            std::process::exit(0);
        }
        if let Some(monitor) = &self.monitor {
            monitor.note_blocked(began, Instant::now());
        }
    }

    pub(crate) fn count(&self, what: &str) {
        self.write(&Line::Count(what.into()));
    }
}
