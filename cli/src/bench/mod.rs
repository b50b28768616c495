//! `quorlock bench`: our lock and bare sockets (the *floor*), on the user's own nodes.
//!
//! | file | job |
//! |---|---|
//! | `population` | refusing nodes that hold keys |
//! | `place` | parsing a node's URL for the floor |
//! | `timetable`, `timer` | when cycles start: closed and open loop |
//! | `ours` | our lock, through the library's public API |
//! | `floor/` | what bare sockets can do |
//! | `rounds` | taking turns |
//! | `figures` | percentiles, rates, ratios |
//! | `assertion` | assertions about a run |
//! | `table`, `report`, `chart` | the results as a table, as JSON (`schema.json`), as a picture |
//! | `progress` | a progress bar |
//! | `sweep` | deleting keys that are left over |
//!
//! ```text
//! read the assertions ─▶ count the keys ─▶ connect ─▶ take turns ─▶ sweep ─▶ show ─▶ assert
//!          │ 64                │ 78           │ 69, 77     │ signal ──▶ sweep          │ 99
//! ```

mod assertion;
mod chart;
mod figures;
mod floor;
mod ours;
mod place;
mod population;
mod progress;
mod report;
mod rounds;
mod sweep;
mod table;
mod timer;
mod timetable;

use std::fs::File;
use std::io::Write;
use std::path::Path;

use quorlock::{Locker, NodeOptions};
use tokio::runtime::Runtime;

use crate::args::{BenchArgs, RuntimeKind};
use crate::exit::{Cause, Failure};
use crate::nodes::{self, Nodes};
use crate::{output, reach, runtime};
use assertion::Assertion;
use figures::{Outcome, Row};
use floor::Floor;
use ours::Ours;
use place::Place;
use progress::Progress;
use rounds::Contest;
use sweep::TTL;

/// What `--json` prints, as a JSON Schema.
const SCHEMA: &str = include_str!("schema.json");

/// The default numbers of callers: of a closed loop, and of an open one, which only needs enough.
const CALLERS: [u16; 2] = [1, 64];
const CALLERS_OPEN: [u16; 1] = [64];

/// Where it is measured. Not `Debug`: it holds passwords.
struct Site<'a> {
    nodes: Nodes<'a>,
    places: Vec<Place>,
    /// Put before every key: the requested prefix, and a unique part.
    prefix: Vec<u8>,
}

/// Measures, shows, and asserts.
pub(crate) fn run(args: &BenchArgs) -> Result<(), Failure> {
    if args.schema {
        return runtime::block_on(output::print(SCHEMA));
    }
    // Errors of the command line come before anything is sent.
    let assertions = args.assertions.iter().map(|text| Assertion::parse(text));
    let assertions = assertions.collect::<Result<Vec<_>, _>>()?;
    let prefix = prefix(args);
    let nodes = Nodes::find(&args.nodes)?;
    let locker = nodes::build(nodes.locker()?.prefix(prefix.clone()).ttl(TTL))?;
    let places =
        nodes.iter().zip(locker.health()).map(|(node, known)| Place::of(node, &known.node));
    let places = places.collect::<Result<Vec<_>, _>>()?;
    let site = Site { nodes, places, prefix };

    let runtime = runtime_of(args.runtime)?;
    if !args.force {
        runtime.block_on(population::refuse_if_any(site.nodes.clients()?, &site.places))?;
    }
    let mut chart = args.chart.as_deref().map(create).transpose()?;
    runtime.block_on(connect(&locker))?;
    let outcome = measure(args, &runtime, locker, &site)?;

    runtime.block_on(output::print(if args.json {
        report::json(args, &outcome, &assertions) + "\n"
    } else {
        table::text(args, &outcome)
    }))?;
    if let Some(file) = &mut chart {
        file.write_all(chart::svg(&outcome.rows).as_bytes())
            .map_err(|error| Failure::internal("cannot write the chart", &error))?;
    }
    judge(&outcome.rows, &assertions)
}

