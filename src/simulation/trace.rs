//! What has happened, line by line, and a hash of it.

use std::fmt::{self, Write};

/// The trace of one run.
#[derive(Debug)]
pub(super) struct Trace {
    hash: u64,
    /// Whether each line is printed at once, to be read: a run may not come to its end.
    printed: bool,
    line: String,
    lines: u64,
}

impl Trace {
    pub(super) fn new(printed: bool) -> Self {
        Self { hash: 0xcbf2_9ce4_8422_2325, printed, line: String::new(), lines: 0 }
    }

    /// Adds a line.
    pub(super) fn tell(&mut self, at: u64, what: fmt::Arguments<'_>) {
        self.line.clear();
        // A string takes everything.
        let _ = writeln!(self.line, "{:>6}.{:03} {what}", at / 1_000, at % 1_000);
        // FNV-1a
        for byte in self.line.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.lines += 1;
        if self.printed {
            print!("{}", self.line);
        }
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    pub(super) fn lines(&self) -> u64 {
        self.lines
    }
}
