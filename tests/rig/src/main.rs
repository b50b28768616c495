//! A rig of real servers, client processes and faults, that tries to have one lock held twice.
//!
//! ```text
//! supervisor ── starts ──▶ 5 servers, each by a clock of its own
//!     │   │                    ▲
//!     │   └── faults ──▶ the network between (namespaces, or proxies)
//!     │                        ▲
//!     ◀── history lines ── client processes: ours, rslock, pottery, node-redlock
//! ```
//!
//! `cargo run -p quorlock-rig -- --seconds 60` runs it for a minute, `--help` lists the options. It
//! ends with 1, the seed and the two holds when two clients held one key at a time, and likewise
//! when a key was left behind, when guards came whose time was over, or when a client failed in a
//! way that no fault explains. The seed decides which faults come when, and what each client tries;
//! it does not decide how the processes are scheduled, so a seed makes a find likely and not
//! certain.
//!
//! For an hour, at half the load, with the summary in a file and the faults as they came beside it:
//!
//! ```text
//! cargo run --release -p quorlock-rig -- --seconds 3600 --rate 60 --log target/rig/hour.md
//! ```
//!
//! With hand-overs between processes, and one more process for each actor (`--actors`); what the
//! locks' loss signals do when a process holds as many locks as it can; and what an adoption costs:
//!
//! ```text
//! cargo run --release -p quorlock-rig -- --seconds 3600 --clients 8 --handovers 1050 \
//!     --actors runtimes,program --log target/rig/handovers.md
//! cargo run --release -p quorlock-rig -- --seconds 60 --clients 1 --rate 10 --nodes 3 \
//!     --network proxy --replies-late-ms 45 --faults none --actors saturated --locks 24000 \
//!     --log target/rig/loss.md
//! cargo run --release -p quorlock-rig -- adoption-cost
//! ```
//!
//! With locks that many read, and some write:
//!
//! ```text
//! cargo run --release -p quorlock-rig -- --seconds 600 --clients 8 --readers 70
//! ```
//!
//! With locks that are asked for as fair, beside others:
//!
//! ```text
//! cargo run --release -p quorlock-rig -- --seconds 600 --clients 8 --fair 70
//! ```
//!
//! With locks that are asked for in strict order, beside others:
//!
//! ```text
//! cargo run --release -p quorlock-rig -- --seconds 600 --clients 8 --strict 70
//! ```
//!
//! With locks of two or three of the keys at once, beside those of one:
//!
//! ```text
//! cargo run --release -p quorlock-rig -- --seconds 600 --clients 8 --several 40
//! ```
//!
//! With locks that keep others out after they have expired, and with several handles of one lock:
//!
//! ```text
//! cargo run --release -p quorlock-rig -- --seconds 600 --clients 8 --delayed 70
//! cargo run --release -p quorlock-rig -- --seconds 600 --clients 8 --handles 70
//! ```
//!
//! With latches, and with holders that are asked to let go of their locks:
//!
//! ```text
//! cargo run --release -p quorlock-rig -- --seconds 600 --clients 8 --latches 70
//! cargo run --release -p quorlock-rig -- --seconds 600 --clients 8 --revoked 30
//! ```
//!
//! With keys of which each has two slots:
//!
//! ```text
//! cargo run --release -p quorlock-rig -- --seconds 600 --clients 8 --slots 2
//! ```
//!
//! What a store lets through that compares fences, where locks fail again and again, and what one
//! that does not:
//!
//! ```text
//! cargo run --release -p quorlock-rig -- --seconds 3600 --clients 0 --ttl-ms 500 --keys 2 \
//!     --actors guarded,guarded,guarded,guarded,guarded,guarded --faults freeze-client,clock-leap
//! ```
//!
//! What the locks are promised under is kept, unless an option breaks it: the servers' clocks gain
//! less than 1 % within a TTL, and servers that forget are told to lockers as such. With
//! `--faults clock-leap`, or `--durability forgetful`, the promise is broken, and the rig must find
//! two holders: `tests/broken.rs` holds it to that, as `tests/weakened rig`, in the root, does with
//! a weakened library. A rig that finds nothing proves nothing.
//!
//! `tests/rig/tools` fetches what it can use beside the servers. All processes are ended by their
//! ids, or by the kernel when the supervisor ends in whatever way; the namespaces are nameless and
//! end with them.
//!
//! | file | owns |
//! |---|---|
//! | `args` | what the command line asks for, and what a client is told |
//! | `run` | the supervisor: starts everything, lets the faults come, and ends it |
//! | `collector` | listens to the clients, takes down what they tell, delivers tokens, judges |
//! | `faults`, `paths` | which fault comes when; what the network does: both pure |
//! | `network` | the paths between clients and nodes, by namespaces or by proxies |
//! | `nodes`, `shim` | the servers; their clocks |
//! | `processes`, `client`, `foreign` | the processes; what ours does; how others are started |
//! | `line` | what clients tell: pure |
//! | `history`, `latches` | who held what and when; what was told of latches: both pure |
//! | `commands` | which commands outlived their lock because the machine was busy: pure |
//! | `handovers`, `disturbances` | tokens between processes; which fault met whom: both pure |
//! | `cost` | what an adoption costs, without faults |
//! | `stores` | what fenced locks protect, and which writes there are stale |
//! | `leftovers`, `report` | what must not be left on the nodes; what a run has shown |
//! | `clock`, `random`, `tools` | the one clock; chance by a seed; the programs that are needed |

mod args;
mod client;
mod clock;
mod collector;
mod commands;
mod cost;
mod disturbances;
mod faults;
mod foreign;
mod handovers;
mod history;
mod latches;
mod leftovers;
mod line;
mod network;
mod nodes;
mod paths;
mod processes;
mod random;
mod report;
mod run;
mod shim;
mod stores;
mod tools;

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::ExitCode;

use args::{Args, ClientArgs};
use network::Network;

/// Why something could not be done, for people.
type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).peekable();
    let mode = words.next_if(|word| ["client", "adoption-cost"].contains(&&**word));
    let done = match mode.as_deref() {
        Some("client") => ClientArgs::parse(words).and_then(client::run),
        Some(_) => Args::parse(words).and_then(|args| {
            print!("{}", cost::run(&args)?);
            Ok(())
        }),
        None => return conclude(Args::parse(words).and_then(supervise)),
    };
    conclude(done.map(|()| ExitCode::SUCCESS))
}

fn conclude(done: Result<ExitCode, Failure>) -> ExitCode {
    done.unwrap_or_else(|failure| {
        eprintln!("error: {failure}");
        ExitCode::from(2)
    })
}

fn supervise(args: Args) -> Result<ExitCode, Failure> {
    let entrance = if args.inside { None } else { Network::entrance(args.network)? };
    if let Some(mut command) = entrance {
        command.arg(std::env::current_exe()?).args(std::env::args().skip(1));
        command.args(["--seed", &args.seed.to_string(), "--inside", "yes"]);
        // This process becomes that one: only an error comes back.
        return Err(command.exec().into());
    }
    let report = run::run(&args)?;
    print!("{report}");
    if let Some(path) = &args.log {
        report.save(path)?;
    }
    let Some(verdict) = report.verdict() else { return Ok(ExitCode::SUCCESS) };
    // The last line of all, behind the report on the other stream.
    std::io::stdout().flush()?;
    eprintln!("{verdict}");
    Ok(ExitCode::FAILURE)
}
