//! The command line.

#[cfg(unix)]
mod elect;
mod lock;
mod nodes;
#[cfg(unix)]
mod once;
#[cfg(unix)]
mod recipe;
mod texts;

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{NonEmptyStringValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};

#[cfg(unix)]
pub(crate) use elect::ElectArgs;
pub(crate) use lock::{LockArgs, OnLost, SLOTS_MAX};
pub(crate) use nodes::NodeArgs;
#[cfg(unix)]
pub(crate) use once::OnceArgs;
#[cfg(unix)]
pub(crate) use recipe::{CachedArgs, IdempotentArgs, LimitArgs};

use crate::{duration, words};
use texts::{
    BENCH, CODES, LIFE, NODES, PING, RELEASE, RELEASE_CODES, REVOKE, REVOKE_CODES, STATUS_CODES,
};
#[cfg(unix)]
use texts::{
    CACHED, CACHED_CODES, ELECT, ELECT_CODES, IDEMPOTENT, IDEMPOTENT_CODES, LIMIT, LIMIT_CODES,
    ONCE, ONCE_CODES,
};

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
    /// Run a command on one of several machines that start it at about the same time
    #[cfg(unix)]
    #[command(after_help = NODES, after_long_help = format!("{ONCE}\n\n{NODES}\n\n{ONCE_CODES}"))]
    Once(OnceArgs),
    /// Keep a command running on one of several machines
    #[cfg(unix)]
    #[command(after_help = NODES, after_long_help = format!("{ELECT}\n\n{NODES}\n\n{ELECT_CODES}"))]
    Elect(ElectArgs),
    /// Print a command's output, and run it only where that is not known from before
    #[cfg(unix)]
    #[command(after_help = NODES)]
    #[command(after_long_help = format!("{CACHED}\n\n{NODES}\n\n{CACHED_CODES}"))]
    Cached(CachedArgs),
    /// Run a command once for each id, and repeat what it came to
    #[cfg(unix)]
    #[command(after_help = NODES)]
    #[command(after_long_help = format!("{IDEMPOTENT}\n\n{NODES}\n\n{IDEMPOTENT_CODES}"))]
    Idempotent(IdempotentArgs),
    /// Run a command unless it has run too often, on all machines together
    #[cfg(unix)]
    #[command(after_help = NODES, after_long_help = format!("{LIMIT}\n\n{NODES}\n\n{LIMIT_CODES}"))]
    Limit(LimitArgs),
    /// Show who holds a key, node by node
    #[command(after_help = NODES, after_long_help = format!("{NODES}\n\n{STATUS_CODES}"))]
    Status(StatusArgs),
    /// Release a lock by its token, or by force
    #[command(after_help = NODES)]
    #[command(after_long_help = format!("{RELEASE}\n\n{NODES}\n\n{RELEASE_CODES}"))]
    Release(ReleaseArgs),
    /// Ask the holder of a lock, or of a slot, to let go of it
    #[command(after_help = NODES)]
    #[command(after_long_help = format!("{REVOKE}\n\n{NODES}\n\n{REVOKE_CODES}"))]
    Revoke(RevokeArgs),
    /// Measure locking on your own nodes, and compare it with bare sockets
    #[command(after_help = NODES, after_long_help = format!("{BENCH}\n\n{NODES}"))]
    Bench(BenchArgs),
    /// Show each node's round trips, version, role, persistence, eviction policy and clock
    #[command(after_help = NODES, after_long_help = format!("{PING}\n\n{NODES}"))]
    Ping(PingArgs),
    /// Start five servers here, contend for a lock, let two of them fail, and clean up
    ///
    /// Needs redis-server or valkey-server: on the path, in QUORLOCK_SERVER, or in target/servers.
    Demo,
}

#[derive(Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,
    /// Print one JSON object per key
    #[arg(long)]
    pub(crate) json: bool,
    /// The keys to look at
    #[arg(required = true, value_name = "KEY", value_parser = nodes::key())]
    pub(crate) keys: Vec<OsString>,
}

#[derive(Args)]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,
    /// Delete the key, also if another client holds the lock; that client goes on working
    #[arg(short, long, conflicts_with = "token")]
    pub(crate) force: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// The key of the lock
    #[arg(value_parser = nodes::key())]
    pub(crate) key: OsString,
    /// The lock's token [default: QUORLOCK_TOKEN, as the lock's command has it]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) token: Option<String>,
}

