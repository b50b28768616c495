//! A deterministic simulation: nodes, clients and a network in one thread. Its time stands still
//! while any task has something to do; its every choice follows from one number, the *seed*.
//!
//! | file | job |
//! |---|---|
//! | `plan`, `chance` | what a seed stands for; how choices are drawn |
//! | `world` | the world, and its course: what takes more than one of the following |
//! | `agenda` | what is to happen, and when |
//! | `network` | bytes on their way: late, in order, or not at all |
//! | `node` | a node: its keys, its clock, what it has not read yet |
//! | `readers` | what a node has of a lock that readers may have |
//! | `scripts` | whether nodes run the locks' scripts by Lua, and whether the right ones |
//! | `machine` | a client's machine: what happens to it |
//! | `port` | how its connections are made |
//! | `locker` | its lockers, built on all this |
//! | `task` | how its tasks begin, wait and give up |
//! | `client` | a machine with a locker and tasks of its own |
//! | `worker` | a task that takes locks: its machine, its chance, its name |
//! | `party`, `latches` | a task that arrives at latches and looks at them; what is so of these |
//! | `breaker`, `barriers` | a task that meets others at barriers; what is so of these |
//! | `revoker` | a task that asks holders to let go of their locks |
//! | `barger` | a client of another library, which knows of no queue |
//! | `cycle`, `hold` | how it takes locks, of one key or several; what it does while it holds one |
//! | `handover` | tokens on their way, and the machines that adopt by them |
//! | `restarter` | shuts lockers down, and builds others |
//! | `faults` | the faults of all of them |
//! | `oracle`, `violation` | what must always be true; what was found wrong |
//! | `holds`, `releases` | who held what and when; what releases found |
//! | `value_owners` | whose each value is; what adoptions did to those of others |
//! | `protected` | what the locks protect, and who writes it under which fence |
//! | `waiters`, `waiting` | that none who waits is forgotten, and no place in a queue is left |
//! | `requests` | which requests are under way |
//! | `places`, `order` | who stands in queues since when; that locks are had in their order |
//! | `finality`, `completeness` | what losses and shutdowns tell, beside what is so |
//! | `counts` | how often each action happened |
//! | `trace` | what happened, line by line |
//!
//! The clients are the library as it is; only the clock, the source of randomness and the streams
//! are other ones. A machine that is frozen is one whose tasks are not polled; one that has crashed
//! is never polled again. While the assumptions are kept, clocks drift within the margin; in half
//! of the runs wall clocks are wrong from the start; those of nodes are set back and never ahead
//! (one is enough: see `tests`), and a node forgets its keys only where its clients expect it.
//!
//! The same seed gives the same run, byte by byte of its trace. A run is printed by
//!
//! ```sh
//! QUORLOCK_SEED=7 cargo test --release --features testing,tokio-util --lib \
//!     simulation::tests::replays_a_seed -- --nocapture
//! ```
//!
//! A seed that fails is printed with the whole of that command.

mod agenda;
mod barger;
mod barriers;
mod breaker;
mod chance;
mod client;
mod completeness;
mod counts;
mod cycle;
mod faults;
mod finality;
mod handles;
mod handover;
mod hold;
mod holds;
mod latches;
mod locker;
mod machine;
mod network;
mod node;
mod oracle;
mod order;
mod party;
mod places;
mod plan;
mod port;
mod protected;
mod readers;
mod releases;
mod requests;
mod restarter;
mod revoker;
mod scripts;
mod slots;
mod task;
mod tests;
mod trace;
mod value_owners;
mod violation;
mod waiters;
mod waiting;
mod worker;
mod world;

use std::sync::Arc;
use std::time::Duration;

use agenda::Event;
use plan::{Plan, Waits};
use violation::{Kind, Violation};
use world::{Hub, Standing};

/// How long it may take after the last fault until everything has come to rest: a connection that
/// died without a word is given up after a second, and the next is made at most half a second
/// later.
const REST: u64 = 4_000;

/// How long a client may take to end after that: its longest wait, and what follows it.
const LAST_CALL: u64 = 6_000;

/// The same where many stand in a queue: each has its turn, behind keys that were left and whose
/// nodes' clocks were set back.
const LAST_CALL_OF_QUEUES: u64 = 20_000;

/// What came of a run.
#[derive(Debug, Default)]
struct Report {
    violations: Vec<Violation>,
    overlaps: Vec<Standing>,
    hash: u64,
    lines: u64,
    acquired: u64,
    faults: u64,
    /// Writes that came too late, and were refused by their fence.
    refused: u64,
    counts: counts::Counts,
}

