//! The lock beside the raw sockets and beside its peers: the same work, in one run.
//!
//! | file | owns |
//! |---|---|
//! | `args` | what the command line asks for |
//! | `scenario` | what is measured, each behind [`scenario::run`] |
//! | `servers` | the nodes: found, started, stopped, and asked whether a key is left |
//! | `clock`, `progress` | the two clocks: the wall and the process's CPU; what is shown |
//! | `contest` | who is measured, each behind [`contest::Contestant`] |
//! | `hand_over` | the next holder in another process: two processes for each contestant |
//! | `crowd` | many processes that want one lock, all the time |
//! | `side` | a process that takes part: started, told, heard |
//! | `rounds` | interleaved rounds in random order, with equal work asserted |
//! | `count` | allocations and system calls, counted beside the timed rounds |
//! | `stats` | medians, paired ratios, bootstrap intervals: pure |
//! | `promise`, `budget` | what was promised, and whether it was kept |
//! | `results`, `agree` | all figures by name; whether two runs agree |
//! | `table`, `record`, `readme`, `machine` | what the terminal shows, what the files say |

mod agree;
mod args;
mod budget;
mod clock;
mod contest;
mod count;
mod crowd;
mod hand_over;
mod machine;
mod progress;
mod promise;
mod readme;
mod record;
mod results;
mod rounds;
mod scenario;
mod servers;
mod side;
mod stats;
mod table;
mod waiting;

use std::path::Path;
use std::process::ExitCode;

use args::{Args, Command, Mode};
use contest::Failure;
use results::Results;
use scenario::Part;

fn main() -> ExitCode {
    let done = Command::parse(std::env::args().skip(1)).and_then(|command| match command {
        Command::Measure(args) => measure(&args),
        Command::Agree(old, new) => agree(&old, &new),
        Command::HandOver(name, urls) => {
            hand_over::run_child(&name, &urls).map(|()| ExitCode::SUCCESS)
        }
        Command::Crowd(name, urls) => crowd::run_child(&name, &urls).map(|()| ExitCode::SUCCESS),
    });
    match done {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

#[global_allocator]
static ALLOCATOR: count::Counting = count::Counting;

fn measure(args: &Args) -> Result<ExitCode, Failure> {
    let mut results = Results::default();
    let head = record::head(args)?;
    print!("{head}");
    let mut parts = String::new();
    let mut svg = None;
    let mut failed = false;
    for scenario in &args.scenarios {
        progress::step(&format!("{scenario:?}"));
        // What the others have measured is worth keeping.
        let part = scenario::run(*scenario, args, &mut results).unwrap_or_else(|failure| {
            failed = true;
            Part::from(format!("\n## Not measured: {scenario:?}\n\n{failure}\n"))
        });
        print!("{}", part.text);
        parts += &part.text;
        svg = svg.or(part.svg);
    }
    let summary = record::summary(&results);
    print!("{summary}");
    if args.mode == Mode::Record {
        let text = head + &summary + &parts;
        let whole = args.whole && !failed;
        let path = record::write(args, whole, &text, &results, svg.as_deref())?;
        eprintln!("written: {} and beside it", path.display());
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        readme::rewrite(&results, &args.date, whole, &name)?;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn agree(old: &Path, new: &Path) -> Result<ExitCode, Failure> {
    let read = |path: &Path| -> Result<Results, Failure> {
        let text = std::fs::read_to_string(path);
        Results::from_tsv(&text.map_err(|error| format!("{}: {error}", path.display()))?)
    };
    let agreement = agree::compare(&read(old)?, &read(new)?);
    print!("{}", agreement.text);
    Ok(if agreement.agrees { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
