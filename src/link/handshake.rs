//! From a fresh stream to a usable one, without I/O: frames in, bytes and a [`Peer`] out.
//!
//! ```text
//!  Hello ──reply──▶ Setup ──all replies──▶ done
//!    │                  └─ something is left ─▶ Rest ──all replies──▶ done
//!    │ unknown command (a server before 6.0, or it is renamed away), or RESP2 was asked for
//!    └──▶ Auth (if there is a password) ──▶ Setup
//! ```
//!
//! `HELLO` and `AUTH` go first, alone, and are awaited: servers from 7.2 on may leave out the reply
//! to a failing `AUTH` inside a batch, and every later reply would belong to the wrong command.
//! What follows goes in one batch, so that a handshake takes two round trips; a third one where no
//! script may be loaded, or where native commands are wanted of a server that tells its version
//! only in that batch. Its steps are optional but for `SELECT`: a user without the right to `INFO`,
//! `CONFIG` or `SCRIPT LOAD` can still hold locks, and an older server does not know
//! `CLIENT SETINFO`.
//!
//! The scripts must be known to the server before the first lock is taken: a guard that is dropped
//! sends its release by the script's digest and waits for nothing, and where the runtime is gone by
//! then, no task could send a missing script. A user who may not load scripts makes them known by
//! executing them once, without a key: then they fail before they do anything.
//!
//! Only a server that answers
//! one of them with "not logged in" or "not yet" is not usable, whatever it says to the others.

mod told;

use std::collections::VecDeque;
use std::sync::Arc;

use quorlock_resp::{Frame, encode};

use super::native;
use super::peer::{AdmissionPolicy, EpochValue, Peer};
use super::push::{Listener, Push, TRACKING_OFF};
use crate::clock::Reading;
use crate::options::{Address, Protocol, Security};
use crate::report::{ClockSkew, Fault, printable};
use crate::server_error::ServerError;

/// By this name servers list the connections of this library (`CLIENT LIST`, `lib-name`).
const LIBRARY: &[u8] = env!("CARGO_PKG_NAME").as_bytes();
const LIBRARY_VERSION: &[u8] = env!("CARGO_PKG_VERSION").as_bytes();

/// What a locker brings to each connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct HandshakeConfig {
    /// Scripts to load, so that their digests are known when the first command comes.
    pub(crate) scripts: Vec<&'static str>,
    pub(crate) policy: Option<Arc<dyn AdmissionPolicy>>,
    /// Who listens to a channel. One connection to each node is enough.
    pub(crate) listener: Option<Arc<dyn Listener>>,
    /// Whom to trust, where an address asks for TLS.
    pub(crate) security: Option<Security>,
    /// [Native commands](super::native) are sent, where they may be sent about this key.
    pub(crate) native_probe_key: Option<Arc<[u8]>>,
}

/// One step whose reply is awaited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Hello,
    Auth,
    Select,
    Time,
    Info,
    Config,
    ClientId,
    EpochValue,
    /// It is answered by a push, or by an error.
    Subscribe,
    /// Whether it can track, and may be asked to. `CLIENT CACHING` takes a right of its own, and is
    /// an error while tracking is off: whether that may be sent is known when it is.
    Track,
    /// A script of the configuration, by its place there.
    Load(usize),
    /// Whether native commands may be sent.
    Probe,
    /// What is for the server's operator, or brings a script: the reply says nothing.
    Courtesy,
}

/// A handshake under way. Not `Debug`: its bytes hold the password.
pub(crate) struct Handshake {
    address: Address,
    config: HandshakeConfig,
    awaited: VecDeque<Step>,
    /// The scripts that could not be loaded, by their places.
    missing: Vec<usize>,
    has_probed: bool,
    peer: Peer,
    /// Bytes to send.
    outgoing: Vec<u8>,
    /// The clocks when bytes were last given out.
    sent: Reading,
}