#[derive(Args)]
pub(crate) struct RevokeArgs {
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,
    /// Ask the holder of this slot of the key: the QUORLOCK_SLOT of its command, from 0 on
    #[arg(long, value_name = "N", value_parser = lock::slot, allow_negative_numbers = true)]
    pub(crate) slot: Option<u16>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// The key of the lock
    #[arg(value_parser = nodes::key())]
    pub(crate) key: OsString,
}

#[derive(Args)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,
    /// How many callers lock and release concurrently; each number in a list is measured in turn
    /// [default: 1,64, with --rate: 64]
    #[arg(long, value_name = "COUNT", value_delimiter = ',', value_parser = callers())]
    pub(crate) callers: Vec<u16>,
    /// How long all of it takes
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration::parse_run)]
    pub(crate) duration: Duration,
    /// The tokio runtime that our lock runs on
    #[arg(long, value_enum, default_value_t = RuntimeKind::Current)]
    pub(crate) runtime: RuntimeKind,
    /// Start this many cycles a second, even if the nodes are slow; latencies count from the
    /// intended starts
    #[arg(long, value_name = "CYCLES")]
    pub(crate) rate: Option<NonZeroU32>,
    /// Exit with 99 unless this holds: 'p99<1ms', 'cycles>50000'; repeat it, or give a comma list
    #[arg(long = "assert", value_name = "WHAT", value_delimiter = ',')]
    pub(crate) assertions: Vec<String>,
    /// Write the percentiles as a picture
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) chart: Option<PathBuf>,
    /// Print one JSON object and no table
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the JSON Schema of what --json prints, and do nothing else
    #[arg(long)]
    pub(crate) schema: bool,
    /// Measure also on nodes that hold keys or cannot be counted
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Args)]
pub(crate) struct PingArgs {
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,
    /// How often each node is asked
    #[arg(short, long, value_name = "COUNT", default_value_t = 1_000)]
    #[arg(value_parser = value_parser!(u32).range(1..=10_000_000))]
    pub(crate) count: u32,
    /// The pause before all of them are asked again
    #[arg(short, long, value_name = "TIME", default_value = "1ms", value_parser = duration::parse)]
    pub(crate) interval: Duration,
    /// Print one JSON object and no table
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the JSON Schema of what --json prints, and do nothing else
    #[arg(long)]
    pub(crate) schema: bool,
}

/// Which of tokio's runtimes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum RuntimeKind {
    /// One thread
    Current,
    /// A worker thread for each core
    Multi,
}

impl RuntimeKind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Multi => "multi",
        }
    }
}

/// Each caller may have one cycle on its way; a node's connection holds 65,536 commands.
fn callers() -> impl TypedValueParser<Value = u16> {
    value_parser!(u16).range(1..=4_096)
}

/// Refuses what clap's rules cannot express, or would not explain in one line: a command without a
/// name, a key given in two ways, and what does not go with slots.
pub(crate) fn check(cli: &Cli) -> Result<(), clap::Error> {
    let refuse = |kind, what: String| Err(clap::Error::raw(kind, format!("{what}\n")));
    let command = match &cli.command {
        Command::Lock(args) => &args.command,
        #[cfg(unix)]
        Command::Once(args) => &args.command,
        #[cfg(unix)]
        Command::Elect(args) => &args.command,
        #[cfg(unix)]
        Command::Cached(args) => &args.command,
        #[cfg(unix)]
        Command::Idempotent(args) => &args.command,
        #[cfg(unix)]
        Command::Limit(args) => &args.command,
        _ => return Ok(()),
    };
    if command.first().is_none_or(|name| name.is_empty()) {
        return refuse(ErrorKind::InvalidValue, "the command's name is empty".into());
    }
    let Command::Lock(args) = &cli.command else { return Ok(()) };
    match &args.key {
        Some(key) if !args.several.is_empty() => {
            let key = words::quoted(key);
            let what = format!("{key} stands beside --key; write --key before each key");
            refuse(ErrorKind::ArgumentConflict, what)
        }
        _ => match lock::slots_conflict(args) {
            Some(what) => refuse(ErrorKind::ArgumentConflict, what.into()),
            None => Ok(()),
        },
    }
}

