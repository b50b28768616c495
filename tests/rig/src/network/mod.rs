//! The network between the clients and the nodes.
//!
//! | | namespaces | proxies |
//! |---|---|---|
//! | need | root (or user namespaces) and `nft` | nothing |
//! | a client's packets | go through a veth pair of its own | go through our own process |
//! | faults | nft rules on both hooks: real loss, sent again | bytes held, late or dropped |
//!
//! Either way each client process's path to each node, and back, is disturbed by itself.

mod namespaces;
mod proxies;

use std::path::Path;
use std::process::Command;

use tokio::runtime::Handle;

use crate::Failure;
use crate::args::Wanted;
use crate::paths::Paths;
use namespaces::Namespaces;
use proxies::Proxies;
use support::process::tied;

/// The paths from so many clients to the nodes.
#[derive(Debug)]
pub(crate) enum Network {
    Namespaces(Namespaces),
    Proxies(Proxies),
}

impl Network {
    /// Whether the run is to be started again in a network namespace of its own: by which command.
    /// Nothing where it is not wanted or cannot be had; what then was lacking is told.
    pub(crate) fn entrance(wanted: Wanted) -> Result<Option<Command>, Failure> {
        match (wanted, namespaces::entrance()) {
            (Wanted::Proxy, _) => Ok(None),
            (_, Ok(command)) => Ok(Some(command)),
            (Wanted::Auto, Err(why)) => {
                eprintln!("no network namespaces, so a proxy: {why}");
                Ok(None)
            }
            (Wanted::Namespaces, Err(why)) => Err(why),
        }
    }

    /// What the servers need of the network before they start.
    pub(crate) fn prepare(inside: bool) -> Result<(), Failure> {
        if inside { namespaces::prepare() } else { Ok(()) }
    }

    /// Builds the paths to the nodes, which listen on these ports of ours.
    pub(crate) fn build(
        inside: bool,
        clients: usize,
        ports: &[u16],
        runtime: &Handle,
    ) -> Result<Self, Failure> {
        if inside {
            return Ok(Self::Namespaces(Namespaces::build(clients, ports)?));
        }
        Ok(Self::Proxies(runtime.block_on(Proxies::build(clients, ports))?))
    }

    /// Where a client finds the nodes.
    pub(crate) fn urls(&self, client: usize) -> Vec<String> {
        match self {
            Self::Namespaces(network) => network.urls(client),
            Self::Proxies(network) => network.urls(client),
        }
    }

    /// A program in the client's place.
    pub(crate) fn command(&self, client: usize, program: &Path) -> Command {
        match self {
            Self::Namespaces(network) => network.command(client, program),
            Self::Proxies(_) => tied(program),
        }
    }

    /// From now on it does this to the packets.
    pub(crate) fn apply(&self, paths: &Paths) -> Result<(), Failure> {
        match self {
            Self::Namespaces(network) => network.apply(paths),
            Self::Proxies(network) => {
                network.apply(paths);
                Ok(())
            }
        }
    }
}
