//! What happens in the demo, step by step.

use std::time::Duration;

use quorlock::{LockGuard, Locker, report::Outcome};

use super::fleet::Fleet;
use super::sample::Sample;
use super::screen::{self, Step};
use super::server::Server;
use crate::clock;
use crate::exit::{Cause, Failure};
use crate::words::{self, micros};

/// What the two clients contend for.
const KEY: &str = "order:42";

/// How long a client works under its lock while the other waits.
const WORK: Duration = Duration::from_millis(50);

/// How many acquisitions are measured: enough for a median, and done in well under a second.
const SAMPLE: usize = 200;

/// Long, so that a busy machine does not look like a failing node.
const NODE_TIMEOUT: Duration = Duration::from_millis(500);

/// Runs all steps. However it ends, the servers are stopped and removed.
pub(crate) async fn tell(server: &Server) -> Result<(), Failure> {
    let quorum = "five nodes, of which a quorum of 3 of 5 must agree";
    screen::heading(format_args!("quorlock demo: {server} on {quorum}")).await?;

    let step = Step::begin("five nodes started");
    let mut fleet = Fleet::start(server).await?;
    let mut lines = fleet.nodes().iter().map(|node| format!("{} {}", node.name, node.addr()));
    screen::done(&step, lines.next().unwrap_or_default()).await?;
    for line in lines {
        screen::more(line).await?;
    }

    let (alice, bob) = meet(&fleet).await?;
    contend(&fleet, &alice, &bob).await?;
    measure(&alice).await?;
    fail(&mut fleet).await?;

    let step = Step::begin(format!("alice locks {KEY:?}"));
    let guard = alice.lock(KEY).await?;
    screen::done(&step, granted_by(&fleet, &guard)).await?;
    for line in others(&fleet, &guard) {
        screen::more(line).await?;
    }
    release(guard).await?;
    measure(&alice).await?;

    let step = Step::begin("all stopped and removed");
    fleet.remove()?;
    screen::done(&step, "five nodes and their directory").await?;
    screen::heading("One node dead, one hung, and the lock still works: 3 of 5 are a quorum.").await
}

/// Two clients, each with its own connections.
async fn meet(fleet: &Fleet) -> Result<(Locker, Locker), Failure> {
    let step = Step::begin("alice and bob connect");
    let client = |name: &str| {
        let builder = Locker::quorum(fleet.urls())?.owner(name);
        builder.node_timeout(NODE_TIMEOUT).build()
    };
    let (alice, bob) = (client("alice")?, client("bob")?);
    let patience = Duration::from_secs(5);
    let (ready, bobs) = tokio::try_join!(alice.ready(patience), bob.ready(patience))?;
    screen::done(&step, format_args!("to {} nodes each", ready.len().min(bobs.len()))).await?;
    Ok((alice, bob))
}

/// One client holds the lock; the other is refused, then waits for it.
async fn contend(fleet: &Fleet, alice: &Locker, bob: &Locker) -> Result<(), Failure> {
    let step = Step::begin(format!("alice locks {KEY:?}"));
    let guard = alice.lock(KEY).await?;
    screen::done(&step, granted_by(fleet, &guard)).await?;

    let step = Step::begin("bob tries once");
    match bob.lock(KEY).wait(Duration::ZERO).await {
        Ok(_) => return Err(Failure::new(Cause::Internal, "two clients held one lock")),
        Err(error) if !error.is_contended() => return Err(error.into()),
        Err(error) => {
            let held = error.holder().map_or_else(|| "held by another client".into(), words::held);
            screen::done(&step, format_args!("refused: {held}")).await?;
        }
    }

    let step = Step::begin("bob waits, alice releases");
    let works = async {
        clock::sleep(WORK).await;
        let released = clock::now();
        release(guard).await.map(|()| released)
    };
    let waits = async {
        let guard = bob.lock(KEY).await?;
        Ok((guard, clock::now()))
    };
    let (released, (guard, got)) = tokio::try_join!(works, waits)?;
    let gap = micros(got.saturating_duration_since(released));
    screen::done(&step, format_args!("bob has it {gap} after the release")).await?;
    release(guard).await
}

async fn measure(locker: &Locker) -> Result<(), Failure> {
    let step = Step::begin(format!("{SAMPLE} times lock and release"));
    let sample = Sample::take(locker, KEY, SAMPLE).await?;
    screen::done(&step, format_args!("to lock: {sample}")).await
}

/// One node dies, one hangs.
async fn fail(fleet: &mut Fleet) -> Result<(), Failure> {
    let (dies, hangs) = fleet.doomed()?;
    let step = Step::begin(format!("node {} is killed", dies.name));
    dies.kill()?;
    let how = if dies.is_process() { "SIGKILL: " } else { "" };
    screen::done(&step, format_args!("{how}its connections break")).await?;
    let step = Step::begin(format!("node {} hangs", hangs.name));
    hangs.hang()?;
    let how = if hangs.is_process() { "SIGSTOP: " } else { "" };
    screen::done(&step, format_args!("{how}its connections stay, it answers nothing")).await
}

async fn release(guard: LockGuard) -> Result<(), Failure> {
    let release = guard.release().await?;
    if release.is_released() {
        return Ok(());
    }
    Err(Failure::new(Cause::Lost, "the lock was gone before it was released"))
}

/// `granted by a, b, c: 3 of 5`.
fn granted_by(fleet: &Fleet, guard: &LockGuard) -> String {
    let votes = guard.votes();
    let granted = votes.iter().zip(fleet.nodes()).filter(|(v, _)| v.outcome == Outcome::Granted);
    let names: Vec<String> = granted.map(|(_, node)| node.name.to_string()).collect();
    format!("granted by {}: {} of {}", names.join(", "), names.len(), votes.len())
}

/// The nodes that have not granted it, and what they did.
fn others(fleet: &Fleet, guard: &LockGuard) -> Vec<String> {
    let votes = guard.votes();
    let others = votes.iter().zip(fleet.nodes()).filter(|(v, _)| v.outcome != Outcome::Granted);
    others.map(|(vote, node)| format!("{} {}", node.name, vote.outcome)).collect()
}
