//! The floor: what bare sockets can do.
//!
//! One thread, non-blocking sockets, one epoll. No runtime, no task, no lock, no allocation; the
//! commands are encoded in advance. A pass waits for the nodes, reads each that is ready once,
//! counts, and writes the next commands: one write per node. With one caller the pass ends at the
//! deciding reply, for no other caller needs one; the late replies are read on the way to
//! the next verdict. Five nodes cost five writes, five reads and at least one wait.

mod open;

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use socket2::Socket;

use super::wire::{Template, lines};
use super::{COMPARE_AND_DELETE, Contestant, DeleteBy, Failure, Open, TTL, Yield};
use crate::clock;
use crate::servers::Nodes;

/// How long the nodes may be silent.
const PATIENCE: Duration = Duration::from_secs(2);

/// The value of every key: no other client uses them.
const VALUE: &[u8] = b"0123456789abcdef0123456789abcdef01234567@floor:1";

pub(crate) struct Floor {
    poll: OwnedFd,
    ready: Vec<epoll::Event>,
    nodes: Vec<Node>,
    callers: Vec<Caller>,
    /// How many replies decide.
    needed: usize,
    digest: Vec<u8>,
    by: DeleteBy,
    /// Keys used so far.
    keys: u64,
}

/// A node's connection.
struct Node {
    stream: Socket,
    out: Vec<u8>,
    inbox: Box<[u8]>,
    filled: usize,
    /// Whose replies come next, and to which of their operations.
    expected: VecDeque<(usize, u32)>,
}

struct Caller {
    acquire: Template,
    release: Template,
    /// Acquisitions are even, releases are odd.
    operation: u32,
    votes: usize,
    key: u64,
    began: Instant,
}

impl Floor {
    /// Connects. `needed` replies decide.
    pub(crate) fn connect(to: &Nodes, needed: usize, by: DeleteBy) -> Result<Self, Failure> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut nodes = Vec::new();
        for (number, endpoint) in to.endpoints.iter().enumerate() {
            let stream = endpoint.connect()?;
            stream.set_nonblocking(true)?;
            let data = epoll::EventData::new_u64(number as u64);
            epoll::add(&poll, &stream, data, epoll::EventFlags::IN)?;
            let inbox = vec![0; 64 << 10].into_boxed_slice();
            let (out, expected) = (Vec::new(), VecDeque::new());
            nodes.push(Node { stream, out, inbox, filled: 0, expected });
        }
        let digest = to.load(COMPARE_AND_DELETE)?;
        let ready = Vec::with_capacity(nodes.len());
        Ok(Self { poll, ready, nodes, callers: Vec::new(), needed, digest, by, keys: 0 })
    }

    /// Has this caller acquire the next key.
    fn acquire(&mut self, number: usize) {
        let caller = &mut self.callers[number];
        (caller.votes, caller.key, caller.began) = (0, self.keys, clock::now());
        self.keys += 1;
        let command = caller.acquire.with(caller.key);
        queue(&mut self.nodes, command, (number, caller.operation));
    }

    /// Has this caller release its key.
    fn release(&mut self, number: usize) {
        let caller = &mut self.callers[number];
        caller.votes = 0;
        let command = caller.release.with(caller.key);
        queue(&mut self.nodes, command, (number, caller.operation));
    }

    /// Waits for the nodes. Nothing for so long is a failure.
    fn wait(&mut self) -> Result<(), Failure> {
        self.ready.clear();
        let patience = Timespec { tv_sec: PATIENCE.as_secs().cast_signed(), tv_nsec: 0 };
        match epoll::wait(&self.poll, spare_capacity(&mut self.ready), Some(&patience))? {
            0 => Err(format!("the nodes were silent for {PATIENCE:?}").into()),
            _ => Ok(()),
        }
    }
}