impl Handshake {
    pub(crate) fn new(address: Address, config: HandshakeConfig) -> Self {
        let mut handshake = Self {
            address,
            config,
            awaited: VecDeque::new(),
            missing: Vec::new(),
            has_probed: false,
            peer: Peer::default(),
            outgoing: Vec::new(),
            sent: Reading::default(),
        };
        match handshake.address.protocol {
            Protocol::Resp3 => handshake.say_hello(),
            Protocol::Resp2 => handshake.authenticate(),
        }
        handshake
    }

    /// The bytes to send `now`.
    pub(crate) fn poll_transmit(&mut self, now: Reading) -> Vec<u8> {
        if !self.outgoing.is_empty() {
            self.sent = now;
        }
        std::mem::take(&mut self.outgoing)
    }

    /// Takes the next frame from the server, which came `now`; the peer when that was the last one.
    pub(crate) fn handle_frame(
        &mut self,
        frame: &Frame,
        now: Reading,
    ) -> Result<Option<Peer>, Fault> {
        let is_expected = self.awaited.front() == Some(&Step::Subscribe)
            && Push::parse(frame) == Some(Push::Subscribed);
        if frame.is_push() && !is_expected {
            return Ok(None);
        }
        let Some(step) = self.awaited.pop_front() else {
            return Err(protocol("a reply to nothing that was asked"));
        };
        let Peer { server, rtt, .. } = &mut self.peer;
        rtt.get_or_insert_with(|| now.now.since(self.sent.now));
        match step {
            Step::Hello => self.handle_hello(frame)?,
            Step::Auth if frame.is_ok() => self.set_up(),
            Step::Select if frame.is_ok() => {}
            Step::Auth | Step::Select => return Err(refusal(frame)),
            _ if is_unusable(frame) => return Err(refusal(frame)),
            Step::Time | Step::Info => {
                let time = match step {
                    Step::Time => told::time(frame),
                    _ => told::info(frame, server),
                };
                if let (Some(time), None) = (time, server.clock) {
                    let (sent, came) = (self.sent.stamp.wall(), now.stamp.wall());
                    server.clock = Some(ClockSkew::measured(time, sent, came));
                }
            }
            Step::Config => told::config(frame, server),
            Step::ClientId => self.peer.client_id = frame.as_integer().ok(),
            Step::EpochValue => self.peer.epoch = epoch(frame),
            Step::Subscribe => self.peer.subscriptions.channel = frame.is_push(),
            Step::Track => self.peer.subscriptions.changes = frame.is_ok(),
            Step::Load(place) if frame.as_error().is_some() => self.missing.push(place),
            Step::Probe => self.peer.is_native = native::has_succeeded(frame),
            Step::Load(_) | Step::Courtesy => {}
        }
        if self.awaited.is_empty() {
            self.bring_scripts();
            self.probe(); // by RESP2 the version is known only now
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
            if !is_without_hello(error) {
                return Err(refusal(frame));
            }
            self.authenticate();
            return Ok(());
        }
        let Ok(fields) = frame.as_pairs() else {
            return Err(protocol("HELLO was not answered by a map"));
        };
        self.peer.client_id = fields.get(b"id").and_then(|id| id.as_integer().ok());
        self.peer.server.resp3 = true;
        told::hello(fields, &mut self.peer.server);
        self.set_up();
        Ok(())
    }

