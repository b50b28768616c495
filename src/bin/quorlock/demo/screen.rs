//! What is shown: a line for each step, with its time in a column.
//!
//! Styles are left out where stdout is no terminal, under `NO_COLOR` and the like: `anstream` knows
//! the conventions.

use std::fmt::Display;
use std::io::{self, Write};
use std::time::Instant;

use anstyle::{AnsiColor, Style};

use crate::clock;
use crate::exit::Failure;
use crate::words::micros;

const WHAT_WIDTH: usize = 27;
const TIME_WIDTH: usize = 12;

const STRONG: Style = Style::new().bold();
const TIME: Style = AnsiColor::Cyan.on_default();
const DONE: Style = AnsiColor::Green.on_default();

#[derive(Debug)]
pub(crate) struct Screen {
    out: anstream::Stdout,
}

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

impl Screen {
    pub(crate) fn new() -> Self {
        Self { out: anstream::stdout() }
    }

    /// A line of its own, with space around.
    pub(crate) fn heading(&mut self, text: impl Display) -> Result<(), Failure> {
        written(writeln!(self.out, "\n{STRONG}{text}{STRONG:#}\n"))
    }

    /// A step has ended: its time, and what there is to know about it.
    pub(crate) fn done(&mut self, step: &Step, detail: impl Display) -> Result<(), Failure> {
        let took = micros(clock::now().saturating_duration_since(step.began));
        written(writeln!(
            self.out,
            "{DONE}✓{DONE:#} {:WHAT_WIDTH$}{TIME}{took:>TIME_WIDTH$}{TIME:#}  {detail}",
            step.what
        ))
    }

    /// Another line about the step before.
    pub(crate) fn more(&mut self, detail: impl Display) -> Result<(), Failure> {
        let blank = WHAT_WIDTH + TIME_WIDTH + 4;
        written(writeln!(self.out, "{:blank$}{detail}", ""))
    }
}

fn written(result: io::Result<()>) -> Result<(), Failure> {
    result.map_err(|error| Failure::internal("cannot write to stdout", &error))
}
