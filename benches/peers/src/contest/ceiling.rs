//! The ceiling: what one server can do when it is never idle.
//!
//! One blocking connection. Two batches are always under way, each a `SET NX PX` and a release for
//! as many keys as there are callers, encoded before the clock starts: while the replies to one
//! are read, the server works on the other. The latency of each cycle is that of its batch.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

use socket2::Socket;

use super::wire::{Template, lines};
use super::{COMPARE_AND_DELETE, Contestant, DeleteBy, Failure, TTL, Yield};
use crate::clock;
use crate::servers::Nodes;

/// Batches under way.
const BATCHES: usize = 2;

/// How long the node may be silent.
const PATIENCE: Duration = Duration::from_secs(2);

const VALUE: &[u8] = b"0123456789abcdef0123456789abcdef01234567@ceil:1";

pub(crate) struct Ceiling {
    socket: Socket,
    acquire: Template,
    release: Template,
    /// The batches, encoded; each has keys of its own.
    batches: Vec<Vec<u8>>,
    callers: usize,
    inbox: Box<[u8]>,
    filled: usize,
}

impl Ceiling {
    /// Connects to the only node.
    pub(crate) fn connect(nodes: &Nodes, by: DeleteBy) -> Result<Self, Failure> {
        let [endpoint] = &*nodes.endpoints else { return Err("a ceiling is one node's".into()) };
        let socket = endpoint.connect()?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let digest = nodes.load(COMPARE_AND_DELETE)?;
        let ttl = TTL.as_millis().to_string();
        let release = match by {
            DeleteBy::Script => Template::new(&[b"EVALSHA", &digest, b"1", b"ceil:", VALUE], 3),
            DeleteBy::Native => Template::new(&[b"DELIFEQ", b"ceil:", VALUE], 1),
        };
        Ok(Self {
            socket,
            acquire: Template::new(&[b"SET", b"ceil:", VALUE, b"NX", b"PX", ttl.as_bytes()], 1),
            release,
            batches: Vec::new(),
            callers: 0,
            inbox: vec![0; 64 << 10].into_boxed_slice(),
            filled: 0,
        })
    }

    /// Encodes the batches, unless they are there.
    fn encode(&mut self, callers: usize) {
        if self.callers == callers {
            return;
        }
        self.callers = callers;
        self.batches = vec![Vec::new(); BATCHES];
        for (number, batch) in self.batches.iter_mut().enumerate() {
            for caller in 0..callers {
                let key = (number * callers + caller) as u64;
                batch.extend_from_slice(self.acquire.with(key));
                batch.extend_from_slice(self.release.with(key));
            }
        }
    }

    /// Reads the replies to one batch. Each must be the good one.
    fn read(&mut self) -> Result<(), Failure> {
        let Self { inbox, filled, socket, .. } = self;
        let needed = 2 * self.callers;
        let mut replies = 0;
        loop {
            // What came with the batch before is looked at first; what belongs to the next stays.
            let taken =
                lines(&inbox[..*filled], needed - replies, |line| -> Result<(), Failure> {
                    let good: &[u8] = if replies % 2 == 0 { b"+OK" } else { b":1" };
                    replies += 1;
                    match line == good {
                        true => Ok(()),
                        false => {
                            Err(format!("the ceiling: {}", String::from_utf8_lossy(line)).into())
                        }
                    }
                })?;
            inbox.copy_within(taken..*filled, 0);
            *filled -= taken;
            if replies == needed {
                return Ok(());
            }
            match socket.read(&mut inbox[*filled..])? {
                0 => return Err("the node closed the connection".into()),
                read => *filled += read,
            }
        }
    }
}

impl Contestant for Ceiling {
    fn run(&mut self, callers: usize, time: Duration) -> Result<Yield, Failure> {
        self.encode(callers);
        let end = clock::now() + time;
        let mut acquires_ns = Vec::with_capacity(1 << 16);
        let mut sent: VecDeque<Instant> = VecDeque::with_capacity(BATCHES);
        for batch in &self.batches {
            sent.push_back(clock::now());
            self.socket.write_all(batch)?;
        }
        let mut next = 0;
        while let Some(began) = sent.pop_front() {
            self.read()?;
            let elapsed = u32::try_from(began.elapsed().as_nanos()).unwrap_or(u32::MAX);
            acquires_ns.extend(std::iter::repeat_n(elapsed, callers));
            if clock::now() < end {
                sent.push_back(clock::now());
                self.socket.write_all(&self.batches[next])?;
                next = (next + 1) % BATCHES;
            }
        }
        Ok(Yield { acquires_ns })
    }

    /// Every reply has been read.
    fn settle(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}