    /// The batch behind the login. The time comes first: what stands before it makes it less exact.
    fn set_up(&mut self) {
        if self.address.database != 0 {
            let database = self.address.database.to_string();
            self.ask(Step::Select, &[b"SELECT", database.as_bytes()]);
        }
        self.ask(Step::Time, &[b"TIME"]);
        // One section each: servers before 7.0 take no list.
        self.ask(Step::Info, &[b"INFO", b"server"]);
        self.ask(Step::Info, &[b"INFO", b"memory"]);
        self.ask(Step::Info, &[b"INFO", b"persistence"]);
        if !self.peer.server.resp3 {
            self.ask(Step::Info, &[b"INFO", b"replication"]);
            self.ask(Step::ClientId, &[b"CLIENT", b"ID"]);
        }
        self.ask(Step::Config, &[b"CONFIG", b"GET", b"appendfsync"]);
        self.ask(Step::Config, &[b"CONFIG", b"GET", b"save"]);
        if let Some(policy) = self.config.policy.clone() {
            self.ask(Step::EpochValue, &[b"GET", policy.key()]);
        }
        // In RESP2 a connection that listens could say nothing else.
        if let Some(listener) = self.config.listener.clone().filter(|_| self.peer.server.resp3) {
            self.ask(Step::Subscribe, &[b"SUBSCRIBE", listener.channel()]);
            self.ask(Step::Track, &TRACKING_OFF);
        }
        if let Some(name) = self.address.name.clone() {
            self.ask(Step::Courtesy, &[b"CLIENT", b"SETNAME", name.as_bytes()]);
        }
        self.ask(Step::Courtesy, &[b"CLIENT", b"SETINFO", b"LIB-NAME", LIBRARY]);
        self.ask(Step::Courtesy, &[b"CLIENT", b"SETINFO", b"LIB-VER", LIBRARY_VERSION]);
        self.probe();
        for (place, script) in self.config.scripts.clone().into_iter().enumerate() {
            self.ask(Step::Load(place), &[b"SCRIPT", b"LOAD", script.as_bytes()]);
        }
    }

    fn bring_scripts(&mut self) {
        for place in std::mem::take(&mut self.missing) {
            if let Some(script) = self.config.scripts.get(place).copied() {
                self.ask(Step::Courtesy, &[b"EVAL", script.as_bytes(), b"0"]);
            }
        }
    }

    /// Asks once whether native commands may be sent, if they are wanted and the server has them.
    fn probe(&mut self) {
        let key = self.config.native_probe_key.as_deref();
        let key = key.filter(|_| !self.has_probed && native::is_had_by(&self.peer.server));
        if let Some(key) = key {
            self.outgoing.extend_from_slice(&native::probe(key));
            self.awaited.push_back(Step::Probe);
            self.has_probed = true;
        }
    }

    fn ask(&mut self, step: Step, args: &[&[u8]]) {
        encode::command(&mut self.outgoing, args);
        self.awaited.push_back(step);
    }
}

/// Whether a server, or a proxy before it, knows nothing of RESP3.
fn is_without_hello(error: &[u8]) -> bool {
    const NOPROTO: &[u8] = b"NOPROTO";
    let has_no_such = error.get(..NOPROTO.len()).is_some_and(|it| it.eq_ignore_ascii_case(NOPROTO));
    has_no_such || ServerError::new(error).is_unknown_command()
}

/// Whether an optional step was refused for a reason that leaves nothing usable. Without this, a
/// node whose role and epoch cannot be asked for would count as connected. (Without a login, the
/// first command of RESP2 is an optional one.)
fn is_unusable(frame: &Frame) -> bool {
    frame.as_error().is_some_and(|text| ServerError::new(text).leaves_nothing_usable())
}

fn epoch(frame: &Frame) -> EpochValue {
    match frame.as_bytes() {
        Ok(text) => EpochValue::Text(text.into()),
        Err(_) if *frame.value() == Frame::Null => EpochValue::Absent,
        Err(_) if frame.error_word() == Some(b"WRONGTYPE") => EpochValue::Other,
        Err(_) => EpochValue::Untold,
    }
}

/// A step that cannot be done without was refused.
fn refusal(frame: &Frame) -> Fault {
    let Some(text) = frame.as_error() else {
        return protocol("a reply that the handshake cannot have");
    };
    let error = printable(text);
    if ServerError::new(error.as_bytes()).is_authentication() {
        Fault::Authentication { error }
    } else {
        Fault::Handshake { error }
    }
}

fn protocol(what: &str) -> Fault {
    Fault::Protocol { error: what.into() }
}

#[cfg(test)]
mod tests;
