//! The options of `quorlock elect`.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use super::nodes::{self, NodeArgs};
use crate::duration;

#[derive(Args)]
pub(crate) struct ElectArgs {
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,
    /// How long there is no leader when a machine dies or cannot reach its nodes, and how long a
    /// leader goes on that cannot
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration::parse_ttl)]
    pub(crate) ttl: Duration,
    /// How much longer there is no leader then: for what the command has started elsewhere
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration::parse)]
    pub(crate) lock_delay: Duration,
    /// The name that others see while it runs here; host and process are added
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) owner: Option<String>,
    /// Say when this machine begins and ends to lead, also where stderr is no terminal
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// What is run on one machine at a time: a key, as of `quorlock lock`
    #[arg(value_parser = nodes::key())]
    pub(crate) role: OsString,
    /// The command and its arguments, behind a "--"
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}
