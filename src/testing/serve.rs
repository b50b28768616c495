//! One connection of a node: bytes in, commands on their way past the rules, bytes out.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use tokio::io::ReadBuf;
use tokio::net::{TcpStream, tcp};
use tokio::sync::Notify;

use super::fault::{Point, Reaction};
use super::shared::{Gone, Shared};
use super::store::SessionId;
use super::wire::Requests;
use crate::clock::Clock;
use crate::link::memory;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, lock};

/// A node's end of a connection.
pub(super) enum Stream {
    Tcp(TcpStream),
    Memory(memory::Reader, memory::Writer),
}

enum In {
    Tcp(tcp::OwnedReadHalf),
    Memory(memory::Reader),
}

enum Out {
    Tcp(tcp::OwnedWriteHalf),
    Memory(memory::Writer),
}

/// What is still to be sent on a connection.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    items: Mutex<VecDeque<Item>>,
    /// The network loses whatever is sent.
    muted: AtomicBool,
    filled: Notify,
}

#[derive(Debug)]
enum Item {
    Bytes(Vec<u8>),
    Close,
}

impl Outbox {
    pub(super) fn send(&self, bytes: Vec<u8>) {
        if !self.muted.load(Ordering::SeqCst) {
            self.put(Item::Bytes(bytes));
        }
    }

    fn mute(&self) {
        self.muted.store(true, Ordering::SeqCst);
    }

    /// The connection ends behind what is sent already.
    pub(super) fn close(&self) {
        self.put(Item::Close);
    }

    fn put(&self, item: Item) {
        lock(&self.items).push_back(item);
        self.filled.notify_one();
    }

    async fn next(&self) -> Item {
        loop {
            let filled = self.filled.notified();
            if let Some(item) = lock(&self.items).pop_front() {
                return item;
            }
            filled.await;
        }
    }
}

/// Serves a connection until it ends.
pub(super) async fn serve(node: Arc<Shared>, stream: Stream) {
    let (reader, writer) = match stream {
        Stream::Tcp(stream) => {
            // A reply is small and alone. Without the option it is only later.
            let _ = stream.set_nodelay(true);
            let (reader, writer) = stream.into_split();
            (In::Tcp(reader), Out::Tcp(writer))
        }
        Stream::Memory(reader, writer) => (In::Memory(reader), Out::Memory(writer)),
    };
    let Some((session, process, outbox)) = node.admit() else { return };
    let connection = Connection { node: &node, session, process, outbox: &outbox };
    let reading = async {
        // Either way nothing more can be read.
        let _ = connection.read(reader).await;
    };
    first(first(reading, write(writer, &outbox)), node.keep_time(process)).await;
    node.leave(session, process);
}

/// Whether a command has come through to the node.
enum Heard {
    Yes,
    /// No, and nothing behind it will.
    Never,
}

struct Connection<'a> {
    node: &'a Shared,
    session: SessionId,
    process: u64,
    outbox: &'a Outbox,
}

impl Connection<'_> {
    async fn read(&self, mut reader: In) -> io::Result<()> {
        let (mut requests, mut buffer) = (Requests::new(), vec![0; 1 << 14]);
        // The network loses whatever comes.
        let mut deaf = false;
        loop {
            let count = reader.read(&mut buffer).await?;
            if count == 0 {
                return Ok(());
            }
            requests.push(&buffer[..count]);
            loop {
                let words = match requests.next() {
                    Ok(Some(words)) => words,
                    Ok(None) => break,
                    Err(_) => {
                        self.outbox.send(b"-ERR Protocol error\r\n".to_vec());
                        self.outbox.close();
                        return std::future::pending().await;
                    }
                };
                if deaf {
                    continue;
                }
                match self.handle(&words).await {
                    Ok(Heard::Yes) => {}
                    Ok(Heard::Never) => deaf = true,
                    Err(Gone) => return Ok(()),
                }
            }
        }
    }

    /// Leads one command past the rules.
    async fn handle(&self, words: &[Vec<u8>]) -> Result<Heard, Gone> {
        self.node.gate(self.process).await?;
        for reaction in self.node.judge(Point::Before, words) {
            match reaction {
                Reaction::Drop => return Ok(Heard::Never),
                Reaction::Cut { .. } => return Err(Gone),
                Reaction::Answer(bytes) => {
                    self.outbox.send(bytes);
                    return Ok(Heard::Yes);
                }
                other => self.suffer(other).await?,
            }
        }
        let mut reply = self.node.execute(self.session, self.process, words)?;
        for reaction in self.node.judge(Point::After, words) {
            match reaction {
                Reaction::Drop => self.outbox.mute(),
                Reaction::Cut { after_bytes } => {
                    reply.truncate(after_bytes);
                    self.outbox.send(reply);
                    self.outbox.close();
                    return std::future::pending().await;
                }
                Reaction::Answer(bytes) => reply = bytes,
                other => self.suffer(other).await?,
            }
        }
        if !reply.is_empty() {
            self.outbox.send(reply);
        }
        self.node.release(self.session);
        Ok(Heard::Yes)
    }

    /// What befalls the node, whatever becomes of the command.
    async fn suffer(&self, reaction: Reaction) -> Result<(), Gone> {
        match reaction {
            Reaction::Delay(delay) => {
                let clock = Clock::default();
                clock.sleep_until(clock.now().plus(delay)).await;
            }
            other => self.node.suffer(&other),
        }
        self.node.gate(self.process).await
    }
}

async fn write(writer: Out, outbox: &Outbox) {
    loop {
        match outbox.next().await {
            Item::Close => return,
            Item::Bytes(bytes) => {
                if writer.write_all(&bytes).await.is_err() {
                    return;
                }
            }
        }
    }
}

impl In {
    async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(reader) => loop {
                reader.readable().await?;
                match reader.try_read(buffer) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    read => return read,
                }
            },
            Self::Memory(reader) => {
                poll_fn(|cx| reader.poll_read(cx, &mut ReadBuf::new(buffer))).await
            }
        }
    }
}

impl Out {
    async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = match self {
                Self::Tcp(writer) => {
                    writer.writable().await?;
                    writer.try_write(bytes)
                }
                Self::Memory(writer) => {
                    poll_fn(|cx| writer.poll_ready(cx)).await;
                    writer.try_write(bytes)
                }
            };
            match written {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => bytes = &bytes[written?..],
            }
        }
        Ok(())
    }
}

/// Completes with whichever completes first.
pub(super) async fn first(a: impl Future<Output = ()>, b: impl Future<Output = ()>) {
    let (mut a, mut b) = (pin!(a), pin!(b));
    poll_fn(|cx| match a.as_mut().poll(cx).is_ready() || b.as_mut().poll(cx).is_ready() {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await;
}
