//! Panic messages go through the same queue as all lines.
//!
//! The standard hook writes on the thread that panics. While the writer's thread is blocked and
//! holds stderr's lock, it would never return: nothing would unwind, and the command would run on.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::Display;

/// Queues the message of each panic from now on, with a backtrace where `RUST_BACKTRACE` asks for
/// one.
pub(crate) fn tell_of_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        super::conclude(message(thread.name(), panic, &Backtrace::capture()));
    }));
}

fn message(thread: Option<&str>, panic: &dyn Display, backtrace: &Backtrace) -> String {
    let thread = thread.unwrap_or("without a name");
    let mut message = format!("quorlock: thread {thread} {panic}\n");
    if backtrace.status() == BacktraceStatus::Captured {
        message.push_str(&backtrace.to_string());
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_where_and_why_and_shows_a_backtrace_if_there_is_one() {
        let told = |backtrace: &Backtrace| {
            message(Some("main"), &"panicked at src/x.rs:1:2:\nit is broken", backtrace)
        };
        let line = "quorlock: thread main panicked at src/x.rs:1:2:\nit is broken\n";
        assert_eq!(told(&Backtrace::disabled()), line);
        let with = told(&Backtrace::force_capture());
        assert!(with.starts_with(line) && with.contains("a_message_says_where"), "{with}");
    }
}
