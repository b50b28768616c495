//! The demo's output: a line for each step, with its time in a column.
//!
//! Each write is awaited, so that a blocked stdout delays neither locks nor signals.

use std::fmt::Display;
use std::time::Instant;

use anstyle::{AnsiColor, Style};

use crate::exit::Failure;
use crate::words::micros;
use crate::{clock, output};

const WHAT_WIDTH: usize = 27;
const TIME_WIDTH: usize = 12;

const STRONG: Style = Style::new().bold();
const TIME: Style = AnsiColor::Cyan.on_default();
const DONE: Style = AnsiColor::Green.on_default();

/// A step that has begun.
#[derive(Debug)]
pub(crate) struct Step {
    what: String,
    began: Instant,
}

impl Step {
    pub(crate) fn begin(what: impl Into<String>) -> Self {
        Self { what: what.into(), began: clock::now() }
    }
}

/// Shows a heading between blank lines.
pub(crate) async fn heading(text: impl Display) -> Result<(), Failure> {
    output::print(format!("\n{STRONG}{text}{STRONG:#}\n\n")).await
}

/// Shows that a step has ended: its time, and what there is to know about it.
pub(crate) async fn done(step: &Step, detail: impl Display) -> Result<(), Failure> {
    let took = micros(clock::now().saturating_duration_since(step.began));
    let (mark, what) = (format_args!("{DONE}✓{DONE:#}"), &step.what);
    let took = format!("{TIME}{took:>TIME_WIDTH$}{TIME:#}");
    output::print(format!("{mark} {what:WHAT_WIDTH$}{took}  {detail}\n")).await
}

/// Shows another line about the step before.
pub(crate) async fn more(detail: impl Display) -> Result<(), Failure> {
    let blank = WHAT_WIDTH + TIME_WIDTH + 4;
    output::print(format!("{:blank$}{detail}\n", "")).await
}