/// Measures with each number of callers. However that ends, all keys are deleted.
fn measure(
    args: &BenchArgs,
    runtime: &Runtime,
    locker: Locker,
    site: &Site<'_>,
) -> Result<Outcome, Failure> {
    let Site { nodes, places, prefix } = site;
    let no_floor = no_floor(nodes.iter().map(|node| &node.options));
    let callers = match (args.callers.as_slice(), args.rate) {
        ([], None) => &CALLERS[..],
        ([], Some(_)) => &CALLERS_OPEN,
        (given, _) => given,
    };
    let share = args.duration / u32::try_from(callers.len()).unwrap_or(u32::MAX);
    let needed = nodes::majority(places.len());
    let floor = match no_floor {
        None => Some(Floor::connect(places, needed, &[prefix, &b"floor:"[..]].concat())?),
        Some(_) => None,
    };
    let ours = Ours::new(runtime, locker, prefix)?;
    let mut contest = Contest { ours, floor, progress: Progress::new() };
    let rows = callers.iter().map(|&callers| contest.measure(callers.into(), share, args.rate));
    let rows: Result<Vec<Row>, Failure> = rows.collect();
    contest.progress.end();
    let floor = contest.floor.as_ref().map(Floor::leftovers).unwrap_or_default();
    let leftovers = [contest.ours.leftovers(), floor].concat();
    runtime.block_on(sweep::delete(nodes.clients()?, &leftovers));
    let nodes = places.iter().map(|place| place.label.clone()).collect();
    Ok(Outcome { nodes, rows: rows?, no_floor })
}

/// The requested prefix, a readable name, and 64 random bits.
fn prefix(args: &BenchArgs) -> Vec<u8> {
    let name = format!("quorlock-bench:{:016x}:", runtime::random());
    [args.nodes.prefix.as_encoded_bytes(), name.as_bytes()].concat()
}

/// Checks every assertion with every number of callers; one line names those that fail.
fn judge(rows: &[Row], assertions: &[Assertion]) -> Result<(), Failure> {
    let mut refuted = Vec::new();
    for assertion in assertions {
        let failing = rows.iter().filter(|row| !assertion.holds(&row.ours));
        refuted.extend(failing.map(|row| assertion.refute(&row.ours, row.callers)));
    }
    if refuted.is_empty() {
        return Ok(());
    }
    Err(Failure::new(Cause::Assertion, format!("assertion {}", refuted.join("; "))))
}

/// Waits until each node's first attempt to connect has ended and a majority is connected.
async fn connect(locker: &Locker) -> Result<(), Failure> {
    reach::every_answer(locker).await?;
    Ok(reach::majority(locker, reach::PATIENCE).await?)
}

fn runtime_of(kind: RuntimeKind) -> Result<Runtime, Failure> {
    let built = match kind {
        RuntimeKind::Current => return runtime::on_this_thread(),
        RuntimeKind::Multi => tokio::runtime::Builder::new_multi_thread().enable_all().build(),
    };
    built.map_err(|error| Failure::internal("cannot start the runtime", &error))
}

/// Why the floor cannot be measured on these nodes.
fn no_floor<'a>(mut nodes: impl Iterator<Item = &'a NodeOptions>) -> Option<String> {
    nodes
        .find(|node| node.is_tls())
        .map(|_| "bare sockets speak no TLS; only ourselves are measured".into())
}

fn create(path: &Path) -> Result<File, Failure> {
    File::create(path).map_err(|error| {
        let what = format!("cannot write {}: {error}; give --chart another file", path.display());
        Failure::new(Cause::Usage, what)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_left_out_where_it_cannot_speak() {
        let nodes = |second: &str| ["redis://a", second].map(|url| url.parse().unwrap());
        assert_eq!(no_floor(nodes("unix:///b").iter()), None);
        for second in ["rediss://b", "VALKEYS://b"] {
            let why = no_floor(nodes(second).iter());
            assert!(why.is_some_and(|why| why.contains("TLS")), "{second}");
        }
    }
}
