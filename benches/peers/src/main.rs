//! The lock beside the raw sockets and beside its peers: the same work, in one run.
//!
//! | file | owns |
//! |---|---|
//! | `args` | what the command line asks for |
//! | `servers` | the nodes: found, started, stopped, and asked whether a key is left |
//! | `clock` | the two clocks: the wall and the process's CPU |
//! | `contest` | who is measured, each behind [`contest::Contestant`] |
//! | `rounds` | interleaved rounds in random order, with equal work asserted |
//! | `stats` | medians, paired ratios, bootstrap intervals: pure |
//! | `table` | what the terminal shows |

mod args;
mod clock;
mod contest;
mod rounds;
mod servers;
mod stats;
#[path = "../../../tests/support/mod.rs"]
mod support;
mod table;

use std::process::ExitCode;

use args::Args;
use contest::Failure;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failure> {
    let args = Args::parse(std::env::args().skip(1))?;
    let servers = servers::Servers::start(args.nodes)?;
    let mut field = contest::field(&args, &servers)?;
    for &callers in &args.callers {
        let heat = rounds::run(&args, &servers, &mut field, callers)?;
        table::print(&heat);
    }
    Ok(())
}
