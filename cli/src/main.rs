//! The `quorlock` program: the library's face for a shell.
//!
//! | file | job |
//! |---|---|
//! | `args/`, `duration` | parsing the command line |
//! | `exit` | what goes wrong, and the exit code that says so |
//! | `nodes` | the nodes, from options and the environment |
//! | `password`, `askpass` | the password they ask for; asking for it on the terminal |
//! | `output/` | all that is written to stderr and stdout |
//! | `runtime` | the runtime, on the main thread |
//! | `reach` | waiting for the nodes when the program starts |
//! | `lock/` | `quorlock lock` and `once`: a command under a lock |
//! | `elect` | `quorlock elect`: a command that runs on one of several machines |
//! | `recipe/` | `quorlock cached`, `idempotent`, `limit`: commands that need not always run |
//! | `status` | `quorlock status`: who holds a key |
//! | `revoke` | `quorlock revoke`: asking the holder of a lock, or of a slot, to let go of it |
//! | `release` | `quorlock release`: ending a lock by its token, or by force |
//! | `bench/` | `quorlock bench`: our lock and bare sockets, on the user's nodes |
//! | `ping/` | `quorlock ping`: each node's round trips and properties |
//! | `demo/` | `quorlock demo`: five servers, two of which fail |
//! | `tied` | child processes that are killed when we die |
//! | `signals` | the signals that we pass on, or end for |
//! | `clock`, `json`, `words` | time; one object per line; durations and keys as people read them |
//! | `latency` | histograms |
//!
//! Everything runs on the main thread: one thread is enough for one lock, and the kernel ties a
//! child's life to the thread that started it. What may block (stderr, stdout, resolving a name)
//! has threads of its own, so that neither a lock nor its command waits for it; see `output`. Only
//! `bench --runtime multi` uses more threads.
#![forbid(unsafe_code)]
#![cfg_attr(not(unix), allow(dead_code, reason = "only `status` runs on all systems"))]

mod args;
#[cfg(unix)]
mod askpass;
#[cfg(unix)]
mod bench;
mod clock;
#[cfg(unix)]
mod demo;
mod duration;
#[cfg(unix)]
mod elect;
mod exit;
mod json;
#[cfg(unix)]
mod latency;
#[cfg(unix)]
mod lock;
mod nodes;
mod output;
mod password;
#[cfg(unix)]
mod ping;
mod reach;
#[cfg(unix)]
mod recipe;
mod release;
mod revoke;
mod runtime;
#[cfg(unix)]
mod signals;
mod status;
#[cfg(unix)]
mod tied;
#[cfg(feature = "tls-rustls")]
mod tls;
mod words;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use exit::{Cause, Failure};

fn main() -> ExitCode {
    output::tell_of_panics();
    // The panic hook has printed it. Rust's own exit code, 101, could be mistaken for the child's.
    let code = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Cause::Internal.code());
    output::finish();
    ExitCode::from(code)
}

fn run() -> u8 {
    #[cfg(target_os = "linux")]
    if let Some(code) = tied::run_if_asked() {
        return code;
    }
    let parsed = Cli::try_parse().and_then(|cli| args::check(&cli).map(|()| cli));
    match parsed {
        Ok(cli) => obey(cli.command).unwrap_or_else(|failure| output::fail(&failure)),
        Err(error) => usage(&error),
    }
}

/// Prints help or the version; anything else from clap is a usage error.
fn usage(error: &clap::Error) -> u8 {
    if !error.use_stderr() {
        // A stdout that is closed takes no answer.
        let _ = error.print();
        return 0;
    }
    // Clap's message may repeat a URL that stands in the wrong place, and its password.
    let said = error.render();
    let hint = args::hint(error);
    output::conclude(match password::without_logins(&said.to_string()) {
        Some(said) => said,
        None if output::has_styles() => said.ansi().to_string() + hint,
        None => said.to_string() + hint,
    });
    Cause::Usage.code()
}

/// Runs the command; the program's exit code.
fn obey(command: Command) -> Result<u8, Failure> {
    let done = match command {
        #[cfg(unix)]
        Command::Lock(args) => return Ok(lock::run(&args)),
        #[cfg(unix)]
        Command::Elect(args) => return runtime::block_on(elect::run(&args)),
        #[cfg(unix)]
        Command::Cached(args) => return runtime::block_on(recipe::cached(&args)),
        #[cfg(unix)]
        Command::Idempotent(args) => return runtime::block_on(recipe::idempotent(&args)),
        #[cfg(unix)]
        Command::Limit(args) => {
            let Err(failure) = recipe::limit(&args);
            let is_limited = failure.cause == Cause::Busy;
            let code = output::fail(&failure);
            return Ok(if is_limited { args.conflict_exit_code } else { code });
        }
        #[cfg(unix)]
        Command::Once(args) => {
            return args.into_lock(clock::since_epoch()).map(|args| lock::run(&args));
        }
        #[cfg(unix)]
        Command::Bench(args) => bench::run(&args),
        #[cfg(unix)]
        Command::Ping(args) => runtime::block_on(ping::run(&args)),
        #[cfg(unix)]
        Command::Demo => demo::run(),
        #[cfg(not(unix))]
        Command::Lock(_) | Command::Bench(_) | Command::Ping(_) | Command::Demo => {
            let what =
                "this command needs a Unix system; here only `status`, `release` and `revoke` work";
            Err(Failure::new(Cause::Internal, what))
        }
        Command::Status(args) => return runtime::block_on(status::run(&args)),
        Command::Release(args) => runtime::block_on(release::run(&args)),
        Command::Revoke(args) => runtime::block_on(revoke::run(&args)),
    };
    done.map(|()| 0)
}
