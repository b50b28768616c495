//! `quorlock elect`: keeps a command running on one of several machines.
//!
//! ```text
//! candidate ─▶ leads ─▶ the command runs ──ends──▶ a pause, and again
//!     ▲                      │ └─ was told to end ─▶ resigns ─▶ its code
//!     └── TERM, then KILL ◀──┘ not extended in time
//! ```

use std::cell::Cell;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use quorlock::recipe::Term;
use rustix::process::Signal;
use tokio::sync::{Mutex, mpsc};

use crate::args::{ElectArgs, OnLost};
use crate::exit::Failure;
use crate::lock::{Child, Ended, Plan};
use crate::signals::{self, Signals};
use crate::{clock, nodes, output, words};

/// The first pause before a command that has ended is started again, and the longest; each is twice
/// the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A command that has run for so long begins with the first pause again.
const STEADY: Duration = Duration::from_secs(10);

/// The signals that the command has not heard of yet.
type Passed = Mutex<mpsc::UnboundedReceiver<Signal>>;

/// Stands for the role until the command is told to end; its exit code.
pub(crate) async fn run(args: &ElectArgs) -> Result<u8, Failure> {
    let builder = nodes::locker(&args.nodes)?;
    let locker = nodes::build(match &args.owner {
        Some(owner) => builder.owner(owner.as_str()),
        None => builder,
    })?;
    let election = locker.elect(args.role.as_bytes()).ttl(args.ttl).lock_delay(args.lock_delay);
    let mut signals = Signals::listen()?;
    let (pass, passed) = mpsc::unbounded_channel();
    let (passed, is_leading) = (Passed::new(passed), Cell::new(false));
    let leading = election.lead(async |term| {
        let _told = Leading::begin(args, &is_leading, &term);
        keep_running(args, &term, &mut *passed.lock().await).await
    });
    tokio::pin!(leading);
    loop {
        tokio::select! {
            code = &mut leading => return code,
            // The receiver lives as long as we do.
            signal = signals.next() => match is_leading.get() {
                true => drop(pass.send(signal)),
                false if matches!(signal, Signal::USR1 | Signal::USR2) => {}
                false => {
                    let what = format!("ended by signal {} while another leads", signal.as_raw());
                    return Err(Failure::new(signals::cause(signal), what));
                }
            },
        }
    }
}

/// Starts the command, and starts it again when it ends; returns its code when it was to end.
async fn keep_running(
    args: &ElectArgs,
    term: &Term,
    passed: &mut mpsc::UnboundedReceiver<Signal>,
) -> Result<u8, Failure> {
    let mut pause = FIRST_PAUSE;
    loop {
        let began = clock::now();
        let (ended, was_told) = run_once(args, term, passed).await?;
        if was_told || !ended.has_run() {
            return Ok(ended.code());
        }
        if clock::now().saturating_duration_since(began) >= STEADY {
            pause = FIRST_PAUSE;
        }
        if speaks(args) {
            let (role, code) = (words::quoted(&args.role), ended.code());
            let pause = words::Humane(pause);
            output::say(format_args!("{role}: the command ended with {code}; again in {pause}"));
        }
        tokio::select! {
            () = clock::sleep(pause) => {}
            signal = passed.recv() => match signal {
                Some(signal) if ends(signal) => return Ok(ended.code()),
                _ => {}
            },
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Runs the command once; whether it was told to end. It is ended before the term is.
async fn run_once(
    args: &ElectArgs,
    term: &Term,
    passed: &mut mpsc::UnboundedReceiver<Signal>,
) -> Result<(Ended, bool), Failure> {
    let mut running = Running(Child::start(&args.command, &told(args, term))?, true);
    let child = &mut running.0;
    let mut was_told = false;
    let deadline = || clock::now() + term.remaining();
    let mut plan = Plan::new(OnLost::Term, clock::now(), deadline());
    let ended = loop {
        let due = tokio::select! {
            ended = child.wait() => break ended?,
            Some(signal) = passed.recv() => {
                was_told |= ends(signal);
                child.forward(signal);
                None
            }
            () = clock::sleep_until(plan.next_at()) => plan.fire(clock::now(), deadline()),
        };
        if let Some(signal) = due {
            child.send(signal);
        }
    };
    // What a command that has ended by itself left in its group may go on.
    running.1 = plan.has_begun();
    Ok((ended, was_told))
}

/// A command that is killed with its group when the term is over before it has ended; or when it
/// was asked to end, and others of its group go on.
struct Running(Child, bool);

impl Drop for Running {
    fn drop(&mut self) {
        if self.1 {
            self.0.send(Signal::KILL);
        }
    }
}

fn told(args: &ElectArgs, term: &Term) -> Vec<(&'static str, OsString)> {
    let deadline = clock::epoch_ms_in(term.remaining()).to_string();
    vec![
        ("QUORLOCK_KEY", args.role.clone()),
        ("QUORLOCK_FENCE", term.number().to_string().into()),
        ("QUORLOCK_DEADLINE_MS", deadline.into()),
    ]
}

/// Whether a command that gets it is not started again.
fn ends(signal: Signal) -> bool {
    matches!(signal, Signal::INT | Signal::TERM | Signal::QUIT)
}

fn speaks(args: &ElectArgs) -> bool {
    args.verbose || output::is_terminal()
}

/// While this machine leads; says when that begins and ends.
struct Leading<'a>(&'a ElectArgs, &'a Cell<bool>);

impl<'a> Leading<'a> {
    fn begin(args: &'a ElectArgs, is_leading: &'a Cell<bool>, term: &Term) -> Self {
        is_leading.set(true);
        let leading = Self(args, is_leading);
        leading.say(format_args!("leads, term {}", term.number()));
        leading
    }

    fn say(&self, what: std::fmt::Arguments<'_>) {
        if speaks(self.0) {
            output::say(format_args!("{}: {what}", words::quoted(&self.0.role)));
        }
    }
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        self.1.set(false);
        self.say(format_args!("leads no more"));
    }
}
