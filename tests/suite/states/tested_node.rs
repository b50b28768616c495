//! The node under test: brings it into its state and out of it.

use std::sync::Mutex;
use std::thread::JoinHandle;
use std::time::Duration;

use quorlock::{
    Durability, Extend, Locker, LockerBuilder,
    report::{KeyState, Outcome},
};
use support::{Calls, Client, Gate, Reply, Scripted, Server, Watchdog, eventually_async};

use super::state::{Left, Node, State};

/// How long a test waits for what a server does at its own pace: a Cluster's gossip, for one.
const PATIENCE: Duration = Duration::from_secs(10);

/// The node under test.
pub(super) struct TestedNode {
    kind: Kind,
    /// Another server that the state needs.
    pub(super) other: Mutex<Option<Server>>,
    /// Commands that take as long as the state lasts.
    long: Mutex<Vec<JoinHandle<()>>>,
}

enum Kind {
    /// The admin's connection is made before the state and survives it.
    Real {
        server: Box<Server>,
        admin: Mutex<Client>,
    },
    Scripted {
        server: Scripted,
        gate: Gate,
    },
}

impl TestedNode {
    pub(super) fn new(state: &State) -> Self {
        let kind = match state.node {
            Node::Real(describe) => {
                let server = Box::new(describe(Server::builder()).start());
                let admin = Mutex::new(server.connect().unwrap());
                Kind::Real { server, admin }
            }
            Node::Scripted(scripts) => {
                let gate = Gate::new();
                let server = Scripted::start_sequence(scripts(&gate));
                Kind::Scripted { server, gate }
            }
        };
        let node = Self { kind, other: Mutex::default(), long: Mutex::default() };
        (state.prepare)(&node);
        node
    }

    pub(super) fn is_real(&self) -> bool {
        matches!(self.kind, Kind::Real { .. })
    }

    /// The real server; panics where there is none.
    pub(super) fn server(&self) -> &Server {
        match &self.kind {
            Kind::Real { server, .. } => server,
            Kind::Scripted { .. } => panic!("this node is scripted"),
        }
    }

    pub(super) fn url(&self, state: &State) -> String {
        match &self.kind {
            Kind::Real { server, .. } => server.url_as(state.login),
            Kind::Scripted { server, .. } => server.url(),
        }
    }

    /// A locker's builder on this node alone.
    pub(super) fn builder(&self, state: &State) -> LockerBuilder {
        tuned(Locker::single(self.url(state)).unwrap(), state)
    }

    /// Sends a command whose words hold no blanks.
    pub(super) fn ask(&self, words: &str) -> Reply {
        self.ask_words(&words.split_whitespace().collect::<Vec<_>>())
    }

    pub(super) fn ask_words<A: AsRef<[u8]>>(&self, words: &[A]) -> Reply {
        match &self.kind {
            Kind::Real { admin, .. } => admin.lock().unwrap().call(words).unwrap(),
            Kind::Scripted { .. } => panic!("a scripted node takes no commands from its test"),
        }
    }

    /// As [`TestedNode::ask`], and the command must succeed.
    #[track_caller]
    pub(super) fn tell(&self, words: &str) {
        let reply = self.ask(words);
        assert!(!matches!(reply, Reply::Error(_)), "{words}: {reply:?}");
    }

    /// Ends all connections but this one: those that listen to a channel are of another type.
    pub(super) fn cut_clients(&self) {
        for kind in ["normal", "pubsub"] {
            drop(self.ask(&format!("CLIENT KILL TYPE {kind} SKIPME yes")));
        }
    }

    /// Sends these words and an empty one.
    pub(super) fn ask_empty(&self, words: &str) {
        let words: Vec<_> = words.split_whitespace().chain([""]).collect();
        assert_eq!(self.ask_words(&words), Reply::ok());
    }

    /// Tells several things, one to a line.
    #[track_caller]
    pub(super) fn tell_all(&self, lines: &[&str]) {
        lines.iter().for_each(|words| self.tell(words));
    }

