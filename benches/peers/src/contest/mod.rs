//! Who is measured.
//!
//! | file | contestant |
//! |---|---|
//! | `floor`, `wire` | raw sockets: one thread, epoll, commands encoded beforehand |
//! | `ours` | this library, with its defaults |
//! | `on_tokio` | what the asynchronous ones share: a runtime, callers, their samples |
//!
//! All take fresh keys with the same time to live, in a closed loop: acquire, release, again.

mod floor;
mod on_tokio;
mod ours;
mod wire;

use std::time::Duration;

use floor::Floor;
use on_tokio::{OnTokio, Place};
use ours::Ours;

use crate::args::Args;
use crate::servers::Servers;

/// Anything that ends the run.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// How long every contestant's locks live: our default.
pub(crate) const TTL: Duration = Duration::from_secs(10);

/// How a release is asked of a node where the contestant leaves it open: as the specification of
/// Redlock has it.
const COMPARE_AND_DELETE: &str = "if redis.call('GET',KEYS[1])==ARGV[1] then \
     return redis.call('DEL',KEYS[1]) else return 0 end";

/// One contestant.
pub(crate) trait Contestant {
    /// Runs so many callers until the time is up; each ends with a release. An acquisition that is
    /// not granted and a release that is not confirmed are failures.
    fn run(&mut self, callers: usize, time: Duration) -> Result<Yield, Failure>;

    /// Reads what is still on its way, for a few milliseconds.
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
    /// More callers than this it does not take.
    pub(crate) callers_max: usize,
    pub(crate) contestant: Box<dyn Contestant>,
}

/// All that take part, connected.
pub(crate) fn field(args: &Args, servers: &Servers) -> Result<Vec<Entrant>, Failure> {
    let urls = servers.urls();
    let majority = urls.len() / 2 + 1;
    let mut field = Vec::new();
    let mut enter =
        |name, runtime, callers_max, make: &dyn Fn() -> Result<Box<dyn Contestant>, Failure>| {
            if args.wants(name) {
                let contestant = make()?;
                field.push(Entrant { name, runtime, callers_max, contestant });
            }
            Ok::<(), Failure>(())
        };
    enter("floor", Runtime::Thread, usize::MAX, &|| {
        Ok(Box::new(Floor::connect(servers, majority)?))
    })?;
    enter("floor-all", Runtime::Thread, usize::MAX, &|| {
        Ok(Box::new(Floor::connect(servers, urls.len())?))
    })?;
    for runtime in [Runtime::Current, Runtime::Multi] {
        for name in ["ours", "ours-again"] {
            enter(name, runtime, usize::MAX, &|| {
                let connect = async || Ours::connect(&urls, args.direct_writes).await;
                Ok(Box::new(OnTokio::start(runtime, Place::Spawned, connect)?))
            })?;
        }
    }
    enter("ours-body", Runtime::Multi, 1, &|| {
        let connect = async || Ours::connect(&urls, args.direct_writes).await;
        Ok(Box::new(OnTokio::start(Runtime::Multi, Place::Body, connect)?))
    })?;
    Ok(field)
}