/// Runs what the plan says.
fn run(plan: Plan, printed: bool) -> Report {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let hub = Hub::new(plan, printed);
        simulate(&hub).await;
        let lockers = hub.with(|world| {
            let lockers = world.machines.iter_mut().map(machine::Machine::take_lockers);
            lockers.collect::<Vec<_>>()
        });
        let stats = lockers.iter().flatten().map(crate::Locker::stats);
        stats.for_each(|stats| hub.with(|world| world.count_waits(&stats)));
        let report = hub.with(|world| Report {
            violations: std::mem::take(&mut world.oracle.violations),
            overlaps: std::mem::take(&mut world.overlaps),
            hash: world.trace.hash(),
            lines: world.trace.lines(),
            acquired: world.oracle.acquired(),
            faults: world.faults,
            refused: world.protected.refused,
            counts: std::mem::take(&mut world.counts),
        });
        drop(lockers);
        report
    })
}

async fn simulate(hub: &Arc<Hub>) {
    #[expect(clippy::disallowed_methods, reason = "the network is a task of its own")]
    tokio::spawn(hub.clone().drive(client::start));
    let plan = hub.with(|world| world.plan.clone());
    hub.with(|world| world.tell(format_args!("{plan:?}")));
    if plan.longest_ttl.is_some() {
        put_into_service(hub, plan.clients).await;
    }
    for number in 0..plan.bargers {
        #[expect(clippy::disallowed_methods, reason = "other clients are tasks of their own")]
        tokio::spawn(barger::Barger::new(hub, number as u64).run());
    }
    hub.with(|world| {
        let now = world.now();
        if plan.waits != Waits::Short {
            world.agenda.enter(now, Event::Look);
        }
        for place in 0..plan.clients {
            world.agenda.enter(now, Event::Start(place));
        }
        if plan.fault_pause > 0 {
            world.agenda.enter(now + plan.fault_pause, Event::Fault);
        }
        world.agenda.wake();
    });
    hub.sleep(plan.length).await;
    hub.with(world::World::heal);
    let last_call = hub.now() + if plan.is_patient() { LAST_CALL_OF_QUEUES } else { LAST_CALL };
    while hub.with(|world| world.workers_left()) > 0 {
        if hub.now() > last_call {
            let what = "a client did not end".into();
            return hub.with(|world| world.oracle.violate(Kind::Endless, what));
        }
        hub.sleep(10).await;
    }
    if plan.actors.runtimes_ended > 0 {
        use_all(hub).await;
    }
    come_to_rest(hub, &plan).await;
}

/// Waits until nothing is on its way any more, and looks at what is left.
async fn come_to_rest(hub: &Arc<Hub>, plan: &Plan) {
    let longest_ttl = plan.ttls.iter().max().copied().unwrap_or_default();
    let rest = hub.now() + REST;
    let (are_watched, lateness) =
        hub.with(|world| (plan.waits != Waits::Short, world.waiters.set_back));
    loop {
        let (quiet, forgotten, queues) = hub.with(|world| {
            let queues = if are_watched { world.queues() } else { Vec::new() };
            (world.network.is_quiet(), world.forgotten(), queues)
        });
        if quiet && forgotten.is_empty() && queues.is_empty() {
            return;
        }
        let is_late = hub.now() > rest;
        // An undo that is in doubt is repeated for two TTLs.
        let is_restless = !quiet && hub.now() > rest + 2 * longest_ttl + REST;
        let is_queue_left = !queues.is_empty() && hub.now() > rest + lateness;
        if is_late && !forgotten.is_empty() || is_restless || is_queue_left {
            return hub.with(|world| {
                let what = forgotten.into_iter().map(|key| format!("a key was left behind: {key}"));
                what.for_each(|what| world.oracle.violate(Kind::LeftBehind, what));
                for (node, queue) in queues.iter().filter(|_| is_queue_left) {
                    let what = format!("{} on n{node} outlasts all that wait", queue.key);
                    world.oracle.violate(Kind::PlaceLeft, what);
                }
                if is_restless {
                    world.oracle.violate(Kind::NeverAtRest, "it never came to rest".into());
                }
            });
        }
        hub.sleep(20).await;
    }
}

/// Uses every locker once more: one whose runtime has ended delivers what it owes from its next use
/// on, and a guard that is dropped is no use.
async fn use_all(hub: &Arc<Hub>) {
    let lockers = hub.with(|world| {
        let there = world.machines.iter().filter(|machine| !machine.is_gone());
        there.flat_map(machine::Machine::lockers).collect::<Vec<_>>()
    });
    for locker in lockers {
        // It is used, whatever its nodes are like.
        let _ = locker.ready(Duration::from_millis(1)).await;
    }
}

/// The operator's part where servers may forget.
async fn put_into_service(hub: &Arc<Hub>, place: usize) {
    let (machine, locker, _) = client::set_up(hub, place);
    // A library that knows no quarantine has nothing to do here.
    let ready = locker.ready(Duration::from_secs(1)).await.is_ok();
    let done = locker.initialise().await.is_ok();
    hub.with(|world| {
        world.tell(format_args!("in service: {ready} {done}"));
        world.machines[machine].retire();
    });
}
