//! Where the nodes are, and what is locked on them.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};

use crate::duration;

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

/// A key has at least one byte, and need not be UTF-8.
pub(super) fn key() -> impl TypedValueParser<Value = OsString> {
    OsStringValueParser::new().try_map(|key| {
        if key.is_empty() { Err("the key is empty; name what is locked") } else { Ok(key) }
    })
}
