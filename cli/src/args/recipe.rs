//! The options of `quorlock cached`, `idempotent` and `limit`.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, value_parser};

use super::nodes::{self, NodeArgs};
use crate::duration;

#[derive(Args)]
pub(crate) struct CachedArgs {
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,
    /// How long the output is given without running the command again
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ttl)]
    pub(crate) ttl: Duration,
    /// How much longer it may be given to others while one of them runs the command again
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration::parse)]
    pub(crate) stale: Duration,
    /// How long to wait for another machine that runs the command
    #[arg(short, long, value_name = "TIME", default_value = "1m", value_parser = duration::parse)]
    pub(crate) wait: Duration,
    /// What the output is called
    #[arg(value_parser = nodes::key())]
    pub(crate) key: OsString,
    /// The command and its arguments, behind a "--"
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

#[derive(Args)]
pub(crate) struct IdempotentArgs {
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,
    /// How long to remember the run and its outcome: longer than any run takes, and any retry comes
    #[arg(long, value_name = "TIME", default_value = "1d", value_parser = duration::parse_ttl)]
    pub(crate) keep: Duration,
    /// How long to wait for another machine that runs the command
    #[arg(short, long, value_name = "TIME", default_value = "1m", value_parser = duration::parse)]
    pub(crate) wait: Duration,
    /// What is done: another id for each thing that is to be done once
    #[arg(value_parser = nodes::key())]
    pub(crate) id: OsString,
    /// The command and its arguments, behind a "--"
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

#[derive(Args)]
pub(crate) struct LimitArgs {
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,
    /// How often it may run: 10/1m, 5/s
    #[arg(long, value_name = "COUNT/TIME", value_parser = rate)]
    pub(crate) rate: (u32, Duration),
    /// How many units may start together after a pause [default: the COUNT of --rate]
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(u32).range(1..))]
    pub(crate) burst: Option<u32>,
    /// How many units this run takes from the limit
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    #[arg(value_parser = value_parser!(u32).range(1..))]
    pub(crate) count: u32,
    /// How long to wait until it may run
    #[arg(short, long, value_name = "TIME", default_value = "0s", value_parser = duration::parse)]
    pub(crate) wait: Duration,
    /// The exit code when it may not run
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = 75)]
    pub(crate) conflict_exit_code: u8,
    /// What is limited
    #[arg(value_parser = nodes::key())]
    pub(crate) key: OsString,
    /// The command and its arguments, behind a "--"
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

/// So many in so much time; a unit alone is one of it.
fn rate(text: &str) -> Result<(u32, Duration), String> {
    let parsed = text.split_once('/').and_then(|(count, time)| {
        let count = count.trim().parse().ok().filter(|count| *count > 0)?;
        let time = time.trim();
        let has_number = time.starts_with(|first: char| first.is_ascii_digit() || first == '.');
        let time = if has_number { time.into() } else { format!("1{time}") };
        Some((count, duration::parse(&time).ok().filter(|time| !time.is_zero())?))
    });
    parsed.ok_or_else(|| "write a number and a time, as in 10/1m or 5/s".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_number_and_a_time() {
        let taken = [("10/1m", 10, 60_000), ("5/s", 5, 1_000), ("1 / 250ms", 1, 250)];
        for (text, count, millis) in taken {
            assert_eq!(rate(text), Ok((count, Duration::from_millis(millis))), "{text}");
        }
        for text in ["", "5", "/s", "0/s", "-1/s", "5/0s", "5/w", "5/s/s"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }
}
