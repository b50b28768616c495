//! A client process: it takes locks and tells of them, until its standard input ends.
//!
//! Which client it is decides how it is built: each place has a runtime, a driver and connections
//! of its own kind, and keeps them when its process is killed and started again.

#![expect(
    clippy::disallowed_methods,
    reason = "a client stands for an application, whose time is tokio's"
)]

mod child;
mod cycle;
mod guarded;
mod handover;
mod inbox;
mod journal;
mod latch;
mod lease;
mod loss_signals;
mod program;
mod revoking;
mod rslock;
mod runtimes;
mod saturate;
mod several;
mod stalls;
mod woken;

use std::sync::Arc;
use std::time::Duration;

use quorlock::{Driver, Durability, Locker, LockerBuilder, Retry, report::KeyState};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::Failure;
use crate::args::{self, ClientArgs};
use crate::clock;
use crate::line::Line;
use cycle::Worker;
use handover::Hands;
use inbox::Stop;
pub(crate) use journal::Journal;

/// Tasks that share a process's locker.
const TASKS: u64 = 3;

/// How long a client may take to reach every node, when it is told to end and all faults are over.
/// A kernel whose packet was lost again and again for seconds waits for seconds to try again.
const SETTLE: Duration = Duration::from_secs(15);

/// Runs to the end of the standard input.
pub(crate) fn run(args: ClientArgs) -> Result<(), Failure> {
    let args = Arc::new(args);
    let single = || Builder::new_current_thread().enable_all().build();
    match &*args.library {
        args::RUNTIMES => runtimes::work(&args),
        args::PROGRAM => program::work(&args),
        child::NAME => single()?.block_on(child::work(&args)),
        args::SATURATED => single()?.block_on(saturate::work(args)),
        args::GUARDED => runtime_of(args.slot)?.block_on(guarded::work(args)),
        "rslock" => runtime_of(args.slot)?.block_on(rslock::work(args)),
        _ => runtime_of(args.slot)?.block_on(work(args)),
    }
}

async fn work(args: Arc<ClientArgs>) -> Result<(), Failure> {
    let locker = locker(&args)?.build()?;
    let (journal, (stop, mut orders)) = (Journal::default(), inbox::listen());
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let worker = Worker::new(args.clone(), locker.clone(), journal.clone(), stop.clone(), task);
        tasks.spawn(worker.run(TASKS));
    }
    let hands = Hands::new(args.clone(), locker.clone(), journal.clone(), stop.clone());
    if args.handovers > 0.0 {
        tasks.spawn(hands.clone().give());
    }
    // The orders end when the client is told to.
    while let Some(order) = orders.recv().await {
        tasks.spawn(hands.clone().adopt(order));
        while let Some(done) = tasks.try_join_next() {
            done?;
        }
    }
    while let Some(done) = tasks.join_next().await {
        done?;
    }
    for _ in 0..2 {
        if !is_quiet(&locker).await {
            journal
                .write(&Line::Broken(format!("a node is still away, {SETTLE:?} after all faults")));
        }
        // A server may have put off an undo; it is sent again within a tenth of a second.
        sleep(Duration::from_millis(200)).await;
    }
    let shutdown = locker.shutdown(SETTLE).await?;
    journal.count(if shutdown.is_complete() { "settled" } else { "unsettled" });
    Ok(())
}

/// Waits until every node has answered behind everything that was ever sent to it: what is left
/// there then is left for good.
async fn is_quiet(locker: &Locker) -> bool {
    let began = clock::now();
    while clock::between(began, clock::now()) < SETTLE {
        let mut silent = false;
        // Enough keys for each connection to have one.
        for key in 0..8 {
            let Ok(seen) = locker.inspect(format!("quiet{key}")).await else { return false };
            let is_silent = |state: &KeyState| matches!(state, KeyState::Unknown(_));
            silent |= seen.nodes.iter().any(|node| is_silent(&node.state));
        }
        if !silent {
            return true;
        }
        sleep(Duration::from_millis(20)).await;
    }
    false
}

/// A current-thread runtime in every other place.
fn runtime_of(slot: usize) -> Result<Runtime, Failure> {
    let mut builder = match slot % 2 {
        0 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    Ok(builder.worker_threads(2).enable_all().build()?)
}

fn locker(args: &ClientArgs) -> Result<LockerBuilder, Failure> {
    let ttl = Duration::from_millis(args.ttl_ms);
    let mut builder = Locker::quorum(&args.urls)?
        .ttl(ttl)
        .wait(ttl)
        .prefix(args.prefix.clone())
        .owner(format!("rig-{}", args.slot))
        .retry(Retry::full_jitter(Duration::from_millis(2), ttl / 50, ttl / 10))
        .reconnect(Duration::from_millis(10), Duration::from_millis(200));
    if let Some(deadline) = args.node_timeout_ms {
        builder = builder.node_timeout(Duration::from_millis(deadline));
    }
    if args.volatile {
        builder = builder.durability(Durability::Volatile { longest_ttl: ttl });
    }
    Ok(match args.slot % 4 {
        1 => builder.direct_writes(0),
        2 => builder.driver(Driver::Thread),
        3 => builder.connections_per_node(2),
        _ => builder,
    })
}
