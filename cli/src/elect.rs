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
use tokio::sync::{Mutex, Notify, mpsc};

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
    let (passed, state) = (Passed::new(passed), State::default());
    let leading = election.lead(async |term| {
        let _leading = Leading::begin(args, &state, &term);
        let code = keep_running(args, &term, &mut *passed.lock().await).await;
        state.resigns.set(true);
        code
    });
    tokio::pin!(leading);
    loop {
        tokio::select! {
            code = &mut leading => return code,
            signal = signals.next() => {
                let ends = if state.leads.get() { ends(signal) } else { ends_candidate(signal) };
                if ends && state.end_by.get().is_none() {
                    state.end_by.set(Some(signal));
                }
                // The receiver lives as long as we do.
                let _ = pass.send(signal);
            }
            () = state.leads_no_more.notified() => {}
        }
        // A command that was to end and is gone with its term is not started again.
        let is_idle = !state.leads.get() && !state.resigns.get();
        if let Some(signal) = state.end_by.get().filter(|_| is_idle) {
            let what = format!("ended by signal {} while it did not lead", signal.as_raw());
            return Err(Failure::new(signals::cause(signal), what));
        }
    }
}

/// What the terms and the signals are to each other.
#[derive(Default)]
struct State {
    leads: Cell<bool>,
    leads_no_more: Notify,
    /// The command has ended for good: what is left is to let go of the lock.
    resigns: Cell<bool>,
    /// The signal that ends all of it.
    end_by: Cell<Option<Signal>>,
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
        let (ended, why) = run_once(args, term, passed).await?;
        match why {
            Why::Told => return Ok(ended.code()),
            Why::Itself if !ended.has_run() => return Ok(ended.code()),
            Why::Itself => {}
            Why::TermEnds => extended(term).await,
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

/// Why a command has ended.
enum Why {
    /// It was told to, by a signal of ours.
    Told,
    /// It was asked to end before its term does.
    TermEnds,
    Itself,
}

/// Runs the command once. It is ended before the term is.
async fn run_once(
    args: &ElectArgs,
    term: &Term,
    passed: &mut mpsc::UnboundedReceiver<Signal>,
) -> Result<(Ended, Why), Failure> {
    let child = Child::start(&args.command, &told(args, term))?;
    let mut running = Running { child, is_killed_with_group: true };
    let mut was_told = false;
    let deadline = || clock::now() + term.remaining();
    let mut plan = Plan::new(OnLost::Term, clock::now(), deadline());
    let ended = loop {
        let due = tokio::select! {
            ended = running.child.wait() => break ended?,
            Some(signal) = passed.recv() => {
                was_told |= ends(signal);
                running.child.forward(signal);
                None
            }
            () = clock::sleep_until(plan.next_at()) => plan.fire(clock::now(), deadline()),
        };
        if let Some(signal) = due {
            running.child.send(signal);
        }
    };
    // What a command that has ended by itself left in its group may go on.
    running.is_killed_with_group = plan.has_begun();
    let why = match (was_told, plan.has_begun()) {
        (true, _) => Why::Told,
        (false, true) => Why::TermEnds,
        (false, false) => Why::Itself,
    };
    Ok((ended, why))
}

/// Returns when the term lasts longer than it did; it is dropped with the term, where that ends.
async fn extended(term: &Term) {
    let before = term.remaining();
    while term.remaining() <= before {
        clock::sleep(FIRST_PAUSE).await;
    }
}

/// A command that is killed, with its group, when its term is over before it has ended.
struct Running {
    child: Child,
    is_killed_with_group: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.is_killed_with_group {
            self.child.send(Signal::KILL);
        }
    }
}

fn told(args: &ElectArgs, term: &Term) -> Vec<(&'static str, OsString)> {
    let deadline = clock::epoch_ms_in(term.remaining()).to_string();
    vec![
        ("QUORLOCK_KEY", args.role.clone()),
        ("QUORLOCK_FENCE", term.fence().to_string().into()),
        ("QUORLOCK_DEADLINE_MS", deadline.into()),
    ]
}

/// Whether a command that gets it is not started again.
fn ends(signal: Signal) -> bool {
    matches!(signal, Signal::INT | Signal::TERM | Signal::QUIT)
}

/// Whether it ends us while another machine leads.
fn ends_candidate(signal: Signal) -> bool {
    ends(signal) || signal == Signal::HUP
}

fn speaks(args: &ElectArgs) -> bool {
    args.verbose || output::is_terminal()
}

/// While this machine leads; says when that begins and ends.
struct Leading<'a>(&'a ElectArgs, &'a State);

impl<'a> Leading<'a> {
    fn begin(args: &'a ElectArgs, state: &'a State, term: &Term) -> Self {
        state.leads.set(true);
        let leading = Self(args, state);
        leading.say(format_args!("leads, term {}", term.fence()));
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
        self.1.leads.set(false);
        self.1.leads_no_more.notify_one();
        self.say(format_args!("leads no more"));
    }
}
