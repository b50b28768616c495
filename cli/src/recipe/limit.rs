//! `quorlock limit`: a command that runs at most so often.

use std::convert::Infallible;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use quorlock::recipe::{Limit, Taken};

use super::{first, named};
use crate::args::LimitArgs;
use crate::exit::{Cause, Failure};
use crate::nodes::Nodes;
use crate::{clock, output, runtime, tied, words};

/// Becomes the command if it may run.
pub(crate) fn run(args: &LimitArgs) -> Result<Infallible, Failure> {
    tied::check(&args.command)?;
    runtime::block_on(pass(args))?;
    output::finish();
    let Some((program, rest)) = args.command.split_first() else {
        return Err(Failure::new(Cause::Usage, "no command was given"));
    };
    Err(tied::refusal(program, &Command::new(program).args(rest).exec()))
}

/// Returns when it may run.
async fn pass(args: &LimitArgs) -> Result<(), Failure> {
    let client = first(&Nodes::find(&args.nodes)?)?;
    let (count, per) = args.rate;
    let limit = Limit::new(client, named(&args.nodes, &args.key, "/limit"), count, per);
    let limit = limit.and_then(|limit| match args.burst {
        Some(burst) => limit.burst(burst),
        None => Ok(limit),
    });
    let limit = limit.map_err(Failure::of_options)?;
    let began = clock::now();
    loop {
        let retry_after = match limit.take_many(args.count).await {
            Ok(Taken::Limited { retry_after }) => retry_after,
            Ok(_) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let waited = clock::now().saturating_duration_since(began);
        if waited.saturating_add(retry_after) > args.wait {
            let (key, later) = (words::quoted(&args.key), words::Humane(retry_after));
            let what = format!("{key} is at its limit; it may run in {later}");
            return Err(Failure::new(Cause::Busy, what));
        }
        clock::sleep(retry_after.max(Duration::from_millis(1))).await;
    }
}
