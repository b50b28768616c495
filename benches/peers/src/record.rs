//! The file that a run leaves: what was run, where, and what came out.

use std::path::{Path, PathBuf};

use crate::args::Args;
use crate::contest::Failure;
use crate::machine;
use crate::servers::Servers;
use crate::{clock, table};

/// What stands above the tables.
pub(crate) fn head(args: &Args, servers: &Servers) -> Result<String, Failure> {
    let rows = [
        ["date", &clock::date()],
        ["command", &command()],
        ["machine", &machine::describe()],
        ["load before", &machine::load()],
        [
            "servers",
            &format!("{} × {}, on loopback, no persistence", args.nodes, servers.version()),
        ],
        ["versions", &machine::versions()?],
        ["built with", &machine::source()],
        [
            "rounds",
            &format!("{} of {:?}, in random order (seed {})", args.rounds, args.round, args.seed),
        ],
    ]
    .map(|row| row.map(str::to_owned));
    Ok(format!(
        "# Ourselves, the floor and the peers\n\n{}\n\
         One cycle is an acquisition (`SET NX PX`, a fresh key) and its release \
         (compare-and-delete by digest), each until a majority has agreed, or all nodes where the \
         name says `all`. Every grant and every release was asserted, and after each round that \
         no node had a key left; \
         only the early quorum of `redis` leaves some (`left/1,000`: keys on all nodes per 1,000 \
         cycles), for it does not send a request whose future is dropped early enough. `delay`: \
         without `TCP_NODELAY`, as that crate has it by default. `body`: in the body of `block_on` \
         beside the workers, as in `#[tokio::main]`. Latencies are those of acquisitions, over all \
         rounds; cycles/s and CPU are medians of the rounds; an operation is half a cycle; its \
         allocations and system calls (by `perf`, all of the process) come from one more round.\n",
        table::align(&["", ""], &rows)
    ))
}

/// Writes the record; returns where.
pub(crate) fn write(text: &str) -> Result<PathBuf, Failure> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../record");
    std::fs::create_dir_all(&folder)?;
    let path = folder.join(format!("{}-peers.md", clock::date()));
    std::fs::write(&path, text)?;
    Ok(path)
}

/// How this run was asked for.
fn command() -> String {
    let args: Vec<String> = std::env::args().skip(1).collect();
    format!("`cargo run --release -p quorlock-peers -- {}`", args.join(" "))
}
