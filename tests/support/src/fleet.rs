//! Several independent servers: the nodes of a quorum.

use std::ops::Index;

use crate::server::{Builder, Server};
use crate::wire::Reply;

/// Independent servers, numbered from 0.
#[derive(Debug)]
pub struct Fleet(Vec<Server>);

impl Fleet {
    /// Starts `count` servers, all at the same time.
    #[track_caller]
    pub fn start(count: usize) -> Self {
        Self::start_with(count, |_, builder| builder)
    }

    /// Starts `count` servers, each as `describe` makes it out of its number.
    #[track_caller]
    pub fn start_with(count: usize, describe: impl Fn(usize, Builder) -> Builder) -> Self {
        let builders: Vec<_> = (0..count).map(|n| describe(n, Server::builder())).collect();
        std::thread::scope(|scope| {
            let starts: Vec<_> =
                builders.into_iter().map(|builder| scope.spawn(|| builder.start())).collect();
            let join = |start: std::thread::ScopedJoinHandle<'_, Server>| {
                start.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            Self(starts.into_iter().map(join).collect())
        })
    }

    /// Every node's URL, in order.
    pub fn urls(&self) -> Vec<String> {
        self.0.iter().map(Server::url).collect()
    }

    /// The nodes, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Server> {
        self.0.iter()
    }

    /// How many there are, whatever their state.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Which running nodes hold which keys that begin with `prefix` (all keys: ""), sorted.
    #[track_caller]
    pub fn keys_left(&self, prefix: &str) -> Vec<(usize, String)> {
        let mut left = Vec::new();
        for (number, server) in self.running() {
            let keys = server.command(&["KEYS", "*"]).array();
            let keys = keys.iter().map(Reply::text).filter(|key| key.starts_with(prefix));
            left.extend(keys.map(|key| (number, key)));
        }
        left.sort_unstable();
        left
    }

    /// The running nodes that hold `key`.
    #[track_caller]
    pub fn holders(&self, key: impl AsRef<[u8]>) -> Vec<usize> {
        let holds = |server: &Server| {
            server.command(&[b"EXISTS".as_slice(), key.as_ref()]) == Reply::Int(1)
        };
        self.running().filter(|(_, server)| holds(server)).map(|(number, _)| number).collect()
    }

    /// Sends one command to every running node; the replies, in order.
    #[track_caller]
    pub fn command<A: AsRef<[u8]>>(&self, args: &[A]) -> Vec<Reply> {
        self.running().map(|(_, server)| server.command(args)).collect()
    }

    /// Ends every connection to every running node.
    pub fn cut_clients(&self) {
        self.running().for_each(|(_, server)| server.cut_clients());
    }

    /// The nodes that can answer, with their numbers.
    fn running(&self) -> impl Iterator<Item = (usize, &Server)> {
        self.0.iter().enumerate().filter(|(_, server)| server.is_running())
    }
}

impl Index<usize> for Fleet {
    type Output = Server;

    fn index(&self, number: usize) -> &Server {
        &self.0[number]
    }
}

impl<'a> IntoIterator for &'a Fleet {
    type Item = &'a Server;
    type IntoIter = std::slice::Iter<'a, Server>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