    /// Waits until a command's reply holds this text.
    pub(super) fn await_reply(&self, words: &str, text: &str) {
        let watchdog = Watchdog::with_patience(format!("{words} to say {text}"), PATIENCE);
        let says = |reply: Reply| match reply {
            Reply::Bulk(_) | Reply::Error(_) | Reply::Status(_) => reply.text().contains(text),
            _ => false,
        };
        while !says(self.ask(words)) {
            watchdog.pause();
        }
    }

    /// Starts a command that lasts as long as the state does, on a connection of its own.
    pub(super) fn begin(&self, words: &[&str]) {
        let mut client = self.server().connect().unwrap();
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        // It ends in an error where the state is ended from outside.
        let work = move || drop(client.call(&words));
        self.long.lock().unwrap().push(std::thread::spawn(work));
    }

    /// Waits for what was begun.
    pub(super) fn join(&self) {
        for thread in self.long.lock().unwrap().drain(..) {
            thread.join().unwrap();
        }
    }

    /// A server that was started anew has ended the admin's connection.
    pub(super) fn reconnect(&self) {
        if let Kind::Real { server, admin } = &self.kind {
            *admin.lock().unwrap() = server.connect().unwrap();
        }
    }

    /// Brings the node into the state, and the locker's connections with it.
    pub(super) async fn enter(&self, state: &State, locker: &Locker) {
        if let Kind::Scripted { gate, server } = &self.kind {
            gate.open();
            if state.cut {
                server.cut_all();
            }
        }
        (state.enter)(self);
        if state.cut && self.is_real() && self.server().is_running() {
            // A server that refuses this has ended them on its way into the state.
            self.cut_clients();
        }
        if !state.cut {
            return;
        }
        let wanted = state.in_quorum.filter(|_| locker.health().len() > 1);
        let wanted = wanted.unwrap_or(state.says[0]);
        eventually_async(&format!("{}: it is noticed", state.name), async || {
            let found = &locker.health()[0].outcome;
            match wanted.is(&Outcome::Granted) {
                // A connection that has ended answers nothing.
                true => is_told(locker).await,
                false => wanted.is(found),
            }
        })
        .await;
    }

    pub(super) fn leave(&self, state: &State) {
        (state.leave)(self);
        self.join();
    }

    /// How often a release was asked of the server since this was last asked for.
    pub(super) fn releases(&self) -> u64 {
        let calls = Calls::read(&self.ask("INFO commandstats"));
        self.tell("CONFIG RESETSTAT");
        calls.releases() + calls.rejected("evalsha") + calls.rejected("delifeq")
    }

    /// Waits until no key is left; and at no look is there one that would stay forever.
    pub(super) async fn settle(&self, state: &State) {
        if !self.is_real() {
            return;
        }
        eventually_async(&format!("{}: no key is left", state.name), async || {
            let mut keys = self.ask("KEYS *").array();
            keys.retain(|key| key.text() != "quorlock:epoch"); // the node's own
            for key in &keys {
                let lives = self.ask_words(&["PTTL", &key.text()]).int();
                assert_ne!(lives, -1, "{}: {} never expires", state.name, key.text());
            }
            keys.is_empty()
        })
        .await;
    }
}

/// Whether the node answers what stands under the key.
pub(super) async fn is_told(locker: &Locker) -> bool {
    let seen = locker.inspect("k").await;
    seen.is_ok_and(|seen| matches!(seen.nodes[0].state, KeyState::Free | KeyState::Held(_)))
}

/// The options of every locker here. A key that no client may delete must end while we wait.
pub(super) fn tuned(builder: LockerBuilder, state: &State) -> LockerBuilder {
    let ttl = match state.left {
        Left::Nothing => Duration::from_secs(60),
        Left::UntilExpiry => Duration::from_secs(2),
    };
    let builder =
        builder.ttl(ttl).auto_extend(Extend::Off).node_timeout(Duration::from_millis(500));
    match state.volatile {
        true => builder.durability(Durability::Volatile { longest_ttl: ttl }),
        false => builder,
    }
}
