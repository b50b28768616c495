//! The options of `quorlock lock`.

use std::ffi::OsString;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};

use super::nodes::{self, NodeArgs};
use crate::duration;

#[derive(Args)]
pub(crate) struct LockArgs {
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,
    /// How long the lock outlives a quorlock that dies or cannot reach its nodes
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration::parse_ttl)]
    pub(crate) ttl: Duration,
    /// Keep others out for this much longer after the lock has expired: for what the command has
    /// started and does not end with it
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration::parse)]
    pub(crate) lock_delay: Duration,
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
    /// Run in the order of arrival, behind all that wait for the key; give --fair everywhere. Takes
    /// one key, and does not go with --no-wait
    #[arg(long, conflicts_with_all = ["no_wait", "several"])]
    pub(crate) fair: bool,
    /// As --fair, and keep the order also when a node is lost; give --fair-strict everywhere. Takes
    /// one key, and does not go with --fair, --no-wait, --shared and --slots
    #[arg(long, conflicts_with_all = ["no_wait", "several", "shared", "slots", "fair"])]
    pub(crate) fair_strict: bool,
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
    /// Skip the command and exit with 0 if this /bin/sh line succeeds: it is run before waiting,
    /// and again under the lock. What it tests must be there only when it is complete
    #[arg(long, value_name = "LINE")]
    pub(crate) until: Option<OsString>,
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
    #[arg(long = "key", value_name = "KEY", value_parser = nodes::key())]
    pub(super) several: Vec<OsString>,
    /// What is locked: any name
    #[arg(value_parser = nodes::key(), required_unless_present = "several")]
    pub(super) key: Option<OsString>,
    /// The command and its arguments, behind a "--"
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
    /// It is `quorlock once`.
    #[arg(skip)]
    pub(crate) is_once: bool,
}

impl LockArgs {
    /// For a command that is run once; what else it is told is said by
    /// [`OnceArgs`](super::once::OnceArgs).
    #[cfg(unix)]
    pub(crate) fn once(nodes: NodeArgs, key: OsString, command: Vec<OsString>) -> Self {
        Self {
            nodes,
            ttl: Duration::ZERO,
            lock_delay: Duration::ZERO,
            no_extend: true,
            max_hold: None,
            min_hold: Duration::ZERO,
            fenced: false,
            fair: false,
            fair_strict: false,
            shared: false,
            slots: None,
            on_lost: OnLost::Term,
            no_wait: false,
            wait: Duration::MAX,
            unavailable_wait: Duration::ZERO,
            until: None,
            conflict_exit_code: 0,
            owner: None,
            verbose: false,
            json: false,
            several: Vec::new(),
            key: Some(key),
            command,
            is_once: true,
        }
    }

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

/// How many slots a key may have: as many as the library allows.
pub(crate) const SLOTS_MAX: u16 = 64;

/// How many slots a key has.
fn slots(text: &str) -> Result<u16, &'static str> {
    let count = text.parse().ok().filter(|count| (1..=SLOTS_MAX).contains(count));
    count.ok_or("a key has from 1 to 64 slots; give such a number")
}

/// The number of one of them.
pub(super) fn slot(text: &str) -> Result<u16, &'static str> {
    let number = text.parse().ok().filter(|number| (0..SLOTS_MAX).contains(number));
    number.ok_or("slots are numbered from 0 to 63; give the QUORLOCK_SLOT of the command")
}

/// What was asked for that does not go with `--slots`, and what to do.
pub(super) fn slots_conflict(args: &LockArgs) -> Option<&'static str> {
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
