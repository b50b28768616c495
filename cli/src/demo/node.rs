//! One node: a process, or inside this one.

use std::net::SocketAddr;
use std::path::Path;

use quorlock::testing;

use super::process::Process;
use super::server::Server;
use crate::exit::Failure;

#[derive(Debug)]
pub(crate) struct Node {
    /// `a` to `e`.
    pub(crate) name: char,
    addr: SocketAddr,
    host: Host,
}

#[derive(Debug)]
enum Host {
    Process(Process),
    Inside(testing::Node),
}

impl Node {
    /// Starts a node without persistence, and does not wait for it.
    pub(crate) async fn start(name: char, server: &Server, dir: &Path) -> Result<Self, Failure> {
        let (addr, host) = match server {
            Server::Program { program, .. } => {
                let process = Process::start(name, program, dir)?;
                (process.addr(), Host::Process(process))
            }
            Server::Inside => {
                let failed = |error| Failure::internal("cannot start a node", &error);
                let node = testing::Node::listen().await.map_err(failed)?;
                let none = || failed(std::io::ErrorKind::AddrNotAvailable.into());
                (node.addr().ok_or_else(none)?, Host::Inside(node))
            }
        };
        Ok(Self { name, addr, host })
    }

    pub(crate) fn is_process(&self) -> bool {
        matches!(self.host, Host::Process(_))
    }

    /// Waits until it answers; `false` when another process took its port before it could.
    pub(crate) async fn answers(&mut self) -> Result<bool, Failure> {
        match &mut self.host {
            Host::Process(process) => process.answers().await,
            // It has listened since `listen`.
            Host::Inside(_) => Ok(true),
        }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.addr)
    }

    /// Ends it: a crash.
    pub(crate) fn kill(&mut self) -> Result<(), Failure> {
        match &mut self.host {
            Host::Process(process) => process.kill(),
            Host::Inside(node) => {
                node.stop();
                Ok(())
            }
        }
    }

    /// Suspends it: connections and bytes are still accepted, but no answer comes.
    pub(crate) fn hang(&self) -> Result<(), Failure> {
        match &self.host {
            Host::Process(process) => process.hang(),
            Host::Inside(node) => {
                node.hang();
                Ok(())
            }
        }
    }
}
