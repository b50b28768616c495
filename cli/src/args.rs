//! The command line.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{NonEmptyStringValueParser, OsStringValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};

use crate::{duration, words};

const NODES: &str = "\
Nodes: --node, else QUORLOCK_NODES, else REDIS_URL. One URL is a single server; several are a
quorum, of which a majority must agree. A URL without a password takes the one in REDIS_PASSWORD,
or the one typed for --askpass.

  redis://user:password@host:port/database   (or valkey://)
  unix:///run/redis.sock?db=0";

const CODES: &str = "\
Exit codes: the command's own, or 128 and the number of the signal that ended it; else
   64  the command line is wrong
   69  no quorum: too few nodes could be reached (within 1s at the start) or answered
   75  another client holds the lock (see -E)
   77  the nodes refused the password, the user or a right
   78  no nodes, a bad URL, or a key that something else than a lock uses
   79  the lock was lost while the command ran, whatever the command's own code is
  125  quorlock itself failed
  126  the command cannot be run
  127  the command was not found";

const LIFE: &str = "\
The lock is extended at a third of its TTL for as long as the command runs, unless --no-extend or
--max-hold ends that. It is lost when its time runs out because too few nodes could be reached to
extend it, or when a majority of them no longer holds it.

The command starts without a shell, in a process group of its own. INT, TERM, HUP, QUIT, USR1 and
USR2 are passed on to it; a second INT kills it. On Linux it is killed when quorlock dies. Its
environment has QUORLOCK_KEY, QUORLOCK_TOKEN (the value that the nodes hold), QUORLOCK_FENCE with
--fenced, QUORLOCK_SLOT with --slots, and QUORLOCK_DEADLINE_MS (since the epoch): the first
deadline, which moves on with each extension.

With --key given several times all of the keys are locked or none of them: where another client
holds one, quorlock waits for it and holds no other meanwhile. The lock excludes every other lock on
any of these keys. QUORLOCK_KEY has a line for each of them. Such a lock cannot be released by its
token: it ends with its command, or with its TTL.

With --shared, commands that share a lock run at once, and none beside a command that does not.
QUORLOCK_TOKEN begins with \"read:\" then; by it such a lock cannot be released either.

With --slots, no more commands run at once than the key has slots, and each is told its own, a
number from 0 on, by QUORLOCK_SLOT. All of them must give the same number of slots. The slots have
nothing to do with the lock of the key itself. QUORLOCK_TOKEN begins with \"slot:\" then; by it a
slot cannot be released either.

A separate thread writes messages to stderr: neither the lock nor the command waits for it. While
stderr is blocked (a pipe that is not read), 16 lines are kept and the rest are dropped; one line
says how many. At the end quorlock waits up to 2s for stderr, then exits with the same code.

When stdin is a terminal, the command stays in the terminal's foreground group, so that it can read
and Ctrl-Z works. The terminal then sends it INT and QUIT, and quorlock does not pass these on.";

const RELEASE: &str = "\
With a token the key is deleted only where it holds that token's value: another client's lock is
left as it is. With --force any lock under the key is deleted; a value that no lock wrote is left.
Neither stops the holder: it learns of the loss at its next extension, within a third of its TTL, or
at its deadline where it is not extended. Until then two clients may hold the lock. End the holder
first, or wait for the TTL.

Other users of this machine can see a token on the command line, but not one in QUORLOCK_TOKEN.";

const RELEASE_CODES: &str = "\
Exit codes: 0 when a majority of the nodes deleted it; with --force, when a majority answered, also
where it held nothing; else
   64  the command line is wrong, or there is no token
   69  a majority of the nodes did not answer
   75  the lock is held by another token
   77  the nodes refused the password, the user or a right
   78  no nodes, a bad URL, or a key that something else than a lock uses
   79  the lock had ended before
  125  quorlock itself failed";

const STATUS_CODES: &str = "\
Exit codes: 0, whether a key is held or free; else
   64  the command line is wrong
   69  a majority of the nodes did not answer for one of the keys
   77  the nodes refused the password, the user or a right
   78  no nodes, or a bad URL
  125  quorlock itself failed";

const BENCH: &str = "\
A cycle acquires a key that no other cycle uses and releases it; each step waits for a majority. Two
contestants take turns in short rounds, so that other load on the machine affects both: ours, the
library with its default options, and the floor, the same commands on bare sockets without any
handling of failures. The first round of each is dropped. The duration is that of the whole run;
with --rate it may be up to twice as long if the nodes do not keep up.

