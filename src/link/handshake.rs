//! From a fresh stream to a usable one, without I/O: frames in, bytes and a [`Peer`] out.
//!
//! ```text
//!  Hello ──reply──▶ Setup ──all replies──▶ done
//!    │ unknown command (a server before 6.0, or it is renamed away), or RESP2 was asked for
//!    └──▶ Auth (if there is a password) ──▶ Setup
//! ```
//!
//! `HELLO` and `AUTH` go first, alone, and are awaited: servers from 7.2 on may leave out the reply
//! to a failing `AUTH` inside a batch, and every later reply would belong to the wrong command.
//! What follows goes in one batch. Its steps are optional but for `SELECT`: a user without the
//! right to `INFO` or `SCRIPT LOAD` can still hold locks.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quorlock_resp::{Frame, encode};

use super::address::{Address, Protocol};
use crate::options::Security;
use crate::report::{Fault, is_authentication, printable};

/// What the server said of itself. Where it would not say, it is taken for a plain master.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Peer {
    /// This connection's number, by which another connection can end it.
    pub(crate) client_id: Option<i64>,
    /// The server process's random name: two addresses of one server have the same.
    pub(crate) run_id: Option<Box<str>>,
    pub(crate) role: Role,
    pub(crate) mode: Mode,
    /// What stands under the key that the locker asked for.
    pub(crate) mark: Mark,
    /// What the server does to keys when its memory is full, if that is not to leave them alone.
    pub(crate) eviction: Option<Box<str>>,
}

impl Peer {
    /// The server process's name, if it has the form that can be sent back to it.
    pub(crate) fn process(&self) -> Option<Process> {
        let name = self.run_id.as_deref()?.as_bytes();
        Process::try_from(name).ok().filter(|name| name.iter().all(u8::is_ascii_alphanumeric))
    }
}

/// The name of a server's process: all servers give themselves one of this length.
pub(crate) type Process = [u8; 40];

/// What a server holds under one key.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum Mark {
    /// It was not asked, or did not say.
    #[default]
    Untold,
    Absent,
    Text(Box<[u8]>),
    /// Another type than a string.
    Other,
}

/// What a locker wants of a server, apart from its being a master. To this room it is opaque.
pub(crate) trait Terms: fmt::Debug + Send + Sync {
    /// The key whose value it wants to see first.
    fn key(&self) -> &[u8];

    fn judge(&self, peer: &Peer) -> Fit;

    /// Why a server is a misfit that refuses a vote for good, and names this time.
    fn explain(&self, time: Option<Duration>) -> Box<str>;
}

/// Whether a server is what a locker wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Fit {
    Fits,
    /// It may be asked, but no lock may be acquired while it is among the nodes, for this reason.
    Misfit(Box<str>),
    /// It cannot be used.
    Unusable(Fault),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Role {
    #[default]
    Master,
    Replica,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Mode {
    #[default]
    Standalone,
    Cluster,
    Sentinel,
}

/// What a locker brings to each connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Greeting {
    /// Scripts to load, so that their digests are known when the first command comes.
    pub(crate) scripts: Vec<&'static str>,
    pub(crate) terms: Option<Arc<dyn Terms>>,
    /// Whom to trust, where an address asks for TLS.
    pub(crate) security: Option<Security>,
}

/// One step whose reply is awaited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Hello,
    Auth,
    Select,
    SetName,
    Info,
    ClientId,
    Mark,
    ScriptLoad,
}

/// A handshake under way. Not `Debug`: its bytes hold the password.
pub(crate) struct Handshake {
    address: Address,
    greeting: Greeting,
    awaited: VecDeque<Step>,
    resp3: bool,
    peer: Peer,
    /// Bytes to send.
    outgoing: Vec<u8>,
}

impl Handshake {
    pub(crate) fn new(address: Address, greeting: Greeting) -> Self {
        let mut handshake = Self {
            address,
            greeting,
            awaited: VecDeque::new(),
            resp3: false,
            peer: Peer::default(),
            outgoing: Vec::new(),
        };
        match handshake.address.protocol {
            Protocol::Resp3 => handshake.say_hello(),
            Protocol::Resp2 => handshake.authenticate(),
        }
        handshake
    }

