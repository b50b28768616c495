//! `quorlock cached`: a command whose output is kept for a while.

use std::sync::Arc;

use quorlock::recipe::{CacheOptions, Cached, CachedError};
use quorlock::{Client, Locker};

use super::captured::{Captured, LONGEST, Outcome};
use super::{locker_and_client, prefixed};
use crate::args::CachedArgs;
use crate::exit::{Cause, Failure};
use crate::{output, words};

/// Why a command's output is not kept.
enum NotKept {
    /// The command failed. Its code, and what it wrote.
    Failed(u8, Vec<u8>),
    /// It wrote too much, which was passed on. Its code.
    TooLong(u8),
    /// It could not be run.
    NotRun(Failure),
}

/// Prints the command's output, of now or of a while ago; the exit code.
pub(crate) async fn run(args: &CachedArgs) -> Result<u8, Failure> {
    let (locker, client) = locker_and_client(&args.nodes, args.wait)?;
    let captured = Captured::new(&args.command, &args.key);
    captured.within(get(args, locker, client, &captured)).await
}

async fn get(
    args: &CachedArgs,
    locker: Locker,
    client: Client,
    captured: &Captured<'_>,
) -> Result<u8, Failure> {
    let mut options = CacheOptions::default();
    options.stale = args.stale;
    let cache: Cached<Client, NotKept> =
        Cached::with_options(client, locker, options).map_err(Failure::of_options)?;
    let failed = std::cell::Cell::new(None);
    let got = cache.get(prefixed(&args.nodes, &args.key), args.ttl, || async {
        let outcome = captured.run().await.map_err(NotKept::NotRun)?;
        let Outcome { ended, output } = outcome;
        match output {
            None => Err(NotKept::TooLong(ended.code())),
            Some(output) if ended.code() == 0 => Ok(Some(output)),
            Some(output) => {
                failed.set(Some(ended.code()));
                Err(NotKept::Failed(ended.code(), output))
            }
        }
    });
    let error = match got.await {
        Ok(value) => {
            if let Some(code) = failed.get() {
                let key = words::quoted(&args.key);
                let what = "the output of before is given";
                output::say(format_args!("{key}: the command ended with {code}; {what}"));
            }
            output::write(value.map(|value| value.to_vec()).unwrap_or_default()).await?;
            return Ok(0);
        }
        Err(CachedError::Compute(error)) => error,
        Err(CachedError::Store(error)) => return Err(Failure::from(error)),
        Err(CachedError::Lock(error)) => return Err(Failure::from(&*error)),
        Err(_) => return Err(Failure::new(Cause::Internal, "an error of the cache is not known")),
    };
    // This process has no other caller that could share it.
    match Arc::into_inner(error) {
        Some(NotKept::Failed(code, output)) => {
            output::write(output).await?;
            Ok(code)
        }
        Some(NotKept::TooLong(code)) => {
            let (key, most) = (words::quoted(&args.key), LONGEST >> 20);
            output::say(format_args!("{key}: more than {most} MiB, which is not kept"));
            Ok(code)
        }
        Some(NotKept::NotRun(failure)) => Err(failure),
        None => Err(Failure::new(Cause::Internal, "the command's end is another's as well")),
    }
}