Nothing is written to nodes that hold keys, unless --force is given: a run puts full load on them.
Keys have a random prefix and live for at most 10s; each is released, and those that an error leaves
behind are deleted at the end. The two release scripts stay in the nodes' script caches.

Assertions apply to our figures, and must hold with every number of callers: p50, p90, p99, p99.9
and max of acquiring with < or <=, cycles (a second) with > or >=. If one fails, the exit code is
99.";

const PING: &str = "\
The nodes are asked one after another, never in parallel. A round trip is what a caller of the
library waits for; p99.9 is meaningful with a --count of several thousand. What the user has no
right to read (INFO, CONFIG GET, TIME) is shown as not told. The node's clock is compared with this
machine's: a constant difference is harmless to a lock, a changing one is not.

A maxmemory-policy other than noeviction is a warning: such a node deletes locks when it is full.
Anything but appendonly yes and appendfsync always is a warning too, unless --longest-ttl is given:
such a node may lose locks when it stops.

Exit codes: 0 when a majority answered, with or without warnings; else
   64  the command line is wrong
   69  no quorum: too few nodes could be reached, or answered
   77  the nodes refused the password, the user or a right
   78  no nodes, or a bad URL
  125  quorlock itself failed
  128 and a signal's number, when that ended it early";

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
    #[command(after_help = NODES, after_long_help = format!("{NODES}\n\n{STATUS_CODES}"))]
    Status(StatusArgs),
    /// Release a lock by its token, or by force
    #[command(after_help = NODES)]
    #[command(after_long_help = format!("{RELEASE}\n\n{NODES}\n\n{RELEASE_CODES}"))]
    Release(ReleaseArgs),
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
pub(crate) struct NodeArgs {
    /// A node's URL; repeat it, or give a comma list, for a quorum
    #[arg(long = "node", value_name = "URL")]
    pub(crate) nodes: Vec<String>,
    /// Ask for the password on the terminal, instead of taking the one in REDIS_PASSWORD
    #[arg(long)]
    pub(crate) askpass: bool,
    /// The prefix of the keys on the nodes
    #[arg(long, value_name = "PREFIX", default_value = "")]
    pub(crate) prefix: OsString,
    /// For nodes that lose their data when they restart: the longest TTL of any lock of the
    /// deployment. A restarted node gives no vote for that long. All clients must give the same
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ttl)]
    pub(crate) longest_ttl: Option<Duration>,
    #[cfg(feature = "tls-rustls")]
    #[command(flatten)]
    pub(crate) tls: crate::tls::TlsArgs,
}

#[derive(Args)]
pub(crate) struct LockArgs {
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,
    /// How long the lock outlives a quorlock that dies or cannot reach its nodes
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration::parse_ttl)]
    pub(crate) ttl: Duration,
    /// Do not extend the lock: the command must end within the TTL
    #[arg(long)]
    pub(crate) no_extend: bool,
    /// Extend the lock no longer than this [default: for as long as the command runs]
    #[arg(long, value_name = "TIME", value_parser = duration::parse_ttl)]
    #[arg(conflicts_with = "no_extend")]
    pub(crate) max_hold: Option<Duration>,
    /// Keep the lock for at least this long, also when the command ends sooner: for a job that
    /// several machines start at about the same time. After exit code 126 or 127 (the command could
    /// not be run) and after a loss the lock is released at once
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration::parse)]
    pub(crate) min_hold: Duration,
    /// Give the lock a fence, as QUORLOCK_FENCE: a number above that of every holder before. What
    /// the command writes to can refuse a write with a lower one than it has seen
    #[arg(long)]
    pub(crate) fenced: bool,
    /// Share the lock with other commands that give --shared, and exclude all others; takes KEY,
    /// not --key, and does not go with --fenced
    #[arg(long, conflicts_with_all = ["fenced", "several"])]
    pub(crate) shared: bool,
    /// Take one of N slots of the key, from 1 to 64, for at most N commands at once; all of them
    /// must give the same N. Does not go with --shared, --fenced and several keys
    #[arg(long, value_name = "N", value_parser = slots)]
    pub(crate) slots: Option<u16>,
    /// What happens to the command, and what it has started, when the lock is lost
    #[arg(long, value_name = "HOW", value_enum, default_value_t = OnLost::Term)]
    pub(crate) on_lost: OnLost,
    /// Do not wait while another client holds the lock
    #[arg(short = 'n', long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,
    /// How long to wait for the lock: 2s, 500ms, 0.5 (seconds)
    #[arg(short, long, value_name = "TIME", default_value = "10s", value_parser = duration::parse)]
    pub(crate) wait: Duration,
    /// How much of that wait to spend while too few nodes can be reached
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration::parse)]
    pub(crate) unavailable_wait: Duration,
    /// The exit code when another client holds the lock
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = 75)]
    pub(crate) conflict_exit_code: u8,
    /// The name that others see while we hold the lock; host and process are added
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) owner: Option<String>,
    /// Say who holds the lock that is waited for, also where stderr is no terminal
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Print what happened as one JSON object on stderr at the end, and nothing before
    #[arg(long)]
    pub(crate) json: bool,
    /// What is locked, instead of KEY; repeat it to lock up to 64 keys as one, all or none
    #[arg(long = "key", value_name = "KEY", value_parser = key())]
    several: Vec<OsString>,
    /// What is locked: any name
    #[arg(value_parser = key(), required_unless_present = "several")]
    key: Option<OsString>,
    /// The command and its arguments, behind a "--"
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