    /// The bytes to send now.
    pub(crate) fn poll_transmit(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.outgoing)
    }

    /// Takes the next frame from the server; the peer when that was the last one.
    pub(crate) fn handle_frame(&mut self, frame: &Frame) -> Result<Option<Peer>, Fault> {
        if frame.is_push() {
            return Ok(None);
        }
        let Some(step) = self.awaited.pop_front() else {
            return Err(protocol("a reply to nothing that was asked"));
        };
        match step {
            Step::Hello => self.handle_hello(frame)?,
            Step::Auth if frame.is_ok() => self.set_up(),
            Step::Auth => return Err(refusal(frame)),
            Step::Select if frame.is_ok() => {}
            Step::Select => return Err(refusal(frame)),
            Step::Info => self.handle_info(frame),
            Step::ClientId => self.peer.client_id = frame.as_integer().ok(),
            Step::Mark => self.peer.mark = mark(frame),
            // A name and a preloaded script are conveniences.
            Step::SetName | Step::ScriptLoad => {}
        }
        Ok(self.awaited.is_empty().then(|| self.peer.clone()))
    }

    fn say_hello(&mut self) {
        let Self { address, .. } = self;
        let user = address.user.clone().unwrap_or_else(|| "default".into());
        match address.password.clone() {
            Some(password) => {
                let args = [b"HELLO", &b"3"[..], b"AUTH", user.as_bytes(), password.as_bytes()];
                self.ask(Step::Hello, &args);
            }
            None => self.ask(Step::Hello, &[b"HELLO", b"3"]),
        }
    }

    /// The login of RESP2, where there is one.
    fn authenticate(&mut self) {
        match (self.address.user.clone(), self.address.password.clone()) {
            (Some(user), Some(password)) => {
                self.ask(Step::Auth, &[b"AUTH", user.as_bytes(), password.as_bytes()]);
            }
            (None, Some(password)) => self.ask(Step::Auth, &[b"AUTH", password.as_bytes()]),
            (_, None) => self.set_up(),
        }
    }

    fn handle_hello(&mut self, frame: &Frame) -> Result<(), Fault> {
        if let Some(error) = frame.as_error() {
            let is_unknown =
                error.starts_with(b"ERR unknown command") || error.starts_with(b"NOPROTO");
            if !is_unknown {
                return Err(refusal(frame));
            }
            self.authenticate();
            return Ok(());
        }
        let Ok(fields) = frame.as_pairs() else {
            return Err(protocol("HELLO was not answered by a map"));
        };
        let text = |name: &[u8]| fields.get(name).and_then(|value| value.as_str().ok());
        self.resp3 = true;
        self.peer.client_id = fields.get(b"id").and_then(|id| id.as_integer().ok());
        self.peer.mode = mode(text(b"mode"));
        self.peer.role = role(text(b"role"));
        self.set_up();
        Ok(())
    }

    /// The batch behind the login.
    fn set_up(&mut self) {
        if self.address.database != 0 {
            let database = self.address.database.to_string();
            self.ask(Step::Select, &[b"SELECT", database.as_bytes()]);
        }
        if let Some(name) = self.address.name.clone() {
            self.ask(Step::SetName, &[b"CLIENT", b"SETNAME", name.as_bytes()]);
        }
        self.ask(Step::Info, &[b"INFO", b"server"]);
        self.ask(Step::Info, &[b"INFO", b"memory"]);
        if !self.resp3 {
            self.ask(Step::Info, &[b"INFO", b"replication"]);
            self.ask(Step::ClientId, &[b"CLIENT", b"ID"]);
        }
        if let Some(terms) = self.greeting.terms.clone() {
            self.ask(Step::Mark, &[b"GET", terms.key()]);
        }
        for script in self.greeting.scripts.clone() {
            self.ask(Step::ScriptLoad, &[b"SCRIPT", b"LOAD", script.as_bytes()]);
        }
    }

    fn handle_info(&mut self, frame: &Frame) {
        let Ok(info) = frame.as_str() else { return }; // the ACL may forbid it
        let field =
            |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        if let Some(run_id) = field("run_id") {
            self.peer.run_id = Some(run_id.into());
        }
        if let Some(policy) = field("maxmemory_policy").filter(|policy| *policy != "noeviction") {
            self.peer.eviction = Some(printable(policy.as_bytes()));
        }
        if !self.resp3 {
            if let Some(found) = field("redis_mode").or_else(|| field("server_mode")) {
                self.peer.mode = mode(Some(found));
            }
            if let Some(found) = field("role") {
                self.peer.role = role(Some(found));
            }
        }
    }

    fn ask(&mut self, step: Step, args: &[&[u8]]) {
        encode::command(&mut self.outgoing, args);
        self.awaited.push_back(step);
    }
}

