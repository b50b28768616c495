//! The lock beside the raw sockets and beside its peers: the same work, in one run.
//!
//! | file | owns |
//! |---|---|
//! | `args` | what the command line asks for |
//! | `servers` | the nodes: found, started, stopped, and asked whether a key is left |
//! | `clock` | the two clocks: the wall and the process's CPU |
//! | `contest` | who is measured, each behind [`contest::Contestant`] |
//! | `rounds` | interleaved rounds in random order, with equal work asserted |
//! | `count` | allocations and system calls, counted beside the timed rounds |
//! | `stats` | medians, paired ratios, bootstrap intervals: pure |
//! | `budget` | what was promised, and whether it was kept |
//! | `table`, `record`, `machine` | what the terminal shows, what the file says |

mod args;
mod budget;
mod clock;
mod contest;
mod count;
mod machine;
mod record;
mod rounds;
mod servers;
mod stats;
#[allow(clippy::unwrap_used, reason = "a set-up that fails must end the run on the spot")]
#[path = "../../../tests/support/mod.rs"]
mod support;
mod table;

use std::process::ExitCode;

use args::{Args, Mode};
use contest::Failure;
use servers::Servers;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

#[global_allocator]
static ALLOCATOR: count::Counting = count::Counting;

fn run() -> Result<(), Failure> {
    let args = Args::parse(std::env::args().skip(1))?;
    let servers = Servers::start(args.nodes)?;
    let mut record = record::head(&args, &servers)?;
    print!("{record}");
    let mut field = contest::field(&args, &servers)?;
    for &callers in &args.callers {
        let heat = rounds::run(&args, &servers, &mut field, callers)?;
        let tables = table::heat(args.nodes, &heat);
        print!("{tables}");
        record += &tables;
    }
    if args.mode == Mode::Record {
        eprintln!("written: {}", record::write(&record)?.display());
    }
    Ok(())
}
