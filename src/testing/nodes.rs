//! Several nodes in memory, and lockers on them.

use std::fmt;
use std::io;
use std::ops::Index;
use std::sync::Arc;

use super::fault::Rule;
use super::listen::meet;
use super::node::Node;
use super::serve::{Stream, serve};
use super::shared::Life;
use crate::link::{Dial, Reader, Writer, memory};
use crate::lock::LockerBuilder;
use crate::options::{Address, Endpoint};

/// How many bytes are under way in one direction at most.
const CAPACITY: usize = 1 << 16;

/// Independent nodes that are reached in memory, without sockets: nothing but the test decides how
/// long anything takes.
///
/// Their lockers keep their leases by tokio's clock, and so do the nodes: under a paused clock
/// (`#[tokio::test(start_paused = true)]`, with tokio's feature `test-util`) time-outs and expiry
/// come when they are due, and no test waits for them.
///
/// ```
/// # use std::time::Duration;
/// use quorlock::Extend;
/// use quorlock::testing::Nodes;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), quorlock::Error> {
/// let nodes = Nodes::new(5);
/// let locker = nodes.locker().ttl(Duration::from_secs(30)).extend(Extend::Off).build()?;
/// let guard = locker.lock("order:42").await?;
/// guard.lost().await; // half a minute, and it takes no time
/// assert!(guard.remaining() < Duration::from_secs(1));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Nodes {
    nodes: Arc<[Node]>,
}

impl Nodes {
    /// So many nodes; a quorum takes 1 to 15.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self { nodes: (0..count).map(|_| Node::in_memory()).collect() }
    }

    /// A locker's builder on these nodes: a quorum of them all. Each call makes another client,
    /// with connections of its own.
    ///
    /// # Panics
    ///
    /// With a count of nodes that no quorum has.
    pub fn locker(&self) -> LockerBuilder {
        let names = (0..self.nodes.len()).map(|number| format!("redis://node-{number}"));
        let builder = LockerBuilder::in_memory(names, Arc::new(self.clone()));
        builder.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Adds a fault to each node. Each counts for itself.
    pub fn add(&self, rule: Rule) {
        self.iter().for_each(|node| node.add(rule.clone()));
    }

    /// The nodes, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Node> {
        self.nodes.iter()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// On how many nodes a text stands under a key, with its prefix.
    #[must_use]
    pub fn holding(&self, key: impl AsRef<[u8]>) -> usize {
        self.iter().filter(|node| node.value(key.as_ref()).is_some()).count()
    }
}

impl Index<usize> for Nodes {
    type Output = Node;

    fn index(&self, number: usize) -> &Node {
        &self.nodes[number]
    }
}

impl<'a> IntoIterator for &'a Nodes {
    type Item = &'a Node;
    type IntoIter = std::slice::Iter<'a, Node>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Debug for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Dial for Nodes {
    fn dial(&self, address: &Address) -> memory::Dialing {
        let number = match &address.endpoint {
            Endpoint::Tcp { host, .. } => host.strip_prefix("node-").and_then(|n| n.parse().ok()),
            Endpoint::Unix { .. } => None,
        };
        let node = number.and_then(|number: usize| self.nodes.get(number).cloned());
        Box::pin(async move {
            let node = node.ok_or(io::ErrorKind::NotFound)?;
            let refused = || Err(io::ErrorKind::ConnectionRefused.into());
            if node.shared().with(|state| state.life == Life::Stopped) {
                return refused();
            }
            meet(node.shared()).await?;
            let ((reader, writer), (far_reader, far_writer)) = memory::pair(CAPACITY);
            let far = serve(node.shared().clone(), Stream::Memory(far_reader, far_writer));
            #[expect(clippy::disallowed_methods, reason = "a node's end of a connection")]
            tokio::spawn(far);
            Ok((Reader::Memory(reader), Writer::Memory(writer)))
        })
    }
}
