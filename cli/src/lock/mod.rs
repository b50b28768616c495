//! `quorlock lock`: a command under a lock.
//!
//! | file | job |
//! |---|---|
//! | `child` | the command's process: its environment, its group, signals to it |
//! | `plan` | when the command gets TERM, and when KILL |
//! | `watch` | the library's events, written to stderr |
//! | `until` | the lock, unless there is nothing to do: `--until` |
//! | `report` | what happened, for `--json` |
//!
//! ```text
//! reach the nodes ─▶ wait for the lock ─▶ run ─────command ended────▶ release ─▶ its code
//!        │                 │               │ └─ lock revoked: TERM ──────┤
//!        └──── failure, signal ────▶ end   └─ lock lost: TERM, then KILL ┘    ─▶ 79
//! ```

mod child;
mod plan;
mod report;
mod until;
mod watch;

use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::time::Duration;

use quorlock::recipe::Ran;
use quorlock::{Extend, LockGuard, Locker, Loss, Release};
use rustix::process::Signal;

use crate::args::{LockArgs, OnLost};
use crate::exit::{Cause, Failure};
use crate::signals::{self, Signals};
use crate::{clock, nodes, output, reach, runtime, tied, words};
pub(crate) use child::{Child, Ended};
pub(crate) use plan::Plan;
use report::Report;
use watch::Watch;

/// Runs the command under the lock; its exit code or ours.
pub(crate) fn run(args: &LockArgs) -> u8 {
    let (mut report, watch) = (Report::default(), Arc::new(Watch::new(args)));
    let done = runtime::block_on(hold_and_run(args, &watch, &mut report));
    report.extensions = watch.extensions();
    let code = match &done {
        Ok(ended) => ended.code(),
        Err(failure) if failure.cause == busy(args) => args.conflict_exit_code,
        Err(failure) => failure.cause.code(),
    };
    let failure = done.as_ref().err();
    if args.json {
        output::conclude(report.json(args, failure, code) + "\n");
    } else if let Some(failure) = failure.filter(|failure| !watch.has_told(failure)) {
        // A mail from cron each night, from each machine but one, would be read by no one.
        if failure.cause != Cause::Skipped || args.verbose || output::is_terminal() {
            output::fail(failure);
        }
    }
    code
}

/// What it is that another has the lock.
fn busy(args: &LockArgs) -> Cause {
    if args.is_once { Cause::Skipped } else { Cause::Busy }
}

async fn hold_and_run(
    args: &LockArgs,
    watch: &Arc<Watch>,
    report: &mut Report,
) -> Result<Ended, Failure> {
    let began = clock::now();
    if args.is_once {
        // Of one that is found now, and ends with 126 or 127, it is not known that it was not run.
        tied::check(&args.command)?;
    }
    let locker = locker(args, watch)?;
    let mut signals = Signals::listen()?;

    let acquired = tokio::select! {
        acquired = acquire(&locker, args) => acquired,
        signal = signals.next() => {
            settle(&locker, args).await;
            let what = format!("ended by signal {} while waiting", signal.as_raw());
            Err(Failure::new(signals::cause(signal), what))
        }
    };
    let granted = clock::now();
    report.wait = Some(granted.saturating_duration_since(began));
    let is_skipped = |failure: &Failure| failure.cause == Cause::Skipped;
    if args.until.is_some() && acquired.as_ref().is_err_and(is_skipped) {
        settle(&locker, args).await; // it may have had the lock to look under it
    }
    let guard = acquired?;
    if !guard.is_valid() {
        // It was, when it was given; a look under it may have taken long.
        let what = format!("lock {} was lost before the command", words::all_quoted(args.keys()));
        return Err(Failure::new(Cause::Lost, what));
    }
    report.fence = guard.fence();
    report.slot = guard.slots().first().copied();

    let ended = match Child::start(&args.command, &told(args, &guard)) {
        Ok(child) => supervise(child, args, &guard, &mut signals).await,
        Err(failure) => Err(failure),
    };
    report.hold = Some(clock::now().saturating_duration_since(granted));
    report.child = ended.as_ref().ok().map(|(ended, _)| *ended);
    let in_time = guard.is_valid();
    let was_revoked = guard.is_revoked();
    let release = end_hold(guard, ended.as_ref().ok(), args).await;
    if was_revoked {
        // Where servers delete natively the script follows, and we end before it is sent.
        settle(&locker, args).await;
        settle(&locker, args).await; // behind what the first answer has led to
    }
    let (ended, was_lost) = ended?;
    let loss = match release {
        _ if was_lost || !in_time => Some(why_lost(args, watch)),
        Some(release) => judge_release(args, &release?),
        None => None,
    };
    let Some((word, why)) = loss else { return Ok(ended) };
    report.lost = Some(word);
    let what = format!("lock {} was lost: {why}", words::all_quoted(args.keys()));
    Err(Failure::new(Cause::Lost, what))
}

