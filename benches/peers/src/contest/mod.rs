//! Who is measured.
//!
//! | file | contestant |
//! |---|---|
//! | `floor`, `wire` | raw sockets: one thread, epoll, commands encoded in advance |
//! | `ceiling` | one raw socket, fed so deep that the server is never idle |
//! | `ours` | this library, with its defaults |
//! | `redis` | the `redis` crate, in the ways that may be its best |
//! | `fred`, `rustis` | the crates of these names, in the ways that may be their best |
//! | `rslock` | the `rslock` crate, with its defaults |
//! | `wait` | all replies or enough of them, for crates that have no quorum |
//! | `stage` | the thread that each has for itself |
//! | `on_tokio`, `open` | what the asynchronous ones share: a runtime, callers, their samples |
//!
//! Another client is one more file with a [`Lock`], a line in [`enter`], and its ways in [`PEERS`].
//!
//! All take fresh keys with the same time to live: in a closed loop (acquire, release, again), the
//! floor and the asynchronous ones in an open loop too (a cycle begins when its time has come).

mod ceiling;
mod floor;
mod fred;
mod on_tokio;
mod open;
mod ours;
mod redis;
mod rslock;
mod rustis;
mod stage;
mod wait;
mod wire;

use std::time::Duration;

use ceiling::Ceiling;
use floor::Floor;
use fred::Fred;
use on_tokio::{Lock, OnTokio, Place};
pub(crate) use open::Open;
use ours::Ours;
use redis::Redis;
use rslock::Rslock;
use rustis::Rustis;
use stage::Stage;
use wait::Wait;

use crate::args::Args;
use crate::servers::Nodes;

/// Anything that ends the run.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// How long every contestant's locks live: our default.
pub(crate) const TTL: Duration = Duration::from_secs(10);

/// How a release is asked of a node where the contestant leaves it open: as the specification of
/// Redlock has it.
const COMPARE_AND_DELETE: &str = "if redis.call('GET',KEYS[1])==ARGV[1] then \
     return redis.call('DEL',KEYS[1]) else return 0 end";

/// How a release is asked of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DeleteBy {
    /// By a script.
    Script,
    /// By `DELIFEQ`.
    Native,
}

/// One contestant.
pub(crate) trait Contestant {
    /// Runs so many callers until the time is up; each ends with a release. An acquisition that is
    /// not granted and a release that is not confirmed are failures.
    fn run(&mut self, callers: usize, time: Duration) -> Result<Yield, Failure>;

    /// Starts so many cycles per second for so long, whatever became of those before.
    fn run_at(&mut self, _rate: u32, _time: Duration) -> Result<Open, Failure> {
        Err("this contestant has no open loop".into())
    }

    /// Reads what is still on its way, for a few milliseconds; waits for nodes that were away.
    fn settle(&mut self) -> Result<(), Failure>;
}

/// What a run brought in.
#[derive(Debug, Default)]
pub(crate) struct Yield {
    /// How long each acquisition took, in nanoseconds; there are as many cycles as these.
    pub(crate) acquires_ns: Vec<u32>,
}

/// Where a contestant's callers run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Runtime {
    /// None: a thread of its own.
    Thread,
    Current,
    Multi,
}

impl Runtime {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Current => "current",
            Self::Multi => "multi",
        }
    }
}

/// A contestant and what it is called.
pub(crate) struct Entrant {
    pub(crate) name: &'static str,
    pub(crate) runtime: Runtime,
    /// It may leave keys behind: see `redis`.
    pub(crate) leaves_keys: bool,
    /// More callers than this it does not take.
    pub(crate) callers_max: usize,
    pub(crate) contestant: Box<dyn Contestant>,
}

/// What a contestant is called in full: `ours/current`.
pub(crate) fn label(name: &str, runtime: Runtime) -> String {
    format!("{name}/{}", runtime.label())
}

/// The ways of each peer: `delay` is without `TCP_NODELAY`, `quorum` drops the futures of the
/// others at the verdict.
const PEERS: [&str; 13] = [
    "redis-all",
    "redis-all-delay",
    "redis-quorum",
    "redis-quorum-delay",
    "fred-all",
    "fred-all-delay",
    "fred-quorum",
    "fred-quorum-delay",
    "rustis-all",
    "rustis-all-delay",
    "rustis-quorum",
    "rustis-quorum-delay",
    "rslock",
];