impl Contestant for Floor {
    fn run(&mut self, callers: usize, time: Duration) -> Result<Yield, Failure> {
        let end = clock::now() + time;
        let (digest, by) = (&self.digest, self.by);
        self.callers.resize_with(callers, || Caller::new(digest, by));
        let mut acquires_ns = Vec::with_capacity(1 << 16);
        for number in 0..callers {
            self.acquire(number);
        }
        let mut decided = Vec::with_capacity(callers);
        let mut live = callers;
        // Callers whose commands are on the way.
        let mut waiting = live;
        self.nodes.iter_mut().try_for_each(Node::flush)?;
        while live > 0 {
            self.wait()?;
            for position in 0..self.ready.len() {
                let number = self.ready[position].data.u64() as usize;
                self.nodes[number].read(&mut self.callers, self.needed, &mut decided)?;
                waiting -= decided.len();
                for number in decided.drain(..) {
                    let caller = &mut self.callers[number];
                    caller.operation = caller.operation.wrapping_add(1);
                    if caller.operation % 2 == 1 {
                        let elapsed = caller.began.elapsed().as_nanos();
                        acquires_ns.push(u32::try_from(elapsed).unwrap_or(u32::MAX));
                        self.release(number);
                    } else if clock::now() < end {
                        self.acquire(number);
                    } else {
                        live -= 1;
                    }
                }
                if waiting == 0 {
                    break;
                }
            }
            self.nodes.iter_mut().try_for_each(Node::flush)?;
            waiting = live;
        }
        Ok(Yield { acquires_ns })
    }

    fn run_at(&mut self, rate: u32, time: Duration) -> Result<Open, Failure> {
        open::run(self, rate, time)
    }

    fn settle(&mut self) -> Result<(), Failure> {
        let mut late = Vec::new();
        while self.nodes.iter().any(|node| !node.expected.is_empty()) {
            // What the kernel did not take at the verdict is still here.
            self.nodes.iter_mut().try_for_each(Node::flush)?;
            self.wait()?;
            for position in 0..self.ready.len() {
                let number = self.ready[position].data.u64() as usize;
                self.nodes[number].read(&mut self.callers, usize::MAX, &mut late)?;
            }
        }
        Ok(())
    }
}

impl Caller {
    fn new(digest: &[u8], by: DeleteBy) -> Self {
        let ttl = TTL.as_millis().to_string();
        let release = match by {
            DeleteBy::Script => Template::new(&[b"EVALSHA", digest, b"1", b"floor:", VALUE], 3),
            DeleteBy::Native => Template::new(&[b"DELIFEQ", b"floor:", VALUE], 1),
        };
        Self {
            acquire: Template::new(&[b"SET", b"floor:", VALUE, b"NX", b"PX", ttl.as_bytes()], 1),
            release,
            operation: 0,
            votes: 0,
            key: 0,
            began: clock::now(),
        }
    }
}

fn queue(nodes: &mut [Node], command: &[u8], asker: (usize, u32)) {
    for node in nodes {
        node.out.extend_from_slice(command);
        node.expected.push_back(asker);
    }
}

impl Node {
    /// Writes what is queued, as far as the kernel takes it. The rest waits for the next pass,
    /// which comes with the replies to what the kernel has.
    fn flush(&mut self) -> Result<(), Failure> {
        if self.out.is_empty() {
            return Ok(());
        }
        match self.stream.write(&self.out) {
            Ok(written) if written == self.out.len() => self.out.clear(),
            Ok(written) => drop(self.out.drain(..written)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Reads once and counts; the callers whose operation this decides go to `decided`. Every reply
    /// must be the good one, a late one too.
    fn read(
        &mut self,
        callers: &mut [Caller],
        needed: usize,
        decided: &mut Vec<usize>,
    ) -> Result<(), Failure> {
        let Self { stream, inbox, filled, expected, .. } = self;
        match stream.read(&mut inbox[*filled..]) {
            Ok(0) => return Err("a node closed the connection".into()),
            Ok(read) => *filled += read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let taken = lines(&inbox[..*filled], usize::MAX, |line| -> Result<(), Failure> {
            let Some((number, operation)) = expected.pop_front() else {
                return Err("a reply to no request".into());
            };
            let good: &[u8] = if operation % 2 == 0 { b"+OK" } else { b":1" };
            if line != good {
                let line = String::from_utf8_lossy(line);
                return Err(format!("the floor's operation {operation}: {line}").into());
            }
            if let Some(caller) = callers.get_mut(number)
                && caller.operation == operation
            {
                caller.votes += 1;
                if caller.votes == needed {
                    decided.push(number);
                }
            }
            Ok(())
        })?;
        inbox.copy_within(taken..*filled, 0);
        *filled -= taken;
        Ok(())
    }
}