/// Lets go of the lock, by how the command has ended and whether the lock was lost before. `None`:
/// its keys are left to their end.
async fn end_hold(
    guard: LockGuard,
    ended: Option<&(Ended, bool)>,
    args: &LockArgs,
) -> Option<Result<Release, quorlock::Error>> {
    let is_lost = ended.is_some_and(|(_, was_lost)| *was_lost) || !guard.is_valid();
    match ended {
        // What the command has started may go on: others are to stay out for the delay.
        Some(_) if is_lost && !args.lock_delay.is_zero() => {
            drop(guard.forget());
            None
        }
        Some((ended, false)) if ended.has_run() || args.is_once => {
            Some(guard.release_after(args.min_hold).await)
        }
        // By our clock alone its time may be over: the nodes keep it for what is left of it.
        Some(_) if args.is_once => {
            drop(guard.forget());
            None
        }
        _ => Some(guard.release().await),
    }
}

/// What the command is told of its lock.
fn told(args: &LockArgs, guard: &LockGuard) -> Vec<(&'static str, OsString)> {
    let deadline = clock::epoch_ms_in(guard.remaining()).to_string();
    let mut told = vec![
        ("QUORLOCK_KEY", args.keys().join(OsStr::new("\n"))),
        ("QUORLOCK_TOKEN", guard.owner_token().as_str().into()),
        ("QUORLOCK_DEADLINE_MS", deadline.into()),
    ];
    told.extend(guard.fence().map(|fence| ("QUORLOCK_FENCE", fence.to_string().into())));
    let slot = guard.slots().first().map(u16::to_string);
    told.extend(slot.map(|slot| ("QUORLOCK_SLOT", slot.into())));
    told
}

fn locker(args: &LockArgs, watch: &Arc<Watch>) -> Result<Locker, Failure> {
    let extend = match args.max_hold {
        _ if args.no_extend => Extend::Off,
        Some(longest) => Extend::For(longest),
        None => Extend::Forever,
    };
    if let Some(longest) = args.nodes.longest_ttl.filter(|longest| args.min_hold > *longest) {
        let option = if args.is_once { "--at-least" } else { "--min-hold" };
        let what = format!("{option} {:?} is above --longest-ttl {longest:?}", args.min_hold);
        return Err(Failure::new(Cause::Usage, what));
    }
    let builder = nodes::locker(&args.nodes)?.ttl(args.ttl).auto_extend(extend);
    let builder = builder.unavailable_wait(args.unavailable_wait).observer(watch.clone());
    nodes::build(match &args.owner {
        Some(owner) => builder.owner(owner.as_str()),
        None => builder,
    })
}

/// Reaches the nodes, then waits for the lock. The time to reach them counts as part of the wait.
async fn acquire(locker: &Locker, args: &LockArgs) -> Result<LockGuard, Failure> {
    let began = clock::now();
    let wait = if args.no_wait { Duration::ZERO } else { args.wait };
    if let Some(line) = &args.until {
        until::look(line).await?;
    }
    reach::majority(locker, args.unavailable_wait.min(wait)).await?;
    // What is left may be nothing: then it is tried once, by a request that waits all the same.
    let left = wait.saturating_sub(clock::now().saturating_duration_since(began));
    let wait = left.max(wait.min(Duration::from_millis(1)));
    if args.is_once {
        return begin_once(locker, args).await;
    }
    let request = match (args.keys(), args.slots) {
        ([only], Some(count)) => locker.slots(only.as_encoded_bytes(), count).acquire(),
        ([only], None) if args.shared => locker.read(only.as_encoded_bytes()),
        ([only], None) => locker.lock(only.as_encoded_bytes()),
        (several, _) => locker.lock_all(several.iter().map(|key| key.as_encoded_bytes())),
    };
    let request = if args.fenced { request.fenced() } else { request };
    let request = if args.fair { request.fair() } else { request };
    let request = if args.fair_strict { request.fair_strict() } else { request };
    let request = request.lock_delay(args.lock_delay).wait(wait);
    match &args.until {
        Some(line) => until::acquire_unless_done(request, line).await,
        None => request.await.map_err(Failure::of_options),
    }
}