/// Advice that clap's own error lacks: the `--` before the command.
pub(crate) fn hint(error: &clap::Error) -> &'static str {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let has_dashes = words.iter().any(|word| word == "--");
    let lacks =
        matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::MissingRequiredArgument);
    if has_dashes || !lacks {
        return "";
    }
    match words.first().and_then(|word| word.to_str()) {
        Some("lock") => "\nThe command stands behind two dashes: quorlock lock job -- echo hi\n",
        Some("elect") => {
            "\nThe command stands behind two dashes: quorlock elect role -- sleep 1h\n"
        }
        Some("once") => "\nThe command stands behind two dashes: quorlock once job -- echo hi\n",
        Some("cached") => {
            "\nThe command stands behind two dashes: quorlock cached --ttl 5m page -- date\n"
        }
        Some("idempotent") => {
            "\nThe command stands behind two dashes: quorlock idempotent mail:7 -- echo hi\n"
        }
        Some("limit") => {
            "\nThe command stands behind two dashes: quorlock limit --rate 5/s mail -- echo hi\n"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

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
        assert_eq!(args.unavailable_wait, Duration::from_secs(1));
    }

    #[test]
    fn keys_are_one_word_or_options() {
        let keys = |words: &str| {
            let cli = Cli::try_parse_from(words.split(' ')).unwrap();
            let refused = check(&cli).err().map(|error| error.to_string());
            let Command::Lock(args) = cli.command else { panic!("it is the lock command") };
            (args.keys().join(OsStr::new(" ")).into_string().unwrap(), refused)
        };
        assert_eq!(keys("quorlock lock job -- x"), ("job".into(), None));
        assert_eq!(keys("quorlock lock --key job -- x"), ("job".into(), None));
        assert_eq!(keys("quorlock lock --key b -n --key a -- x"), ("b a".into(), None));
        let refused = keys("quorlock lock --key a job -- x").1.unwrap();
        assert_eq!(refused, "error: \"job\" stands beside --key; write --key before each key\n");
    }

    #[test]
    fn slots_are_those_of_one_key() {
        let parse = |words: &str| {
            let cli = Cli::try_parse_from(words.split(' ')).map_err(|error| error.to_string())?;
            check(&cli).map_err(|error| error.to_string())?;
            let Command::Lock(args) = cli.command else { panic!("it is the lock command") };
            Ok::<_, String>(args.slots)
        };
        assert_eq!(parse("quorlock lock job -- x"), Ok(None));
        for (count, words) in [(1, "--slots 1 job"), (64, "--slots=64 --key job")] {
            assert_eq!(parse(&format!("quorlock lock {words} -- x")), Ok(Some(count)));
        }
        for (words, reason) in [
            ("--slots 0 job", "from 1 to 64"),
            ("--slots 65 job", "from 1 to 64"),
            ("--slots 70000 job", "from 1 to 64"),
            ("--slots few job", "from 1 to 64"),
            ("--slots 2 --shared job", "give one of them"),
            ("--slots 2 --fenced job", "leave --fenced out"),
            ("--slots 2 --key a --key b", "takes one key"),
        ] {
            let refused = parse(&format!("quorlock lock {words} -- x")).unwrap_err();
            assert!(refused.contains(reason), "{words}: {refused}");
        }
    }

    #[test]
    fn a_slot_is_named_by_its_number() {
        let parse = |words: &str| {
            let cli = Cli::try_parse_from(format!("quorlock revoke {words}").split(' '));
            let Command::Revoke(args) = cli.map_err(|error| error.to_string())?.command else {
                panic!("it is the revoke command");
            };
            Ok::<_, String>((args.key.into_string().unwrap(), args.slot))
        };
        assert_eq!(parse("job"), Ok(("job".into(), None)));
        for (slot, words) in [(0, "job --slot 0"), (63, "--slot=63 job")] {
            assert_eq!(parse(words), Ok(("job".into(), Some(slot))));
        }
        for slot in ["64", "-1", "70000", "two"] {
            let refused = parse(&format!("job --slot {slot}")).unwrap_err();
            assert!(refused.contains("slots are numbered from 0 to 63"), "{slot}: {refused}");
        }
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
            "quorlock lock --no-extend --max-hold 1h job -- true",
            "quorlock lock --on-lost stop job -- true",
            "quorlock lock -- true",
            "quorlock lock --key  -- true",
            "quorlock lock --key a true",
            "quorlock lock  -- true",
            "quorlock status",
        ] {
            assert!(kind(words).is_some(), "{words}");
        }
    }
}
