//! One node's connection: connecting and logging in, then writing commands and reading replies.

use std::collections::VecDeque;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use bytes::BytesMut;
use quorlock::report::NodeHealth;
use quorlock_resp::{Decoder, Frame, Limits, encode};
use rustix::io::{Errno, ioctl_fionbio, read, write};

use crate::bench::place::{Endpoint, Place};
use crate::exit::{Cause, Failure};

/// How long connecting and each answer of the login may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// The most bytes that may be queued for a node; beyond that the run ends with an error.
const OUT_MAX: usize = 64 << 20;

/// The most bytes that a pass reads from one node.
const INBOX: usize = 64 << 10;

/// Which request a reply belongs to: the caller, and its operation.
pub(crate) type RequestId = (u32, u32);

/// The buffers of a connection. The socket is kept separately, to be polled.
#[derive(Debug)]
pub(crate) struct Connection {
    label: String,
    out: Vec<u8>,
    inbox: Box<[u8]>,
    filled: usize,
    /// The requests without a reply, oldest first.
    expected: VecDeque<RequestId>,
    /// Whether a key is deleted by `DELIFEQ`, or else by the script.
    deletes_natively: bool,
}

impl Connection {
    /// Connects, logs in, and loads the script; its digest is the last of what is returned.
    pub(crate) fn open(place: &Place, script: &str) -> Result<(OwnedFd, Self, Vec<u8>), Failure> {
        let failed = |error: io::Error| {
            let what = format!("the floor cannot use {}: {error}", place.label);
            Failure::new(Cause::Unavailable, what)
        };
        let socket = connect(&place.endpoint).map_err(failed)?;
        let mut login = Login { socket: &socket, label: &place.label, inbox: BytesMut::new() };
        let digest = login.run(place, script)?;
        ioctl_fionbio(&socket, true).map_err(|error| failed(error.into()))?;
        let connection = Self {
            label: place.label.clone(),
            out: Vec::new(),
            inbox: vec![0; INBOX].into_boxed_slice(),
            filled: 0,
            expected: VecDeque::new(),
            deletes_natively: false,
        };
        Ok((socket, connection, digest))
    }

    /// Deletes keys from now on by the command by which our lock is released on this node.
    pub(crate) fn delete_as(&mut self, ours: &[NodeHealth]) {
        self.deletes_natively =
            ours.iter().any(|known| known.deletes_natively && *known.node == *self.label);
    }

    pub(crate) fn deletes_natively(&self) -> bool {
        self.deletes_natively
    }

    pub(crate) fn queue(&mut self, command: &[u8], request: RequestId) {
        self.out.extend_from_slice(command);
        self.expected.push_back(request);
    }

    /// Whether every command has its reply.
    pub(crate) fn is_settled(&self) -> bool {
        self.expected.is_empty()
    }

    /// Writes what the kernel takes. The rest waits for the next pass.
    pub(crate) fn flush(&mut self, socket: &OwnedFd) -> Result<(), Failure> {
        if self.out.is_empty() {
            return Ok(());
        }
        match write(socket, &self.out) {
            Ok(written) if written == self.out.len() => self.out.clear(),
            Ok(written) => drop(self.out.drain(..written)),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(self.failure(&format!("failed: {error}"))),
        }
        if self.out.len() > OUT_MAX {
            return Err(self.failure("hangs: too many bytes are queued for it"));
        }
        Ok(())
    }

    /// Reads once, and calls `vote` for each reply. Every reply must be a success, also a late one.
    pub(crate) fn read(
        &mut self,
        socket: &OwnedFd,
        mut vote: impl FnMut(RequestId),
    ) -> Result<(), Failure> {
        match read(socket, &mut self.inbox[self.filled..]) {
            Ok(0) => return Err(self.failure("closed the connection")),
            Ok(count) => self.filled += count,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
            Err(error) => return Err(self.failure(&format!("failed: {error}"))),
        }
        let mut taken = 0;
        while let Some(end) = self.inbox[taken..self.filled].iter().position(|b| *b == b'\n') {
            let line = self.inbox[taken..taken + end].trim_ascii_end();
            taken += end + 1;
            let request = self.expected.pop_front();
            // Acquisitions are even, releases are odd.
            match (request, line) {
                (Some(request), b"+OK") if request.1 % 2 == 0 => vote(request),
                (Some(request), b":1") if request.1 % 2 == 1 => vote(request),
                _ => return Err(refusal(&self.label, line)),
            }
        }
        self.inbox.copy_within(taken..self.filled, 0);
        self.filled -= taken;
        Ok(())
    }