/// The lock of a command that is run once; a failure says which machine runs it.
async fn begin_once(locker: &Locker, args: &LockArgs) -> Result<LockGuard, Failure> {
    let Some(key) = args.keys().first() else {
        return Err(Failure::new(Cause::Usage, "no key was given"));
    };
    let once = locker.once(key.as_encoded_bytes()).at_least(args.min_hold).at_most(args.ttl);
    let once = if args.fenced { once.fenced() } else { once };
    match once.acquire().await.map_err(Failure::of_options)? {
        Ran::Here(guard) => Ok(guard),
        Ran::Elsewhere(holder) => {
            let what = format!("{} is run, or was, by {holder}", words::all_quoted(args.keys()));
            Err(Failure::new(Cause::Skipped, what))
        }
    }
}

/// Waits until the nodes have undone an acquisition that was just dropped. An inspection is sent
/// after the undo on the same connections, so its answer means that the undo is done. (Of several
/// keys, the smallest decides which connections are used.)
async fn settle(locker: &Locker, args: &LockArgs) {
    let Some(key) = args.keys().iter().min() else { return };
    // The result does not matter, and a node that does not answer has its deadline.
    let _ = locker.inspect(key.as_encoded_bytes()).await;
}

/// Waits for the command to end, passes signals on to it, and ends it when the lock is lost. The
/// flag says whether the lock was lost.
async fn supervise(
    mut child: Child,
    args: &LockArgs,
    guard: &LockGuard,
    signals: &mut Signals,
) -> Result<(Ended, bool), Failure> {
    let mut plan = Plan::new(args.on_lost, clock::now(), guard.deadline());
    let mut is_asked = false;
    let ended = loop {
        let due = tokio::select! {
            ended = child.wait() => break ended?,
            signal = signals.next() => {
                child.forward(signal);
                None
            }
            () = guard.revoked(), if !is_asked => {
                is_asked = true;
                let obeys = guard.is_revoked() && args.on_lost != OnLost::Ignore;
                obeys.then_some(Signal::TERM)
            }
            _ = guard.lost(), if !plan.has_begun() => plan.lost(clock::now()),
            () = clock::sleep_until(plan.next_at()) => plan.fire(clock::now(), guard.deadline()),
        };
        if let Some(signal) = due {
            child.send(signal);
        }
    };
    if plan.has_begun() && args.on_lost != OnLost::Ignore {
        // Processes that the command left in its group must not run on without the lock either.
        child.kill_rest();
    }
    Ok((ended, plan.has_begun()))
}

/// Why the lock was lost while the command ran: a word for `--json`, and words for people.
fn why_lost(args: &LockArgs, watch: &Watch) -> (&'static str, String) {
    let loss = watch.loss().unwrap_or(Loss::Expired);
    let why = match loss {
        Loss::Expired if args.is_once => {
            "its time ended before the command did; give a longer --at-most".into()
        }
        Loss::Expired if args.no_extend => {
            "its time ended before the command did; give a longer --ttl, or let it be extended"
                .into()
        }
        Loss::Expired if watch.is_overlong() => {
            "it was held for its --max-hold before the command ended".into()
        }
        Loss::Expired => "its time ran out, for no majority of the nodes extended it".into(),
        loss => loss.to_string(),
    };
    (watch::word(loss), why)
}

/// Why the lock was lost before its release, as the nodes' answers to the release say; else `None`.
fn judge_release(args: &LockArgs, release: &Release) -> Option<(&'static str, String)> {
    match release {
        Release::Expired => {
            Some(("gone", "it was gone from the nodes before the command ended".into()))
        }
        Release::Taken => Some(("taken", "another client took it before the command ended".into())),
        Release::Unknown(nodes) if !args.json => {
            let nodes: Vec<String> = nodes.iter().map(ToString::to_string).collect();
            output::say(format_args!(
                "too few nodes confirmed the release of {} ({}); its TTL ends a key that is left",
                words::all_quoted(args.keys()),
                nodes.join(", ")
            ));
            None
        }
        _ => None,
    }
}
