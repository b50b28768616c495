//! The progress bar.

use indicatif::{ProgressBar, ProgressStyle};

use super::figures::{Figures, Metric};
use crate::output;
use crate::words::counted;

/// A bar for each number of callers. It is drawn between rounds only, when no lock
/// is held, and costs a round nothing.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Draws nothing if stderr is no terminal, and no colours.
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, output::progress());
        match ProgressStyle::with_template("{prefix:>12} [{bar:24}] {pos}/{len} {msg}") {
            Ok(style) => Self(bar.with_style(style.progress_chars("=> "))),
            // If the template is invalid, the default bar is used.
            Err(_) => Self(bar),
        }
    }

    pub(crate) fn begin(&self, callers: usize, rounds: u32) {
        self.0.reset();
        self.0.set_length(rounds.into());
        self.0.set_prefix(counted(callers, "caller"));
        self.0.set_message("warming up");
        self.0.tick();
    }

    /// Another pair of rounds is done.
    pub(crate) fn step(&self, ours: &Figures) {
        let (p50, cycles) = (Metric::P50.show(ours), Metric::Cycles.show(ours));
        self.0.set_message(format!("acquire p50 {p50}, {cycles} cycles/s"));
        self.0.inc(1);
        self.0.tick();
    }

    /// Removes the bar from the terminal.
    pub(crate) fn end(&self) {
        self.0.disable_steady_tick();
        self.0.finish_and_clear();
    }
}
