//! The command line.

use std::ffi::OsString;
use std::time::Duration;

use clap::builder::{NonEmptyStringValueParser, OsStringValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};

use crate::duration;

const NODES: &str = "\
Nodes: --node, else QUORLOCK_NODES, else REDIS_URL. One URL is a single server; several are a
quorum, of which a majority must agree. A URL without a password takes the one in REDIS_PASSWORD.

  redis://user:password@host:port/database   (or valkey://)
  unix:///run/redis.sock?db=0";

const CODES: &str = "\
Exit codes: the command's own, or 128 and the number of the signal that ended it; else
   64  the command line is wrong
   69  no quorum: too few nodes could be reached (within 1s at the start) or answered
   75  another client holds the lock (see -E)
   77  the nodes refused the password, the user or a right
   78  no nodes, a bad URL, or a key that something else than a lock uses
   79  the lock ended while the command ran
  125  quorlock itself failed
  126  the command cannot be run
  127  the command was not found";

const LIFE: &str = "\
The command starts without a shell, in a process group of its own. It gets TERM a little before the
lock's time ends, and KILL when it ends. INT, TERM, HUP, QUIT, USR1 and USR2 are passed on to it; a
second INT kills it. On Linux it is killed when quorlock dies. Its environment has QUORLOCK_KEY,
QUORLOCK_TOKEN (the value that the nodes hold) and QUORLOCK_DEADLINE_MS (since the epoch).

When stdin is a terminal, the command stays in the terminal's foreground group, so that it can read
and Ctrl-Z works. INT and QUIT are then the terminal's to send, and are not passed on.";

/// Distributed locks on Redis and Valkey, for shells.
#[derive(Parser)]
#[command(name = "quorlock", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run a command while holding a lock
    #[command(after_help = NODES, after_long_help = format!("{LIFE}\n\n{NODES}\n\n{CODES}"))]
    Lock(LockArgs),
    /// Show who holds a key, node by node
    #[command(after_help = NODES)]
    Status(StatusArgs),
    /// Start five servers here, contend for a lock, let two of them fail, and clean up
    ///
    /// Needs redis-server or valkey-server: on the path, in QUORLOCK_SERVER, or in target/servers.
    Demo,
}

#[derive(Args)]
pub(crate) struct NodeArgs {
    /// A node's URL; repeat it, or give a comma list, for a quorum
    #[arg(long = "node", value_name = "URL")]
    pub(crate) nodes: Vec<String>,
    /// Put before the key on the nodes
    #[arg(long, value_name = "PREFIX", default_value = "")]
    pub(crate) prefix: OsString,
}

#[derive(Args)]
pub(crate) struct LockArgs {
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,
    /// How long the lock is held at most: the command must end before
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration::parse_ttl)]
    pub(crate) ttl: Duration,
    /// Do not wait while another client holds the lock
    #[arg(short = 'n', long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,
    /// How long to wait for the lock: 2s, 500ms, 0.5 (seconds)
    #[arg(short, long, value_name = "TIME", default_value = "10s", value_parser = duration::parse)]
    pub(crate) wait: Duration,
    /// The exit code when another client holds the lock
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = 75)]
    pub(crate) conflict_exit_code: u8,
    /// The name that others see while we hold the lock; host and process are added
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) owner: Option<String>,
    /// Say at the end what happened, in one JSON object on stderr
    #[arg(long)]
    pub(crate) json: bool,
    /// What is locked: any name
    #[arg(value_parser = key())]
    pub(crate) key: OsString,
    /// The command and its arguments, behind a "--"
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

#[derive(Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,
    /// Print one JSON object per key
    #[arg(long)]
    pub(crate) json: bool,
    /// The keys to look at
    #[arg(required = true, value_name = "KEY", value_parser = key())]
    pub(crate) keys: Vec<OsString>,
}

/// A key has at least one byte, and need not be UTF-8.
fn key() -> impl TypedValueParser<Value = OsString> {
    OsStringValueParser::new().try_map(|key| {
        if key.is_empty() { Err("the key is empty; name what is locked") } else { Ok(key) }
    })
}

/// What clap cannot see by itself: a command of no name.
pub(crate) fn check(cli: &Cli) -> Result<(), clap::Error> {
    match &cli.command {
        Command::Lock(args) if args.command.first().is_none_or(|name| name.is_empty()) => {
            let what = "error: the command's name is empty\n";
            Err(clap::Error::raw(ErrorKind::InvalidValue, what))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }

    fn kind(words: &str) -> Option<ErrorKind> {
        Cli::try_parse_from(words.split(' ')).err().map(|error| error.kind())
    }

    #[test]
    fn a_command_stands_behind_two_dashes_and_keeps_its_options() {
        let words = "quorlock lock -n --ttl 3s job -- sh -c --json -- x";
        let Command::Lock(args) = Cli::try_parse_from(words.split(' ')).unwrap().command else {
            panic!("it is the lock command");
        };
        assert_eq!(args.command, ["sh", "-c", "--json", "--", "x"]);
        assert!(args.no_wait && !args.json && args.ttl == Duration::from_secs(3));
    }

    #[test]
    fn what_cannot_be_right_is_refused() {
        for words in [
            "quorlock",
            "quorlock lock",
            "quorlock lock job",
            "quorlock lock job --",
            "quorlock lock job true",
            "quorlock lock -n -w 2s job -- true",
            "quorlock lock --ttl 0 job -- true",
            "quorlock lock -E 256 job -- true",
            "quorlock lock  -- true",
            "quorlock status",
        ] {
            assert!(kind(words).is_some(), "{words}");
        }
    }
}
