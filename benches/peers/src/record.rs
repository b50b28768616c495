//! The files that a run leaves: what was run, where, and what came out.

use std::path::{Path, PathBuf};

use crate::args::Args;
use crate::contest::Failure;
use crate::results::Results;
use crate::servers::Servers;
use crate::{machine, progress, promise, table};

/// What stands above the tables.
pub(crate) fn head(args: &Args) -> Result<String, Failure> {
    let rows = [
        ["date", &args.date],
        ["command", &command()],
        ["machine", &machine::describe()],
        ["load before", &machine::load()],
        ["servers", &format!("{}, on loopback, no persistence", Servers::start(1)?.version())],
        ["versions", &machine::versions()?],
        ["built with", &machine::source()],
        ["order of rounds", &format!("random (seed {})", args.seed)],
    ]
    .map(|row| row.map(str::to_owned));
    Ok(format!(
        "# Ourselves, the floor and the peers\n\n{}{}",
        table::align(&["", ""], &rows),
        if args.scenarios.iter().any(|it| it.is_of_cycles()) { CYCLES } else { "" }
    ))
}

/// What a cycle is.
const CYCLES: &str = "\nOne cycle is an acquisition (`SET NX PX`, a fresh key) and its release \
    (compare-and-delete by digest), each until a majority has agreed, or all nodes where the \
    name says `all`. Every grant and every release was asserted, and after each round that \
    no node had a key left; \
    only the early quorum of `redis` leaves some (`left/1,000`: keys on all nodes per 1,000 \
    cycles), for it does not send a request whose future is dropped early enough. `delay`: \
    without `TCP_NODELAY`, as `redis` and `fred` have it by default. `body`: in the body of \
    `block_on`, as in `#[tokio::main]`. `fred` and `rustis` have no timeout of a response by \
    default and were given none. Latencies are those of acquisitions, over all \
    rounds; cycles/s and CPU are medians of the rounds; an operation is half a cycle; its \
    allocations and system calls (by `perf`, all of the process) come from one more round.\n";

/// All promises, and how many were kept.
pub(crate) fn summary(results: &Results) -> String {
    let promises = &results.promises;
    let kept = promises.iter().filter(|promise| promise.kept()).count();
    format!(
        "\n## Budgets: {kept} of {} met, in {:.1} minutes\n{}",
        promises.len(),
        progress::minutes(),
        promise::tabulate(promises)
    )
}

/// Writes the record, its figures, and its drawing; returns where the first is. What is not the
/// whole has another name, lest it replace the whole.
pub(crate) fn write(
    args: &Args,
    whole: bool,
    text: &str,
    results: &Results,
    svg: Option<&str>,
) -> Result<PathBuf, Failure> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../record");
    std::fs::create_dir_all(&folder)?;
    let date = &args.date;
    let name = match &args.some {
        _ if whole => format!("{date}-peers.md"),
        Some(scenarios) => format!("{scenarios}-{date}.md"),
        None => format!("{date}-peers-part.md"),
    };
    let path = folder.join(name);
    std::fs::write(&path, text)?;
    std::fs::write(path.with_extension("tsv"), results.to_tsv())?;
    if let Some(svg) = svg {
        std::fs::write(path.with_extension("svg"), svg)?;
    }
    Ok(path)
}

/// How this run was asked for.
fn command() -> String {
    let args: Vec<String> = std::env::args().skip(1).collect();
    format!("`cargo run --release -p quorlock-peers -- {}`", args.join(" "))
}
