//! Causes of loss, and how the nodes recover from each.

use std::thread;

use support::{Fleet, Proxy, Reply, Server};

/// What ends all locks at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LossCause {
    Delete,
    Flush,
    /// Another client's value stands under every key.
    Steal,
    KillMajority,
    HangMajority,
    HangAll,
    /// Nothing gets through to any node, and nothing comes back.
    CutOff,
}

impl LossCause {
    /// Whether the nodes are there to tell that the lock is gone.
    pub(super) fn is_told_by_nodes(self) -> bool {
        matches!(self, Self::Delete | Self::Flush | Self::Steal)
    }

    /// The TTLs of locks that it hits, in milliseconds. Where the nodes tell of it, they do so
    /// when they are asked to extend, at a third of the TTL: the rest is for a busy machine.
    pub(super) fn ttls(self) -> (u64, u64) {
        if self.is_told_by_nodes() { (1_500, 4_500) } else { (300, 900) }
    }
}

/// The nodes, each behind a proxy.
pub(super) struct World {
    fleet: Fleet,
    pub(super) proxies: Vec<Proxy>,
}

/// Says a command about every key of a node, in one step where the node knows Lua.
fn on_every_key(server: &Server, command: &str, rest: &[&str]) {
    if server.is_process() {
        let script = "for _, key in ipairs(redis.call('KEYS', '*')) do \
                      redis.call(ARGV[1], key, unpack(ARGV, 2)) end";
        server.command(&[&["EVAL", script, "0", command], rest].concat());
        return;
    }
    let mut client = server.connect().unwrap();
    for key in client.call(&["KEYS", "*"]).unwrap().array() {
        client.call(&[&[command, &key.text()], rest].concat()).unwrap();
    }
}

impl World {
    pub(super) fn start(size: usize) -> Self {
        let fleet = Fleet::start(size);
        let proxies = super::super::proxies(&fleet);
        Self { fleet, proxies }
    }

    /// Applies the cause to all nodes at about the same time.
    pub(super) fn apply(&self, cause: LossCause) {
        let majority = self.fleet.len() / 2 + 1;
        match cause {
            LossCause::Delete => self.on_each(self.fleet.len(), |server| {
                on_every_key(server, "DEL", &[]);
            }),
            LossCause::Flush => self.on_each(self.fleet.len(), |server| {
                let flush = ["FLUSHALL", "FLUSHDB"][usize::from(server.port() % 2)];
                assert_eq!(server.command(&[flush]), Reply::ok());
            }),
            LossCause::Steal => self.on_each(self.fleet.len(), |server| {
                on_every_key(server, "SET", &["thief", "PX", "60000"]);
            }),
            LossCause::KillMajority => self.on_each(majority, Server::stop),
            LossCause::HangMajority => self.on_each(majority, Server::pause),
            LossCause::HangAll => self.on_each(self.fleet.len(), Server::pause),
            LossCause::CutOff => self.proxies.iter().for_each(Proxy::freeze),
        }
    }

    /// Everything is as it was at first.
    pub(super) fn recover(&self, cause: LossCause) {
        match cause {
            LossCause::KillMajority => self.on_each(self.fleet.len() / 2 + 1, Server::restart),
            LossCause::HangMajority | LossCause::HangAll => {
                self.on_each(self.fleet.len(), Server::resume)
            }
            LossCause::CutOff => self.proxies.iter().for_each(Proxy::thaw),
            LossCause::Delete | LossCause::Flush | LossCause::Steal => {}
        }
        self.fleet.command(&["FLUSHALL"]);
    }

    fn on_each(&self, count: usize, act: impl Fn(&Server) + Sync) {
        thread::scope(|scope| {
            for server in self.fleet.iter().take(count) {
                scope.spawn(|| act(server));
            }
        });
    }
}
