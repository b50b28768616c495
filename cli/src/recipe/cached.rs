//! `quorlock cached`: a command whose output is kept for a while.

use std::cell::Cell;

use quorlock::recipe::{CacheOptions, Cached, CachedError};
use quorlock::{Client, Locker};

use super::captured::{Captured, LONGEST, Outcome};
use super::{locker_and_client, named};
use crate::args::CachedArgs;
use crate::exit::{Cause, Failure};
use crate::{output, words};

/// Why a command's output is not kept.
enum NotKept {
    /// The command failed. Its code, and what it wrote.
    Failed(u8, Vec<u8>),
    /// It wrote too much, which is on our stdout. Its code.
    TooLong(u8),
    /// It could not be run.
    NotRun(Failure),
}

/// It is told in another place why.
struct Why;

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
    let cache: Cached<Client, Why> =
        Cached::with_options(client, locker, options).map_err(Failure::of_options)?;
    let not_kept = Cell::new(None);
    let got = cache.get(named(&args.nodes, &args.key, "/output"), args.ttl, || async {
        let kept = captured.run().await.map_err(NotKept::NotRun).and_then(kept);
        kept.map(Some).map_err(|why| {
            not_kept.set(Some(why));
            Why
        })
    });
    let value = match got.await {
        Ok(value) => Some(value.map(|value| value.to_vec()).unwrap_or_default()),
        Err(CachedError::Compute(_)) => None,
        Err(CachedError::Store(error)) => return Err(Failure::from(error)),
        Err(CachedError::Lock(error)) => return Err(Failure::from(&*error)),
        Err(_) => return Err(Failure::new(Cause::Internal, "an error of the cache is not known")),
    };
    end(args, not_kept.take(), value).await
}

/// What is kept of a command's end.
fn kept(Outcome { ended, output }: Outcome) -> Result<Vec<u8>, NotKept> {
    match (ended.code(), output) {
        (code, None) => Err(NotKept::TooLong(code)),
        (0, Some(output)) => Ok(output),
        (code, Some(output)) => Err(NotKept::Failed(code, output)),
    }
}

/// Prints what there is, and says why the command's output was not kept; the exit code.
async fn end(
    args: &CachedArgs,
    not_kept: Option<NotKept>,
    value: Option<Vec<u8>>,
) -> Result<u8, Failure> {
    let key = words::quoted(&args.key);
    match (not_kept, value) {
        (None, value) => output::write(value.unwrap_or_default()).await.map(|_| 0),
        (Some(NotKept::TooLong(code)), _) => {
            let most = LONGEST >> 20;
            output::say(format_args!("{key}: more than {most} MiB, which is not kept"));
            Ok(code)
        }
        (Some(NotKept::Failed(code, output)), None) => output::write(output).await.map(|_| code),
        (Some(NotKept::NotRun(failure)), None) => Err(failure),
        (Some(why), Some(earlier)) => {
            let why = match why {
                NotKept::NotRun(failure) => failure.what,
                NotKept::Failed(code, _) | NotKept::TooLong(code) => {
                    format!("the command ended with {code}")
                }
            };
            output::say(format_args!("{key}: {why}; the output of before is given"));
            output::write(earlier).await.map(|_| 0)
        }
    }
}
