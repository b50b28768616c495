//! All that the program writes to stderr and stdout.
//!
//! | file | job |
//! |---|---|
//! | `queue` | the lines that wait for stderr: bounded, the dropped ones counted; pure |
//! | `writer` | the thread that writes them, and may block |
//! | `room` | what that thread waits for: room, or the terminal's foreground |
//! | `panics` | a panic's message, as one of these lines |
//!
//! **The rule: the thread that keeps a lock and its command never writes.** A write to a pipe that
//! is not read, or to a terminal that is stopped, takes as long as that lasts. On the lock's thread
//! it would keep the lock from being extended, and its command from being killed when it is lost:
//!
//! - to stderr, [`say`] queues and returns. The writer's thread writes. While `LINES_MAX` lines
//!   wait, further ones are dropped; one line says how many when stderr takes lines again;
//! - to stdout, [`print`] writes on a helper thread and is awaited: signals, extensions and losses
//!   are served meanwhile. Results are never dropped;
//! - [`progress`] draws on the thread that calls, and is for where no lock is held;
//! - before the program ends, [`finish`] waits for the queue, and at most [`FLUSH_GRACE`].
//!
//! ```text
//!  any thread ──  say ──▶ queue ──▶ writer's thread ──▶ stderr
//!               finish ──▶ waits until it is empty, or for the grace
//! ```
//!
//! Other files name neither stream: `tests/tidy/banned.rs` sees to it. `std::io::stderr()` has a
//! lock, which a blocked write holds, so even a panic's message must come this way.

mod panics;
mod queue;
mod room;
mod writer;

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

#[cfg(unix)]
use indicatif::ProgressDrawTarget;

use crate::exit::Failure;
use writer::Writer;

pub(crate) use panics::tell_of_panics;

/// How long the program waits at its end for a blocked stderr: long enough for a busy reader, short
/// enough for a caller that waits for the exit code.
const FLUSH_GRACE: Duration = Duration::from_secs(2);

static STDERR: Writer = Writer::new();

/// Queues one line for stderr, prefixed with the program's name. Never blocks.
pub(crate) fn say(what: impl Display) {
    STDERR.queue(|queue| queue.push(format!("quorlock: {what}\n")));
}

/// Queues text for stderr that is never dropped: why the program ends. Never blocks.
pub(crate) fn conclude(text: impl Into<String>) {
    STDERR.queue(|queue| queue.push_last(text.into()));
}

/// Queues the failure's line for stderr and gives its exit code.
pub(crate) fn fail(failure: &Failure) -> u8 {
    conclude(format!("quorlock: {}\n", failure.what));
    failure.cause.code()
}

/// Waits until stderr has taken all lines, and at most [`FLUSH_GRACE`]. Only for the program's end.
pub(crate) fn finish() {
    STDERR.finish(FLUSH_GRACE);
}

/// Writes a result to stdout, without colours if stdout is no terminal.
///
/// # Cancel safety
///
/// A dropped future may leave the text written, or partly written, or not.
pub(crate) async fn print(text: impl Into<String>) -> Result<(), Failure> {
    let text = text.into();
    let written = tokio::task::spawn_blocking(move || {
        let mut stdout = anstream::stdout();
        stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())
    });
    let written = written.await.unwrap_or_else(|error| Err(io::Error::other(error)));
    written.map_err(|error| Failure::internal("cannot write to stdout", &error))
}

/// Writes to stdout what a command has written to its own. `false`: none reads it, which is no
/// failure.
///
/// # Cancel safety
///
/// As [`print`].
#[cfg(unix)]
pub(crate) async fn write(bytes: Vec<u8>) -> Result<bool, Failure> {
    let written = tokio::task::spawn_blocking(move || {
        let mut stdout = io::stdout();
        stdout.write_all(&bytes).and_then(|()| stdout.flush())
    });
    match written.await.unwrap_or_else(|error| Err(io::Error::other(error))) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::internal("cannot write to stdout", &error)),
    }
}

/// Where a progress bar is drawn: on a terminal's stderr and nowhere else. Drawing may block.
#[cfg(unix)]
pub(crate) fn progress() -> ProgressDrawTarget {
    ProgressDrawTarget::stderr()
}

/// Whether stderr is a terminal.
pub(crate) fn is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Whether stderr shows styles.
pub(crate) fn has_styles() -> bool {
    anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never
}