impl LockArgs {
    /// Each key that is locked.
    pub(crate) fn keys(&self) -> &[OsString] {
        match &self.key {
            Some(only) => std::slice::from_ref(only),
            None => &self.several,
        }
    }
}

/// What happens to the command when the lock is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum OnLost {
    /// TERM a little before the lock's time ends, and KILL when it ends; where a majority of the
    /// nodes no longer holds it, TERM at once and KILL soon
    Term,
    /// KILL when the lock's time ends, or at once where a majority no longer holds it
    Kill,
    /// Nothing: a line on stderr, and 79 at the end
    Ignore,
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
    #[arg(value_parser = key())]
    pub(crate) key: OsString,
    /// The lock's token [default: QUORLOCK_TOKEN, as the lock's command has it]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) token: Option<String>,
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

/// A key has at least one byte, and need not be UTF-8.
fn key() -> impl TypedValueParser<Value = OsString> {
    OsStringValueParser::new().try_map(|key| {
        if key.is_empty() { Err("the key is empty; name what is locked") } else { Ok(key) }
    })
}

/// How many slots a key has: as many as the library allows.
fn slots(text: &str) -> Result<u16, &'static str> {
    let count = text.parse().ok().filter(|count| (1..=64).contains(count));
    count.ok_or("a key has from 1 to 64 slots; give such a number")
}

/// Refuses what clap's rules cannot express, or would not explain in one line: a command without a
/// name, a key given in two ways, and what does not go with slots.
pub(crate) fn check(cli: &Cli) -> Result<(), clap::Error> {
    let Command::Lock(args) = &cli.command else { return Ok(()) };
    let refuse = |kind, what: String| Err(clap::Error::raw(kind, format!("{what}\n")));
    if args.command.first().is_none_or(|name| name.is_empty()) {
        return refuse(ErrorKind::InvalidValue, "the command's name is empty".into());
    }
    match &args.key {
        Some(key) if !args.several.is_empty() => {
            let key = words::quoted(key);
            let what = format!("{key} stands beside --key; write --key before each key");
            refuse(ErrorKind::ArgumentConflict, what)
        }
        _ => match slots_conflict(args) {
            Some(what) => refuse(ErrorKind::ArgumentConflict, what.into()),
            None => Ok(()),
        },
    }
}

/// What was asked for that does not go with `--slots`, and what to do.
fn slots_conflict(args: &LockArgs) -> Option<&'static str> {
    args.slots?;
    if args.shared {
        Some("--slots limits how many run at once, and --shared does not; give one of them")
    } else if args.fenced {
        Some("--slots lets several run at once, and a fence is for one; leave --fenced out")
    } else if args.keys().len() > 1 {
        Some("--slots takes one key; give KEY alone, without --key")
    } else {
        None
    }
}

/// Advice that clap's own error lacks: the `--` before the command.
pub(crate) fn hint(error: &clap::Error) -> &'static str {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let is_lock = words.first().is_some_and(|word| word == "lock");
    let has_dashes = words.iter().any(|word| word == "--");
    let lacks =
        matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::MissingRequiredArgument);
    match is_lock && !has_dashes && lacks {
        true => "\nThe command stands behind two dashes: quorlock lock job -- echo hi\n",
        false => "",
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
