//! Recipes among many processes, whose clocks differ, and which are killed and stopped.
//!
//! A test runs its own program again for each process: the test of the same name does there what
//! the process is for, and not what the test is for.
#![cfg(unix)]
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "programs of their own")]

mod cached;
mod elect;
mod idempotent;
mod limit;
mod once;
mod processes;