    fn failure(&self, what: &str) -> Failure {
        Failure::new(Cause::Unavailable, format!("the floor: {} {what}", self.label))
    }
}

fn refusal(label: &str, line: &[u8]) -> Failure {
    let denied = [&b"-NOPERM"[..], b"-NOAUTH", b"-WRONGPASS"];
    let is_denied = denied.iter().any(|code| line.starts_with(code));
    let cause = if is_denied { Cause::Denied } else { Cause::Unavailable };
    Failure::new(cause, format!("the floor: {label} answered {}", line.escape_ascii()))
}

fn connect(endpoint: &Endpoint) -> io::Result<OwnedFd> {
    match endpoint {
        Endpoint::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            Ok(stream.into())
        }
        Endpoint::Tcp { host, port } => {
            let mut last = io::Error::other("the name has no address");
            for addr in (host.as_str(), *port).to_socket_addrs()? {
                match TcpStream::connect_timeout(&addr, PATIENCE) {
                    Ok(stream) => {
                        stream.set_nodelay(true)?;
                        stream.set_read_timeout(Some(PATIENCE))?;
                        return Ok(stream.into());
                    }
                    Err(error) => last = error,
                }
            }
            Err(last)
        }
    }
}

/// The handshake on a connection, one command at a time.
struct Login<'a> {
    socket: &'a OwnedFd,
    label: &'a str,
    inbox: BytesMut,
}

impl Login<'_> {
    fn run(&mut self, place: &Place, script: &str) -> Result<Vec<u8>, Failure> {
        let user = place.user.as_deref();
        let password = place.password.as_deref();
        let mut greeted = false;
        if place.resp3 {
            let user = user.unwrap_or("default");
            let mut hello = vec!["HELLO", "3"];
            hello.extend(password.iter().flat_map(|password| ["AUTH", user, password]));
            let reply = self.ask(&hello)?;
            // Servers before 6.0 do not know it, and some installations have renamed it.
            let unknown = |error: &[u8]| {
                error.starts_with(b"ERR unknown command") || error.starts_with(b"NOPROTO")
            };
            greeted = !reply.as_error().is_some_and(unknown);
            if greeted {
                self.accept(reply)?;
            }
        }
        let auth: Vec<&str> = ["AUTH"].into_iter().chain(user).chain(password).collect();
        if !greeted && password.is_some() {
            self.demand(&auth)?;
        }
        if !matches!(&*place.database, "" | "0") {
            self.demand(&["SELECT", &place.database])?;
        }
        let reply = self.demand(&["SCRIPT", "LOAD", script])?;
        Ok(reply.as_bytes().unwrap_or_default().to_vec())
    }

    /// Asks, and takes an error for a failure.
    fn demand(&mut self, words: &[&str]) -> Result<Frame, Failure> {
        let reply = self.ask(words)?;
        self.accept(reply)
    }

    fn accept(&self, reply: Frame) -> Result<Frame, Failure> {
        match reply.as_error() {
            Some(error) => Err(refusal(self.label, &[b"-", error].concat())),
            None => Ok(reply),
        }
    }

    fn ask(&mut self, words: &[&str]) -> Result<Frame, Failure> {
        let failed = |what: &str| {
            Failure::new(Cause::Unavailable, format!("the floor: {} {what}", self.label))
        };
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let mut command = Vec::new();
        encode::command(&mut command, &words);
        let mut rest = &command[..];
        while !rest.is_empty() {
            let written = write(self.socket, rest).map_err(|error| failed(&error.to_string()))?;
            rest = &rest[written..];
        }
        let mut decoder = Decoder::new(Limits::default());
        let mut chunk = [0; 4_096];
        loop {
            match decoder.decode(&mut self.inbox) {
                Ok(Some(reply)) if !reply.is_push() => return Ok(reply),
                Ok(Some(_)) => continue,
                Ok(None) => {}
                Err(error) => return Err(failed(&format!("is no such server: {error}"))),
            }
            match read(self.socket, &mut chunk) {
                Ok(0) => return Err(failed("closed the connection")),
                Ok(count) => self.inbox.extend_from_slice(&chunk[..count]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Err(failed("does not answer")),
                Err(error) => return Err(failed(&error.to_string())),
            }
        }
    }
}