/// All that take part in the comparison, connected.
pub(crate) fn field(args: &Args, nodes: &Nodes) -> Result<Vec<Entrant>, Failure> {
    let alone = nodes.endpoints.len() == 1;
    let mut names = vec![("floor", Runtime::Thread), ("floor-all", Runtime::Thread)];
    if alone {
        names = vec![("floor", Runtime::Thread), ("ceiling", Runtime::Thread)];
    }
    for runtime in [Runtime::Current, Runtime::Multi] {
        // Twice: what differs between the two is chance.
        names.extend(["ours", "ours-again"].map(|name| (name, runtime)));
        // One node is its own majority, and of one node only `redis` was promised anything.
        let peers = PEERS.into_iter().filter(|name| !alone || name.starts_with("redis-all"));
        names.extend(peers.map(|name| (name, runtime)));
        names.extend(["ours-body", "ours-body-again"].map(|name| (name, runtime)));
    }
    let wanted = names.into_iter().filter(|(name, runtime)| args.wants(name, *runtime));
    wanted.map(|(name, runtime)| enter(args, nodes, name, runtime)).collect()
}

/// Those who are measured with the script and with the native command, connected.
pub(crate) fn native_field(args: &Args, nodes: &Nodes) -> Result<Vec<Entrant>, Failure> {
    const PEERS: [&str; 4] = ["redis-all", "redis-all-delay", "redis-quorum", "redis-quorum-delay"];
    const NATIVE_PEERS: [&str; 4] = [
        "native-redis-all",
        "native-redis-all-delay",
        "native-redis-quorum",
        "native-redis-quorum-delay",
    ];
    let alone = nodes.endpoints.len() == 1;
    let mut names = vec![("floor", Runtime::Thread), ("native-floor", Runtime::Thread)];
    if alone {
        names.extend(["ceiling", "native-ceiling"].map(|name| (name, Runtime::Thread)));
    }
    for runtime in [Runtime::Current, Runtime::Multi] {
        // Twice: what differs between the two is chance.
        let ours = ["ours", "native-ours", "native-ours-again"];
        names.extend(ours.map(|name| (name, runtime)));
        let peers = PEERS.into_iter().chain(NATIVE_PEERS).filter(|_| !alone);
        names.extend(peers.map(|name| (name, runtime)));
    }
    let wanted = names.into_iter().filter(|(name, runtime)| args.wants(name, *runtime));
    wanted.map(|(name, runtime)| enter(args, nodes, name, runtime)).collect()
}

/// Connects one, by its name.
pub(crate) fn enter(
    args: &Args,
    nodes: &Nodes,
    name: &'static str,
    runtime: Runtime,
) -> Result<Entrant, Failure> {
    let place = if name.contains("-body") { Place::Body } else { Place::Spawned };
    // A body is one caller.
    let callers_max = if place == Place::Body { 1 } else { usize::MAX };
    let leaves_keys = name.contains("redis-quorum");
    let (args, nodes) = (args.clone(), nodes.clone());
    let stage = Stage::new(move || make(&args, &nodes, name, runtime, place))?;
    Ok(Entrant { name, runtime, leaves_keys, callers_max, contestant: Box::new(stage) })
}

fn make(
    args: &Args,
    nodes: &Nodes,
    name: &str,
    runtime: Runtime,
    place: Place,
) -> Result<Box<dyn Contestant>, Failure> {
    let urls = &*nodes.urls;
    let wait = if name.contains("-quorum") { Wait::Quorum } else { Wait::All };
    let nodelay = !name.ends_with("-delay");
    let (by, name) = match name.strip_prefix("native-") {
        Some(name) => (DeleteBy::Native, name),
        None => (DeleteBy::Script, name),
    };
    Ok(match name.split('-').next().unwrap_or_default() {
        "floor" if name == "floor-all" => Box::new(Floor::connect(nodes, urls.len(), by)?),
        "floor" => Box::new(Floor::connect(nodes, urls.len() / 2 + 1, by)?),
        "ceiling" => Box::new(Ceiling::connect(nodes, by)?),
        "ours" => start(runtime, place, async || Ours::connect(urls, args, by).await)?,
        "redis" => start(runtime, place, async || Redis::connect(urls, wait, nodelay, by).await)?,
        "fred" => start(runtime, place, async || Fred::connect(urls, wait, nodelay).await)?,
        "rustis" => start(runtime, place, async || Rustis::connect(urls, wait, nodelay).await)?,
        "rslock" => start(runtime, place, async || Rslock::connect(urls).await)?,
        _ => return Err(format!("who is `{name}`?").into()),
    })
}

fn start<L: Lock>(
    runtime: Runtime,
    place: Place,
    connect: impl AsyncFnOnce() -> Result<L, Failure>,
) -> Result<Box<dyn Contestant>, Failure> {
    Ok(Box::new(OnTokio::start(runtime, place, connect)?))
}
