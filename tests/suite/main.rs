//! The acceptance suite: the library's promises, seen from outside, on real servers, or on nodes
//! inside this process where there are none (`QUORLOCK_SERVER=in-process`).
//!
//! | file | asks |
//! |---|---|
//! | `locking` | is there ever more than one holder, and does the lock come free? |
//! | `all` | locks of several keys: all of them or none, and one holder of each? |
//! | `durability` | servers that forget what they granted |
//! | `scripts` | our scripts on servers that are not as they expect |
//! | `combinations` | is what goes with which kind of lock tested, or refused? |
//! | `segments` | one hot key as several locks |
//! | `states` | servers in every state: what each operation says of a node, and what is left |
//! | `errors` | what an error says of its cause, and of each node |
//! | `events` | what an observer is told, in what order, and how often |
//! | `faults` | stopped, hung, restarted and late nodes |
//! | `fencing` | a number that rises with every holder |
//! | `guarded` | commands that a server refuses once a later holder has come |
//! | `handover` | locks that are left and adopted, by tokens |
//! | `handshake` | servers that stall, refuse or mislead at each step of it |
//! | `health` | what a locker tells of its nodes |
//! | `cancel` | what is left when a future or a guard is dropped anywhere |
//! | `cases` | the defects of other lock libraries, by number |
//! | `addresses` | what a URL may hold, on a server that has it |
//! | `bad_input` | is every mistake told, and told before anything is sent? |
//! | `native` | releases by a native command, where the server has it |
//! | `nodes` | every kind of address, and logins that change |
//! | `interop` | other libraries on the same key |
//! | `own_keys` | the names that nodes keep for themselves |
//! | `overtaking` | bytes of an ended connection that arrive late |
//! | `retry` | how often a lock is asked for again, how soon, and when it is given up |
//! | `waiting` | in what order, and at what cost, does a lock go to those that wait for it? |
//! | `runtimes` | current-thread, multi-thread, ended, blocked, several at once |
//! | `differential` | a node inside this process beside a real server |
//! | `wire` | scripted servers: what goes over the wire, in what order, and what may come back |
//! | `client` | the protocol-level client |
//! | `shared` | one caller beside others on its connection |

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "tests read real time, run callers as tasks, and fail on the spot"
)]

mod addresses;
mod all;
mod bad_input;
#[cfg(feature = "blocking")]
mod blocking;
mod by_hand;
mod cancel;
mod cases;
mod client;
mod combinations;
mod differential;
mod durability;
mod errors;
mod events;
mod fair;
mod fair_strict;
mod faults;
mod fencing;
mod guarded;
mod handover;
mod handshake;
mod health;
mod in_queue;
mod interop;
mod latch;
mod limit;
mod lock_delay;
mod locking;
mod native;
mod nodes;
mod overtaking;
mod own_keys;
mod reading;
mod recipes;
mod retry;
mod revocation;
mod runtimes;
mod scripts;
mod segments;
mod shared;
mod sharing;
mod slots;
mod states;
mod waiting;
mod wire;

use quorlock::{IntoNode, Locker, LockerBuilder, report::NodeHealth};
use support::Fleet;
use support::wait::{PATIENCE, eventually_async};

// What the library promises to do within a time is exact under a driven clock (`src/lock/tests`)
// or is measured (`benches/record`). Here it competes with everything else that the machine does:
// no client here is told of a failure because of that, and nothing is asserted of how soon.

/// With deadlines that a busy machine keeps, and a `wait` that no outage ends. A test of one of
/// these sets its own behind this.
fn patient(builder: LockerBuilder) -> LockerBuilder {
    builder
        .node_timeout(PATIENCE)
        .connect_timeout(PATIENCE)
        .unavailable_wait(std::time::Duration::MAX)
}

/// A locker on one node.
fn single(node: impl IntoNode) -> LockerBuilder {
    patient(Locker::single(node).unwrap())
}

/// A locker on several nodes.
fn quorum<N: IntoNode>(nodes: impl IntoIterator<Item = N>) -> LockerBuilder {
    patient(Locker::quorum(nodes).unwrap())
}

/// A locker on all of a fleet, in the way that its size asks for.
fn builder(fleet: &Fleet) -> LockerBuilder {
    patient(hasty(fleet))
}

/// As [`builder`], with the library's own deadlines: for nodes that hang, on which it must give up.
fn hasty(fleet: &Fleet) -> LockerBuilder {
    match fleet.urls().as_slice() {
        [only] => Locker::single(only).unwrap(),
        many => Locker::quorum(many).unwrap(),
    }
}

/// A locker that is connected to all of its nodes.
async fn connected(builder: LockerBuilder) -> Locker {
    let locker = builder.build().unwrap();
    locker.ready(PATIENCE).await.unwrap();
    // That a majority is, suffices for it.
    eventually_async("all nodes are connected", async || {
        locker.health().iter().all(NodeHealth::is_connected)
    })
    .await;
    locker
}
