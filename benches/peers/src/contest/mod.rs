//! Who is measured.
//!
//! | file | contestant |
//! |---|---|
//! | `floor`, `wire` | raw sockets: one thread, epoll, commands encoded beforehand |
//! | `ours` | this library, with its defaults |
//! | `redis` | the `redis` crate, in the ways that may be its best |
//! | `rslock` | the `rslock` crate, with its defaults |
//! | `on_tokio` | what the asynchronous ones share: a runtime, callers, their samples |
//!
//! Another client is one more file with a [`Lock`] and a line in [`field`].
//!
//! All take fresh keys with the same time to live, in a closed loop: acquire, release, again.

mod floor;
mod on_tokio;
mod ours;
mod redis;
mod rslock;
mod wire;

use std::time::Duration;

use floor::Floor;
use on_tokio::{Lock, OnTokio, Place};
use ours::Ours;
use redis::{Redis, Wait};
use rslock::Rslock;

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

/// All that take part, connected.
pub(crate) fn field(args: &Args, servers: &Servers) -> Result<Vec<Entrant>, Failure> {
    let urls = &*servers.urls();
    let mut field = Field { args, entrants: Vec::new() };
    field.floor("floor", servers, urls.len() / 2 + 1)?;
    field.floor("floor-all", servers, urls.len())?;
    for runtime in [Runtime::Current, Runtime::Multi] {
        // Twice: what differs between the two is chance.
        for name in ["ours", "ours-again"] {
            let connect = async || Ours::connect(urls, args.direct_writes).await;
            field.on_tokio(name, runtime, Place::Spawned, connect)?;
        }
        let redis = [
            ("redis-all", Wait::All, true),
            ("redis-all-delay", Wait::All, false),
            ("redis-quorum", Wait::Quorum, true),
            ("redis-quorum-delay", Wait::Quorum, false),
        ];
        for (name, wait, nodelay) in redis {
            let connect = async || Redis::connect(urls, wait, nodelay).await;
            field.on_tokio(name, runtime, Place::Spawned, connect)?;
        }
        field.on_tokio("rslock", runtime, Place::Spawned, async || Rslock::connect(urls).await)?;
    }
    for name in ["ours-body", "ours-body-again"] {
        let connect = async || Ours::connect(urls, args.direct_writes).await;
        field.on_tokio(name, Runtime::Multi, Place::Body, connect)?;
    }
    Ok(field.entrants)
}

struct Field<'a> {
    args: &'a Args,
    entrants: Vec<Entrant>,
}

impl Field<'_> {
    fn floor(
        &mut self,
        name: &'static str,
        servers: &Servers,
        needed: usize,
    ) -> Result<(), Failure> {
        if self.args.wants(name, Runtime::Thread) {
            let contestant = Box::new(Floor::connect(servers, needed)?);
            let (runtime, callers_max) = (Runtime::Thread, usize::MAX);
            self.entrants.push(Entrant {
                name,
                runtime,
                leaves_keys: false,
                callers_max,
                contestant,
            });
        }
        Ok(())
    }

    fn on_tokio<L: Lock>(
        &mut self,
        name: &'static str,
        runtime: Runtime,
        place: Place,
        connect: impl AsyncFnOnce() -> Result<L, Failure>,
    ) -> Result<(), Failure> {
        if self.args.wants(name, runtime) {
            let contestant = Box::new(OnTokio::start(runtime, place, connect)?);
            // A body is one caller.
            let callers_max = if place == Place::Body { 1 } else { usize::MAX };
            let leaves_keys = name.starts_with("redis-quorum");
            self.entrants.push(Entrant { name, runtime, leaves_keys, callers_max, contestant });
        }
        Ok(())
    }
}
