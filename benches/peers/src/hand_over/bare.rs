//! The floor of a hand-over: bare sockets that wait in the queue of one node, by the library's own
//! scripts. One thread, non-blocking sockets, one epoll; no runtime, no task.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use socket2::Socket;

use crate::clock;
use crate::contest::{Failure, TTL};
use crate::servers::Endpoint;

const ASK: &str = include_str!("../../../../src/lock/script/turn_ask.lua");
const LEAVE: &str = concat!(
    include_str!("../../../../src/lock/script/hand_on.lua"),
    include_str!("../../../../src/lock/script/turn_leave.lua")
);
const RELEASE: &str = include_str!("../../../../src/lock/script/release.lua");

/// The node that keeps the queue.
const PIVOT: usize = 0;

const KEYS: [&str; 3] = ["floor", "{floor}:q", "{floor}:h"];

/// How long no node may say anything.
const PATIENCE: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// For how long nodes that refuse are asked again, in nanoseconds. Of many processes on few cores
/// one that lets go may be stopped for a while between two nodes.
const AGAIN_FOR: u64 = 5_000_000_000;

pub(crate) struct Bare {
    poll: OwnedFd,
    ready: Vec<epoll::Event>,
    nodes: Vec<Node>,
    /// Of `ASK`, `LEAVE` and `RELEASE`.
    digests: [String; 3],
    owner: String,
    value: String,
    acquisitions: u64,
}

struct Node {
    stream: Socket,
    inbox: Vec<u8>,
    /// How many replies are still to come to what decides nothing any more.
    stale: usize,
}

/// What a node has said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Said {
    Granted,
    Refused,
    /// The key was handed over.
    Yours,
    /// A push that is of no interest.
    Else,
}

impl Bare {
    pub(crate) fn connect(urls: &[String]) -> Result<Self, Failure> {
        let owner = format!("floor:{}", std::process::id());
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let (mut nodes, mut digests) = (Vec::new(), None);
        for (number, url) in urls.iter().enumerate() {
            let address = url.strip_prefix("redis://").ok_or("the floor is for TCP")?;
            let stream = Endpoint::Tcp(address.trim_end_matches('/').parse()?).connect()?;
            digests = Some([ASK, LEAVE, RELEASE].map(|text| load(&stream, text)));
            if number == PIVOT {
                exchange(&stream, &["HELLO", "3"])?;
                exchange(&stream, &["SUBSCRIBE", &format!("quorlock:wake:{owner}")])?;
            }
            stream.set_nonblocking(true)?;
            let data = epoll::EventData::new_u64(number as u64);
            epoll::add(&poll, &stream, data, epoll::EventFlags::IN)?;
            nodes.push(Node { stream, inbox: Vec::new(), stale: 0 });
        }
        let [ask, leave, release] = digests.ok_or("no nodes")?;
        let digests = [ask?, leave?, release?];
        let (ready, value) = (Vec::with_capacity(nodes.len()), String::new());
        Ok(Self { poll, ready, nodes, digests, owner, value, acquisitions: 0 })
    }

    /// Waits its turn and takes the key on a majority.
    pub(crate) fn acquire(&mut self) -> Result<(), Failure> {
        self.acquisitions += 1;
        self.value = format!("{:08x}{:032x}@{}", self.acquisitions, std::process::id(), self.owner);
        let ttl = TTL.as_millis().to_string();
        let ask = self.in_turn(0, &[&self.value, &ttl]);
        send(&self.nodes[PIVOT], &ask)?;
        // It is granted, or is handed over later.
        let mut is_turn = false;
        while !is_turn {
            self.wait(|node, said| {
                is_turn |= node == PIVOT && matches!(said, Said::Granted | Said::Yours);
            })?;
        }
        let set = encode(&["SET", KEYS[0], &self.value, "NX", "PX", &ttl]);
        for (number, node) in self.nodes.iter().enumerate() {
            send(node, if number == PIVOT { &ask } else { &set })?;
        }
        self.gather(Some(&set))
    }

    /// Hands the key over on the node with the queue, and deletes it on the others.
    pub(crate) fn release(&mut self) -> Result<(), Failure> {
        let leave = self.in_turn(1, &[&self.value]);
        let release = encode(&["EVALSHA", &self.digests[2], "1", KEYS[0], &self.value]);
        for (number, node) in self.nodes.iter().enumerate() {
            send(node, if number == PIVOT { &leave } else { &release })?;
        }
        self.gather(None)
    }

    fn in_turn(&self, script: usize, arguments: &[&str]) -> Vec<u8> {
        let head = ["EVALSHA", &self.digests[script], "3"];
        encode(&[&head[..], &KEYS, arguments].concat())
    }

