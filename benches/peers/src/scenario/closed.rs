//! The closed loop: each caller acquires, releases, and begins again.

use crate::args::{Args, Mode};
use crate::contest::{self, Failure};
use crate::results::Results;
use crate::rounds::{self, Plan};
use crate::servers::{Servers, Transport};
use crate::{budget, progress, table};

/// Callers on one node.
const CALLERS_ON_ONE: usize = 512;

/// All contestants on as many nodes as are asked for.
pub(crate) fn peers(args: &Args, results: &mut Results) -> Result<String, Failure> {
    let plan = args.plan((5, 150), (20, 250));
    heats(args, plan, args.nodes, &args.callers, results)
}

/// All contestants on one node, beside what it can do at all.
pub(crate) fn one(args: &Args, results: &mut Results) -> Result<String, Failure> {
    let plan = args.plan((5, 150), (20, 250));
    let text = heats(args, plan, 1, &[CALLERS_ON_ONE], results)?;
    Ok(text
        + "\n`ceiling` is one raw connection with two batches of as many cycles as there are \
           callers always under way, `SET` and `EVALSHA` behind each other: the server is never \
           idle. Its latencies are those of whole batches.\n")
}

fn heats(
    args: &Args,
    plan: Plan,
    nodes: usize,
    callers: &[usize],
    results: &mut Results,
) -> Result<String, Failure> {
    let servers = Servers::start(nodes)?;
    let mut field = contest::field(args, &servers.nodes(Transport::Tcp))?;
    let mut text = String::new();
    for &callers in callers {
        progress::step(&budget::setting(nodes, callers));
        let mut heat = rounds::run(plan, &servers, &mut field, callers)?;
        if args.mode == Mode::Record || callers == 1 {
            rounds::count(plan, &servers, &mut field, &mut heat)?;
        }
        text += &table::heat(nodes, &heat, results);
    }
    Ok(text)
}