fn mode(name: Option<&str>) -> Mode {
    match name {
        Some("cluster") => Mode::Cluster,
        Some("sentinel") => Mode::Sentinel,
        _ => Mode::Standalone,
    }
}

fn role(name: Option<&str>) -> Role {
    match name {
        Some("replica" | "slave") => Role::Replica,
        _ => Role::Master,
    }
}

fn mark(frame: &Frame) -> Mark {
    match frame.as_bytes() {
        Ok(text) => Mark::Text(text.into()),
        Err(_) if *frame.value() == Frame::Null => Mark::Absent,
        Err(_) if frame.error_word() == Some(b"WRONGTYPE") => Mark::Other,
        Err(_) => Mark::Untold,
    }
}

/// A step that cannot be done without was refused.
fn refusal(frame: &Frame) -> Fault {
    let Some(text) = frame.as_error() else {
        return protocol("a reply that the handshake cannot have");
    };
    let error = printable(text);
    if is_authentication(&error) {
        Fault::Authentication { error }
    } else {
        Fault::Handshake { error }
    }
}

fn protocol(what: &str) -> Fault {
    Fault::Protocol { error: what.into() }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    const SCRIPT: &str = "return 1";

    fn start(url: &str) -> Handshake {
        let greeting = Greeting { scripts: vec![SCRIPT], ..Greeting::default() };
        Handshake::new(Address::parse(url).unwrap(), greeting)
    }

    #[derive(Debug)]
    struct Looks;

    impl Terms for Looks {
        fn key(&self) -> &[u8] {
            b"the:mark"
        }

        fn judge(&self, _: &Peer) -> Fit {
            Fit::Fits
        }

        fn explain(&self, _: Option<Duration>) -> Box<str> {
            "".into()
        }
    }

    #[test]
    fn a_mark_is_asked_for_and_told_as_it_is_found() {
        let cases = [
            (bulk("held"), Mark::Text(b"held"[..].into())),
            (Frame::Null, Mark::Absent),
            (error("WRONGTYPE Operation against a key"), Mark::Other),
            (error("NOPERM no get"), Mark::Untold),
        ];
        for (reply, found) in cases {
            let greeting = Greeting { terms: Some(Arc::new(Looks)), ..Greeting::default() };
            let mut handshake = Handshake::new(Address::parse("redis://h").unwrap(), greeting);
            handshake.poll_transmit();
            handshake.handle_frame(&hello("standalone", "master")).unwrap();
            let info = [command(&["INFO", "server"]), command(&["INFO", "memory"])];
            let batch = [info.concat(), command(&["GET", "the:mark"])];
            assert_eq!(handshake.poll_transmit(), batch.concat());
            handshake.handle_frame(&bulk("run_id:abc\r\n")).unwrap();
            handshake.handle_frame(&bulk("maxmemory_policy:noeviction\r\n")).unwrap();
            assert_eq!(handshake.handle_frame(&reply).unwrap().unwrap().mark, found);
        }
    }

    #[test]
    fn a_process_has_a_name_of_forty_characters() {
        let named = |name: &str| Peer { run_id: Some(name.into()), ..Peer::default() }.process();
        assert_eq!(named(&"a7".repeat(20)).unwrap()[..2], *b"a7");
        assert_eq!(named("abc"), None);
        assert_eq!(named(&"a ".repeat(20)), None);
        assert_eq!(Peer::default().process(), None);
    }

    fn command(args: &[&str]) -> Vec<u8> {
        let args: Vec<_> = args.iter().map(|arg| arg.as_bytes()).collect();
        let mut bytes = Vec::new();
        encode::command(&mut bytes, &args);
        bytes
    }

    fn bulk(text: &'static str) -> Frame {
        Frame::Bulk(Bytes::from_static(text.as_bytes()))
    }

    fn error(text: &'static str) -> Frame {
        Frame::Error(Bytes::from_static(text.as_bytes()))
    }

    fn ok() -> Frame {
        Frame::Simple(Bytes::from_static(b"OK"))
    }

    fn hello(mode: &'static str, role: &'static str) -> Frame {
        let fields = [
            (bulk("server"), bulk("redis")),
            (bulk("id"), Frame::Integer(7)),
            (bulk("mode"), bulk(mode)),
            (bulk("role"), bulk(role)),
        ];
        Frame::Map(fields.into_iter().collect())
    }

    #[test]
    fn resp3_logs_in_with_its_first_command_alone_and_batches_the_rest() {
        let mut handshake = start("redis://me:pw@h/2?name=web");
        assert_eq!(handshake.poll_transmit(), command(&["HELLO", "3", "AUTH", "me", "pw"]));
        assert_eq!(handshake.handle_frame(&hello("standalone", "master")), Ok(None));
        let batch = [
            command(&["SELECT", "2"]),
            command(&["CLIENT", "SETNAME", "web"]),
            command(&["INFO", "server"]),
            command(&["INFO", "memory"]),
            command(&["SCRIPT", "LOAD", SCRIPT]),
        ];
        assert_eq!(handshake.poll_transmit(), batch.concat());
        assert_eq!(handshake.handle_frame(&ok()), Ok(None));
        assert_eq!(handshake.handle_frame(&ok()), Ok(None));
        assert_eq!(handshake.handle_frame(&bulk("# Server\r\nrun_id:abc\r\n")), Ok(None));
        let memory = "# Memory\r\nmaxmemory_policy:volatile-lru\r\n";
        assert_eq!(handshake.handle_frame(&bulk(memory)), Ok(None));
        let peer = handshake.handle_frame(&bulk("digest")).unwrap().unwrap();
        assert_eq!(peer.eviction.as_deref(), Some("volatile-lru"));
        assert_eq!(peer.client_id, Some(7));
        assert_eq!(peer.run_id.as_deref(), Some("abc"));
        assert_eq!((peer.mode, peer.role), (Mode::Standalone, Role::Master));
    }

    #[test]
    fn a_server_without_hello_is_spoken_to_in_resp2() {
        let mut handshake = start("redis://:pw@h");
        assert_eq!(handshake.poll_transmit(), command(&["HELLO", "3", "AUTH", "default", "pw"]));
        handshake.handle_frame(&error("ERR unknown command `HELLO`")).unwrap();
        assert_eq!(handshake.poll_transmit(), command(&["AUTH", "pw"]));
        handshake.handle_frame(&ok()).unwrap();
        handshake.poll_transmit();
        handshake.handle_frame(&bulk("run_id:abc\r\nredis_mode:cluster\r\n")).unwrap();
        handshake.handle_frame(&bulk("maxmemory_policy:noeviction\r\n")).unwrap();
        handshake.handle_frame(&bulk("role:slave\r\n")).unwrap();
        handshake.handle_frame(&Frame::Integer(9)).unwrap();
        let peer = handshake.handle_frame(&bulk("digest")).unwrap().unwrap();
        assert_eq!((peer.mode, peer.role), (Mode::Cluster, Role::Replica));
        assert_eq!((peer.client_id, peer.eviction), (Some(9), None));
    }

    #[test]
    fn a_refused_login_is_told_as_one() {
        for text in ["NOAUTH Authentication required.", "WRONGPASS invalid username-password pair"]
        {
            let fault = start("redis://:pw@h").handle_frame(&error(text)).unwrap_err();
            assert!(matches!(fault, Fault::Authentication { .. }), "{fault:?}");
        }
        let mut handshake = start("redis://h/99");
        handshake.handle_frame(&hello("standalone", "master")).unwrap();
        let fault = handshake.handle_frame(&error("ERR DB index is out of range")).unwrap_err();
        assert!(matches!(fault, Fault::Handshake { .. }), "{fault:?}");
    }

    #[test]
    fn optional_steps_may_be_refused() {
        let mut handshake = start("redis://h?name=web");
        handshake.handle_frame(&hello("standalone", "replica")).unwrap();
        for _ in 0..3 {
            assert_eq!(handshake.handle_frame(&error("NOPERM no")), Ok(None));
        }
        let peer = handshake.handle_frame(&error("NOPERM no")).unwrap().unwrap();
        assert_eq!((peer.run_id, peer.role), (None, Role::Replica));
    }

    #[test]
    fn a_reply_too_many_and_a_reply_that_cannot_be_are_faults() {
        assert!(start("redis://h").handle_frame(&ok()).is_err());
        let mut handshake = start("redis://h?protocol=2");
        handshake.awaited.clear();
        assert!(handshake.handle_frame(&ok()).is_err());
    }
}
