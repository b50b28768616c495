//! The same work over TCP, a Unix socket and TLS, ours and `redis`, against each other in one run.

use crate::args::Args;
use crate::contest::{self, Entrant, Failure, Runtime};
use crate::results::Results;
use crate::rounds;
use crate::servers::{Servers, Transport};
use crate::{budget, progress, table};

/// One caller, for latency; many, for cycles.
const CALLERS: [usize; 2] = [1, 64];

/// Who takes part, and over what.
const NAMES: [(&str, Transport); 8] = [
    ("ours", Transport::Tcp),
    ("ours-unix", Transport::Unix),
    ("ours-tls", Transport::Tls),
    // What differs between the two is chance.
    ("ours-tls-again", Transport::Tls),
    ("redis-all", Transport::Tcp),
    ("redis-all-unix", Transport::Unix),
    ("redis-all-tls", Transport::Tls),
    ("redis-quorum-tls", Transport::Tls),
];

/// What is compared in the same round.
const PAIRS: [(&str, &str); 7] = [
    ("ours-tls", "ours-tls-again"),
    ("ours-tls", "redis-all-tls"),
    ("ours-tls", "redis-quorum-tls"),
    ("ours-unix", "redis-all-unix"),
    ("ours-tls", "ours"),
    ("ours-unix", "ours"),
    ("redis-all-tls", "redis-all"),
];

/// Measures it.
pub(crate) fn run(args: &Args, results: &mut Results) -> Result<String, Failure> {
    let plan = args.plan((5, 150), (10, 250));
    let servers = Servers::start_with_tls(args.nodes)?;
    let mut field: Vec<Entrant> = Vec::new();
    for runtime in [Runtime::Current, Runtime::Multi] {
        for (name, transport) in NAMES.into_iter().filter(|(name, _)| args.wants(name, runtime)) {
            field.push(contest::enter(args, &servers.nodes(transport), name, runtime)?);
        }
    }
    let mut text = format!(
        "\n## Transports: TCP, Unix sockets, TLS\n\n{} rounds of {:?}. One server, {}, that \
         speaks TLS itself; rustls on ring on our side and on that of `redis`. Connections are \
         made once, before anything is measured.\n",
        plan.rounds,
        plan.time,
        servers.version()
    );
    for callers in CALLERS {
        let setting = format!("transports, {}", budget::setting(args.nodes, callers));
        progress::step(&setting);
        let mut heat = rounds::run(plan, &servers, &mut field, callers)?;
        rounds::count(plan, &servers, &mut field, &mut heat)?;
        text += &format!("\n### {}\n\n", budget::setting(args.nodes, callers));
        text += &table::figures(&heat);
        text += "\nEach pair in the same round: median [95 %].\n\n";
        text += &table::pairs(&heat, &PAIRS, &setting, results);
        text += &table::repeats(&heat);
        table::note(&heat, &setting, results);
    }
    Ok(text)
}
