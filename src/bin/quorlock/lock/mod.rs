//! `quorlock lock`: a command under a lock.
//!
//! | file | job |
//! |---|---|
//! | `child` | the command's process: its environment, its group, signals to it |
//! | `plan` | when the command is told to end, and when it is killed |
//! | `report` | what happened, for `--json` |
//!
//! ```text
//! reach the nodes ─▶ wait for the lock ─▶ run ──command ended──────▶ release ─▶ its code
//!        │                 │               │                           ▲
//!        └──── failure, signal ────▶ end   └─ time up: TERM, then KILL ─┘    ─▶ 79
//! ```

mod child;
mod plan;
mod report;

use std::time::Duration;

use quorlock::{LockGuard, Locker, Release};

use crate::args::LockArgs;
use crate::exit::{self, Cause, Failure};
use crate::signals::{self, Signals};
use crate::{clock, nodes, reach, words};
use child::{Child, Ended};
use plan::Plan;
use report::Report;

/// Runs the command under the lock; its exit code or ours.
pub(crate) fn run(args: &LockArgs) -> u8 {
    let mut report = Report::default();
    let done =
        crate::runtime().and_then(|runtime| runtime.block_on(hold_and_run(args, &mut report)));
    let code = match &done {
        Ok(ended) => ended.code(),
        Err(failure) if failure.cause == Cause::Busy => args.conflict_exit_code,
        Err(failure) => failure.cause.code(),
    };
    let failure = done.as_ref().err();
    if args.json {
        exit::line(report.json(args, failure, code));
    } else if let Some(failure) = failure {
        exit::tell(failure);
    }
    code
}

async fn hold_and_run(args: &LockArgs, report: &mut Report) -> Result<Ended, Failure> {
    let began = clock::now();
    let mut builder = nodes::locker(&args.nodes)?.ttl(args.ttl);
    if let Some(owner) = &args.owner {
        builder = builder.owner(owner.as_str());
    }
    let locker = nodes::build(builder)?;
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
    let guard = acquired?;

    let ended = match Child::start(args, &guard) {
        Ok(child) => Ok(supervise(child, &guard, &mut signals).await?),
        Err(failure) => Err(failure),
    };
    report.hold = Some(clock::now().saturating_duration_since(granted));
    report.child = ended.as_ref().ok().map(|(ended, _)| *ended);
    let in_time = guard.is_valid();
    let release = guard.release().await;
    let (ended, cut_short) = ended?;
    if cut_short || !in_time {
        return Err(lost(args, "its time ended before the command did; give a longer --ttl"));
    }
    judge_release(args, &release?)?;
    Ok(ended)
}

/// Reaches the nodes, then waits for the lock; what reaching took is part of the wait.
async fn acquire(locker: &Locker, args: &LockArgs) -> Result<LockGuard, Failure> {
    let began = clock::now();
    reach::majority(locker).await?;
    let reaching = clock::now().saturating_duration_since(began);
    let wait = if args.no_wait { Duration::ZERO } else { args.wait.saturating_sub(reaching) };
    Ok(locker.lock(args.key.as_encoded_bytes()).wait(wait).await?)
}

/// Lets an acquisition that was just dropped be undone before the process ends: the question goes
/// out behind the undo on the same connections, so that its answer says that the undo is done.
async fn settle(locker: &Locker, args: &LockArgs) {
    // What the nodes hold does not matter, and one that is silent has its deadline.
    let _ = locker.inspect(args.key.as_encoded_bytes()).await;
}

/// Waits for the command to end, passes signals on to it, and ends it before the lock ends. Says
/// whether it had to.
async fn supervise(
    mut child: Child,
    guard: &LockGuard,
    signals: &mut Signals,
) -> Result<(Ended, bool), Failure> {
    let mut plan = Plan::new(clock::now(), guard.deadline());
    let ended = loop {
        tokio::select! {
            ended = child.wait() => break ended?,
            signal = signals.next() => child.forward(signal),
            () = clock::sleep_until(plan.next_at()) => child.send(plan.step()),
        }
    };
    if plan.has_begun() {
        // What the command left behind in its group must not go on without the lock either.
        child.kill_rest();
    }
    Ok((ended, plan.has_begun()))
}

/// What the nodes said when the lock was released: whether it was ours until then.
fn judge_release(args: &LockArgs, release: &Release) -> Result<(), Failure> {
    match release {
        Release::Expired => Err(lost(args, "it was gone from the nodes before the command ended")),
        Release::Taken => Err(lost(args, "another client took it before the command ended")),
        Release::Unknown(nodes) => {
            let nodes: Vec<String> = nodes.iter().map(ToString::to_string).collect();
            exit::say(format_args!(
                "too few nodes confirmed the release of {}, what they hold ends with its time; {}",
                words::quoted(&args.key),
                nodes.join(", ")
            ));
            Ok(())
        }
        _ => Ok(()),
    }
}

fn lost(args: &LockArgs, why: &str) -> Failure {
    Failure::new(Cause::Lost, format!("lock {} was lost: {why}", words::quoted(&args.key)))
}