    /// Waits until a majority has granted what was just sent to all. Who has let go of the key on
    /// that node does so on the others now: where these refuse, they are asked `again` at once.
    fn gather(&mut self, again: Option<&[u8]>) -> Result<(), Failure> {
        let (mut granted, mut left, mut refused_since) = (0, self.nodes.len(), None);
        let needed = left / 2 + 1;
        let mut answered = vec![false; left];
        while granted < needed {
            if left < needed - granted {
                return Err("the nodes did not agree".into());
            }
            let mut refusing = Vec::new();
            self.wait(|node, said| {
                if said == Said::Refused && again.is_some() && node != PIVOT {
                    refusing.push(node);
                } else if matches!(said, Said::Granted | Said::Refused) {
                    granted += usize::from(said == Said::Granted);
                    left -= 1;
                    answered[node] = true;
                }
            })?;
            let now = clock::shared();
            if !refusing.is_empty() && now - *refused_since.get_or_insert(now) > AGAIN_FOR {
                return Err("nodes refuse what the node with the queue has granted".into());
            }
            for (node, again) in refusing.into_iter().zip(std::iter::repeat(again)) {
                send(&self.nodes[node], again.unwrap_or_default())?;
            }
        }
        for (node, answered) in self.nodes.iter_mut().zip(answered) {
            node.stale += usize::from(!answered);
        }
        Ok(())
    }

    /// Reads what has come; answers to earlier questions are passed over.
    fn wait(&mut self, mut hear: impl FnMut(usize, Said)) -> Result<(), Failure> {
        self.ready.clear();
        if epoll::wait(&self.poll, spare_capacity(&mut self.ready), Some(&PATIENCE))? == 0 {
            return Err("no node says anything".into());
        }
        for event in &self.ready {
            let number = event.data.u64() as usize;
            let node = &mut self.nodes[number];
            node.read()?;
            while let Some((said, taken)) = take(&node.inbox)? {
                node.inbox.drain(..taken);
                let is_answer = matches!(said, Said::Granted | Said::Refused);
                if is_answer && node.stale > 0 {
                    node.stale -= 1;
                } else {
                    hear(number, said);
                }
            }
        }
        Ok(())
    }
}

impl Node {
    fn read(&mut self) -> Result<(), Failure> {
        let mut buffer = [0; 4096];
        match self.stream.read(&mut buffer) {
            Ok(0) => Err("a node has closed the connection".into()),
            Ok(count) => {
                self.inbox.extend_from_slice(&buffer[..count]);
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The next thing that was said, and how many bytes it took.
fn take(bytes: &[u8]) -> Result<Option<(Said, usize)>, Failure> {
    let Some(end) = line_end(bytes, 0) else { return Ok(None) };
    let said = match bytes[0] {
        b'+' => Said::Granted,
        b'$' | b'_' => Said::Refused,
        b':' if bytes[1] == b'1' => Said::Granted,
        b':' => Said::Refused,
        // `*2`, and two numbers.
        b'*' => {
            let Some(after) = line_end(bytes, end).and_then(|first| line_end(bytes, first)) else {
                return Ok(None);
            };
            let said =
                if bytes[end..].starts_with(b":1\r") { Said::Granted } else { Said::Refused };
            return Ok(Some((said, after)));
        }
        // `>3`, and three texts of two lines each.
        b'>' => {
            let mut at = end;
            for _ in 0..6 {
                let Some(next) = line_end(bytes, at) else { return Ok(None) };
                at = next;
            }
            let text = &bytes[end..at];
            let is_yours = text.windows(8).any(|window| window == b"\r\nyours ");
            return Ok(Some((if is_yours { Said::Yours } else { Said::Else }, at)));
        }
        _ => return Err(format!("a node says {}", bytes[..end].escape_ascii()).into()),
    };
    Ok(Some((said, end)))
}

/// Where the line that begins there ends, its end included.
fn line_end(bytes: &[u8], from: usize) -> Option<usize> {
    let at = bytes.get(from..)?.iter().position(|byte| *byte == b'\n')?;
    Some(from + at + 1)
}

fn encode(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len());
    for word in words {
        bytes += &format!("${}\r\n{word}\r\n", word.len());
    }
    bytes.into_bytes()
}

fn send(node: &Node, command: &[u8]) -> Result<(), Failure> {
    Ok((&node.stream).write_all(command)?)
}

/// Loads a script; its digest.
fn load(stream: &Socket, text: &str) -> Result<String, Failure> {
    let reply = exchange(stream, &["SCRIPT", "LOAD", text])?;
    let digest = reply.lines().nth(1).ok_or("a node does not load the script")?;
    Ok(digest.to_owned())
}

/// Says one thing, and reads what comes next, which is all of the reply: it is short.
fn exchange(stream: &Socket, words: &[&str]) -> Result<String, Failure> {
    (&*stream).write_all(&encode(words))?;
    let mut buffer = [0; 4096];
    let count = (&*stream).read(&mut buffer)?;
    Ok(String::from_utf8_lossy(&buffer[..count]).into_owned())
}
