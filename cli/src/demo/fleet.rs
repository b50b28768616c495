//! Five nodes.

use super::node::Node;
use super::scratch::Scratch;
use super::server::Server;
use crate::exit::{Cause, Failure};

const NAMES: [char; 5] = ['a', 'b', 'c', 'd', 'e'];

/// How many ports are tried for a node. A conflict is rare; five in a row mean a broken machine.
const PORTS_TRIED: usize = 5;

/// The running nodes. Dropping it kills them and removes their directory.
#[derive(Debug)]
pub(crate) struct Fleet {
    // Dropped first, so that the processes are dead before their directory is removed.
    nodes: Vec<Node>,
    dir: Scratch,
}

impl Fleet {
    /// Starts all nodes at the same time, and waits until each answers.
    pub(crate) async fn start(server: &Server) -> Result<Self, Failure> {
        let dir = Scratch::new().map_err(|error| Failure::internal("no directory", &error))?;
        let mut fleet = Self { nodes: Vec::with_capacity(NAMES.len()), dir };
        for name in NAMES {
            fleet.nodes.push(Node::start(name, server, fleet.dir.path()).await?);
        }
        for node in &mut fleet.nodes {
            let mut ports = 1;
            while !node.answers().await? {
                if ports == PORTS_TRIED {
                    let what = format!("the ports for node {} are taken, one by one", node.name);
                    return Err(Failure::new(Cause::Internal, what));
                }
                ports += 1;
                *node = Node::start(node.name, server, fleet.dir.path()).await?;
            }
        }
        Ok(fleet)
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The last two nodes, which are to fail.
    pub(crate) fn doomed(&mut self) -> Result<(&mut Node, &mut Node), Failure> {
        match self.nodes.as_mut_slice() {
            [.., first, second] => Ok((first, second)),
            _ => Err(Failure::new(Cause::Internal, "there are no two nodes")),
        }
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(Node::url).collect()
    }

    /// Stops the nodes and removes their directory.
    pub(crate) fn remove(mut self) -> Result<(), Failure> {
        for node in &mut self.nodes {
            node.kill()?;
        }
        self.dir.remove().map_err(|error| Failure::internal("cannot remove the directory", &error))
    }
}
