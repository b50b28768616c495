//! The options of `quorlock once`: a command that one of several machines runs, which all start it
//! at about the same time.
//!
//! It is `quorlock lock` with other options: the lock lives for the longest time, is not extended,
//! and is kept for the shortest; and that another has it is no failure.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Duration;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use quorlock::recipe::period_key;

use super::lock::{LockArgs, OnLost};
use super::nodes::{self, NodeArgs};
use crate::duration;
use crate::exit::{Cause, Failure};

/// How long the command may run, unless the command line says otherwise.
const AT_MOST: Duration = Duration::from_secs(3_600);

#[derive(Args)]
pub(crate) struct OnceArgs {
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,
    /// Once in each period of this length, counted from 1970 in UTC: 1d for a nightly job. The
    /// number of the present one stands behind the key and a "/"
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ttl)]
    per: Option<Duration>,
    /// Keep the lock for at least this long, also when the command ends sooner: longer than the
    /// clocks and timers of the machines differ [default: --per, else 0s]
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    at_least: Option<Duration>,
    /// End the command after this long. Where its machine dies, another may run it then [default:
    /// 1h, or --at-least where that is longer]
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ttl)]
    at_most: Option<Duration>,
    /// Give the run a fence, as QUORLOCK_FENCE: a number above that of every run before
    #[arg(long)]
    fenced: bool,
    /// What happens to the command, and what it has started, when its time ends or its lock is lost
    #[arg(long, value_name = "HOW", value_enum, default_value_t = OnLost::Term)]
    on_lost: OnLost,
    /// How long to try while too few nodes can be reached
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration::parse)]
    unavailable_wait: Duration,
    /// The exit code when another machine runs it, or has run it
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = 0)]
    conflict_exit_code: u8,
    /// The name that others see while it runs here; host and process are added
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    owner: Option<String>,
    /// Say so, and who it is, when another machine runs it
    #[arg(short, long)]
    verbose: bool,
    /// Print what happened as one JSON object on stderr at the end, and nothing before
    #[arg(long)]
    json: bool,
    /// What the job is called
    #[arg(value_parser = nodes::key())]
    key: OsString,
    /// The command and its arguments, behind a "--"
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

impl OnceArgs {
    /// As `quorlock lock` has it, at this time since 1970.
    pub(crate) fn into_lock(self, now: Duration) -> Result<LockArgs, Failure> {
        let key = match self.per {
            Some(per) => {
                let key = period_key(self.key.as_bytes(), per, now).map_err(Failure::of_options)?;
                OsString::from_vec(key.into_bytes())
            }
            None => self.key,
        };
        let at_least = self.at_least.or(self.per).unwrap_or_default();
        let at_most = self.at_most.unwrap_or_else(|| AT_MOST.max(at_least));
        if at_least > at_most {
            let what = format!("--at-least {at_least:?} is above --at-most {at_most:?}");
            return Err(Failure::new(Cause::Usage, what));
        }
        let mut lock = LockArgs::once(self.nodes, key, self.command);
        (lock.min_hold, lock.ttl, lock.on_lost) = (at_least, at_most, self.on_lost);
        (lock.fenced, lock.owner) = (self.fenced, self.owner);
        lock.unavailable_wait = self.unavailable_wait;
        lock.conflict_exit_code = self.conflict_exit_code;
        (lock.verbose, lock.json) = (self.verbose, self.json);
        Ok(lock)
    }
}
