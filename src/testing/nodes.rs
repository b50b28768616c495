//! Several nodes in memory, and lockers on them.

use std::fmt;
use std::io;
use std::ops::Index;
use std::sync::Arc;

use super::fault::Rule;
use super::listen::meet;
use super::node::{Node, NodeBuilder};
use super::serve::{Stream, serve};
use super::shared::Life;
use crate::link::{Dial, Reader, Writer, memory};
use crate::lock::LockerBuilder;
use crate::options::{Address, Credentials, Endpoint, NodeOptions};
use crate::quorum;

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
/// let locker = nodes.locker().ttl(Duration::from_secs(30)).auto_extend(Extend::Off).build()?;
/// let guard = locker.lock("order:42").await?;
/// guard.lost().await; // half a minute, and it takes no time
/// assert!(guard.remaining() < Duration::from_secs(1));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Nodes {
    nodes: Arc<[Node]>,
}

/// What some nodes are to be; see [`Nodes::builder`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until the nodes are built"]
pub struct NodesBuilder {
    nodes: Vec<NodeBuilder>,
}

impl NodesBuilder {
    /// Says what each of them is.
    pub fn each(mut self, describe: impl Fn(NodeBuilder) -> NodeBuilder) -> Self {
        self.nodes = self.nodes.into_iter().map(describe).collect();
        self
    }

    /// Says what this one is, by its number from 0, beside what was said before.
    ///
    /// # Panics
    ///
    /// When there is no such node.
    #[track_caller]
    pub fn node(
        mut self,
        number: usize,
        describe: impl FnOnce(NodeBuilder) -> NodeBuilder,
    ) -> Self {
        let count = self.nodes.len();
        let Some(node) = self.nodes.get_mut(number) else {
            panic!("there is no node {number} among {count}: they are counted from 0");
        };
        *node = describe(std::mem::take(node));
        self
    }

    /// The nodes.
    ///
    /// # Panics
    ///
    /// When what was said of one of them cannot be: an ACL rule that is none, a version that is
    /// none.
    #[must_use]
    #[track_caller]
    pub fn build(self) -> Nodes {
        let nodes = self.nodes.into_iter().enumerate();
        let built = nodes.map(|(number, node)| match node.in_memory() {
            Ok(node) => node,
            Err(error) => panic!("node {number}: {error}"),
        });
        Nodes { nodes: built.collect() }
    }
}

impl Nodes {
    /// So many nodes that ask for no password.
    ///
    /// # Panics
    ///
    /// With a count that no quorum has: it takes 1 to 15 nodes.
    #[must_use]
    #[track_caller]
    pub fn new(count: usize) -> Self {
        Self::builder(count).build()
    }

    /// So many nodes still to be described.
    ///
    /// ```
    /// use quorlock::testing::Nodes;
    ///
    /// let nodes = Nodes::builder(5)
    ///     .each(|node| node.password("pw").user("app", "on >secret ~app:* +@all"))
    ///     .each(|node| node.valkey("9.1.2").appendonly("always"))
    ///     .node(4, |node| node.replica())
    ///     .build();
    /// # let locker = nodes.locker_as("app", "secret").build();
    /// # assert!(locker.is_ok() && nodes.len() == 5);
    /// ```
    ///
    /// # Panics
    ///
    /// With a count that no quorum has: it takes 1 to 15 nodes.
    #[track_caller]
    pub fn builder(count: usize) -> NodesBuilder {
        assert!(
            (1..=quorum::Rule::VOTERS_MAX).contains(&count),
            "a quorum takes 1 to {} nodes, not {count}",
            quorum::Rule::VOTERS_MAX
        );
        NodesBuilder { nodes: vec![Node::builder(); count] }
    }

    /// A locker's builder on these nodes: a quorum of them all, with their password if they ask for
    /// one. Each call makes another client, with connections of its own.
    pub fn locker(&self) -> LockerBuilder {
        let password = |node: &Node| node.password().map(Credentials::from);
        self.locker_with(self.iter().map(password))
    }

    /// As [`locker`](Self::locker), as another user.
    pub fn locker_as(&self, user: &str, password: &str) -> LockerBuilder {
        let login = Credentials::new(user, password);
        self.locker_with(self.iter().map(|_| Some(login.clone())))
    }

    fn locker_with(&self, logins: impl Iterator<Item = Option<Credentials>>) -> LockerBuilder {
        let nodes = logins.enumerate().map(|(number, login)| {
            let node = NodeOptions::tcp(format!("node-{number}"), 6379);
            let Some(Credentials { username, password }) = login else { return node };
            node.username(username.unwrap_or_default()).password(password)
        });
        let builder = LockerBuilder::in_memory(nodes, Arc::new(self.clone()));
        // Their count was looked at when they were made, and their addresses are ours.
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
