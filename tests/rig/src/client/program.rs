//! A client that runs `quorlock lock` with a full pipe for its standard error.
//!
//! The command under it is this program as `child`, which tells of its life as of a hold: it must
//! have ended before another client has the lock, also when `quorlock` cannot write a word.

use std::io::{PipeReader, PipeWriter, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::io::ioctl_fionbio;
use support::process::{Process, tied};

use super::child;
use super::stalls::RunQueue;
use super::{Journal, Stop, handover, inbox};
use crate::Failure;
use crate::args::ClientArgs;
use crate::clock;
use crate::line::{Line, Look, Program};
use crate::random::Random;

/// How often it is looked at whether the program has ended.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Shorter waits for a processor are usual, and far below the margins for them.
const SEEN: Duration = Duration::from_micros(200);

/// The signal that ends it, by its number.
const TERM: i32 = rustix::process::Signal::TERM.as_raw();

/// How long it may take to end behind the longest life of its command, and its own waiting.
const ENDING: Duration = Duration::from_secs(8);

/// Repeats the program until told to stop.
pub(super) fn work(args: &ClientArgs) -> Result<(), Failure> {
    let (journal, (stop, _)) = (Journal::default(), inbox::listen());
    let mut random = Random::new(args.seed, 40_000 + args.slot as u64);
    while !stop.is_set() {
        once(args, &journal, &stop, &mut random)?;
        journal.count("cycles");
    }
    Ok(())
}

fn once(
    args: &ClientArgs,
    journal: &Journal,
    stop: &Stop,
    random: &mut Random,
) -> Result<(), Failure> {
    // Locks that change hands are asked for less often: there it gets its turn.
    let key = match args.handovers > 0.0 && random.percent(50) {
        true => format!("h{}", random.below(handover::KEYS)),
        false => format!("k{}", random.below(args.keys)),
    };
    let child = ClientArgs { library: child::NAME.into(), seed: random.next(), ..args.clone() };
    let (ttl, wait) = (format!("{}ms", args.ttl_ms), format!("{}ms", args.ttl_ms * 2));
    let mut command = tied(&args.program);
    command.args(["lock", "--ttl", &ttl, "--wait", &wait, "--prefix", &args.prefix]);
    command.args(args.urls.iter().flat_map(|url| ["--node", url]));
    if args.volatile {
        command.args(["--longest-ttl", &ttl]);
    }
    command.args([&key, "--"]).arg(std::env::current_exe()?).arg("client").args(child.words());
    let (unread, full) = full_pipe()?;
    command.stdin(Stdio::null()).stderr(full);
    let mut process = Process::spawn(command)?;
    let mut watch = Watch::new(process.pid());
    let (began, longest) = (clock::now(), Duration::from_millis(args.ttl_ms) * 6 + ENDING);
    let mut is_told = false;
    let status = loop {
        // First: once its end is known the kernel tells nothing of it any more.
        watch.look();
        if let Some(status) = process.exited() {
            journal.write(&Line::Program(watch.end()));
            break status;
        }
        if clock::between(began, clock::now()) > longest {
            let what = format!("`quorlock lock` did not end within {longest:?}");
            journal.write(&Line::Broken(what));
            process.kill();
            return Ok(());
        }
        if stop.is_set() {
            // Its end must release the lock and end the command, which the next look finds.
            process.signal(rustix::process::Signal::TERM);
            is_told = true;
        }
        std::thread::sleep(LOOK_EVERY);
    };
    drop(unread);
    match word(status, is_told) {
        Some(word) => journal.count(word),
        None => journal.write(&Line::Broken(format!("`quorlock lock` ended by {status}"))),
    }
    Ok(())
}

/// How the program ended, in a word, if it may end so.
fn word(status: ExitStatus, is_told: bool) -> Option<&'static str> {
    match (status.code(), status.signal()) {
        // The command has ended, or was ended by a signal of ours.
        (Some(0 | 137 | 143), _) => Some("ran"),
        (Some(69), _) => Some("unavailable"),
        (Some(75), _) => Some("busy"),
        (Some(79), _) => Some("lost"),
        // The signal came before it listened for signals, and so before it had a lock: one that it
        // leaves behind is found on the nodes.
        (None, Some(TERM)) if is_told => Some("ended-early"),
        _ => None,
    }
}

/// Looks at a program again and again: was it let run? That this process may be stopped itself says
/// nothing of the program, which goes on.
struct Watch {
    program: Program,
    queue: RunQueue,
    last: u64,
}

impl Watch {
    fn new(process: u32) -> Self {
        let last = clock::now();
        let program = Program { began: last, ended: last, looks: Vec::new() };
        Self { program, queue: RunQueue::of(process), last }
    }

    fn look(&mut self) {
        let (at, waited) = (clock::now(), self.queue.waited());
        let from = std::mem::replace(&mut self.last, at);
        if waited >= SEEN {
            let waited = clock::nanos(waited);
            self.program.looks.push(Look { from, at, waited });
        }
    }

    /// What was seen, when it has ended.
    fn end(self) -> Program {
        Program { ended: clock::now(), ..self.program }
    }
}

/// A pipe that takes no byte more, and its other end, which is not read.
fn full_pipe() -> Result<(PipeReader, PipeWriter), Failure> {
    let (reader, mut writer) = std::io::pipe()?;
    ioctl_fionbio(&writer, true)?;
    // First by pages, then what is left byte by byte: each ends when nothing more goes in.
    while writer.write(&[b'x'; 4_096]).is_ok() {}
    while writer.write(b"x").is_ok() {}
    ioctl_fionbio(&writer, false)?;
    Ok((reader, writer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_may_die_of_the_signal_that_it_was_sent_before_it_listened() {
        let of = |raw| ExitStatus::from_raw(raw);
        assert_eq!(word(of(TERM), true), Some("ended-early"));
        assert_eq!(word(of(TERM), false), None, "nothing was sent");
        assert_eq!(word(of(6), true), None, "another signal: it aborted");
        assert_eq!(word(of(143 << 8), true), Some("ran"), "its command died of it");
        assert_eq!(word(of(1 << 8), true), None);
    }

    #[test]
    fn a_full_pipe_takes_no_byte() {
        let (_reader, mut writer) = full_pipe().expect("a pipe");
        ioctl_fionbio(&writer, true).expect("it is one");
        let error = writer.write(b"x").expect_err("it is full");
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    }
}
