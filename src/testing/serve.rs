//! One connection of a node: bytes in, commands on their way past the rules, bytes out.
//!
//! Three things go on beside each other: what comes is read, also while a command waits; commands
//! are executed one after the other; and replies are written, each when it is due.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::ReadBuf;
use tokio::net::{TcpStream, tcp};
use tokio::sync::mpsc;

use super::fault::{Point, Reaction};
use super::first::first;
use super::outbox::Outbox;
use super::shared::{Gone, Shared};
use super::store::SessionId;
use super::wire::Requests;
use crate::clock::{Clock, Moment};
use crate::link::memory;

/// Commands of one connection that wait to be executed at most. What comes behind them waits in the
/// stream.
const QUEUE_MAX: usize = 4_096;

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
    let (commands, queue) = mpsc::channel(QUEUE_MAX);
    let reading = async {
        // Either way nothing more can be read; what was is still executed.
        let _ = connection.read(reader, commands).await;
        std::future::pending().await
    };
    let working = first(connection.work(queue), write(writer, &outbox));
    first(first(working, reading), node.keep_time(process)).await;
    node.leave(session, process);
}

/// What has come on a connection.
enum Received {
    Command {
        words: Vec<Bytes>,
        at: Moment,
    },
    /// What is no command.
    Nonsense,
}

/// Whether a command has come through to the node.
enum Passage {
    Through,
    /// No, and nothing behind it will.
    Lost,
}

struct Connection<'a> {
    node: &'a Shared,
    session: SessionId,
    process: u64,
    outbox: &'a Outbox,
}

impl Connection<'_> {
    async fn read(&self, mut reader: In, commands: mpsc::Sender<Received>) -> io::Result<()> {
        let (mut requests, mut buffer) = (Requests::new(), vec![0; 1 << 14]);
        loop {
            let count = reader.read(&mut buffer).await?;
            if count == 0 {
                return Ok(());
            }
            requests.push(&buffer[..count]);
            let at = Clock::default().now();
            #[cfg(test)]
            self.node.with(|state| state.reads += 1);
            loop {
                let received = match requests.next() {
                    Ok(None) => break,
                    Ok(Some(words)) => {
                        #[cfg(test)]
                        self.node.note(self.session, at, &words);
                        Received::Command { words, at }
                    }
                    Err(_) => Received::Nonsense,
                };
                let is_last = matches!(received, Received::Nonsense);
                if commands.send(received).await.is_err() || is_last {
                    return Ok(());
                }
            }
        }
    }

    /// Executes what has come until the connection ends.
    async fn work(&self, mut queue: mpsc::Receiver<Received>) {
        // The network loses whatever comes.
        let mut deaf = false;
        while let Some(received) = queue.recv().await {
            let Received::Command { words, at } = received else {
                self.outbox.send(b"-ERR Protocol error\r\n");
                self.outbox.close();
                return std::future::pending().await;
            };
            if deaf {
                continue;
            }
            match self.handle(&words, at).await {
                Ok(Passage::Through) => {}
                Ok(Passage::Lost) => deaf = true,
                Err(Gone) => return,
            }
        }
        // It has ended its half. It is still answered.
        self.outbox.close();
        std::future::pending().await
    }

    /// Leads one command past the rules.
    async fn handle(&self, words: &[Bytes], came: Moment) -> Result<Passage, Gone> {
        self.node.gate(self.process, words).await?;
        let mut delay = Duration::ZERO;
        for reaction in self.node.judge(Point::Before, words) {
            match reaction {
                Reaction::Drop => return Ok(Passage::Lost),
                Reaction::Cut { .. } => return Err(Gone),
                Reaction::Answer(bytes) => {
                    self.outbox.send(&bytes);
                    return Ok(Passage::Through);
                }
                Reaction::Delay(more) => {
                    delay = delay.saturating_add(more);
                    Clock::default().sleep_until(came.plus(delay)).await;
                    self.node.gate(self.process, words).await?;
                }
                other => self.apply(&other, words).await?,
            }
        }
        let Ok(mut reply) = self.node.execute(self.session, self.process, words) else {
            // It ends behind what is still to be said.
            return std::future::pending().await;
        };
        let mut delay = Duration::ZERO;
        for reaction in self.node.judge(Point::After, words) {
            match reaction {
                Reaction::Drop => self.outbox.mute(),
                Reaction::Cut { after_bytes } => {
                    reply.truncate(after_bytes);
                    self.outbox.send_late(&reply, delay);
                    self.outbox.close();
                    return std::future::pending().await;
                }
                Reaction::Answer(bytes) => reply = bytes,
                Reaction::Delay(more) => delay = delay.saturating_add(more),
                other => self.apply(&other, &[]).await?,
            }
        }
        self.outbox.send_late(&reply, delay);
        self.node.release(self.session);
        Ok(Passage::Through)
    }

    /// Applies a reaction to the node, whatever becomes of the command.
    async fn apply(&self, reaction: &Reaction, words: &[Bytes]) -> Result<(), Gone> {
        self.node.apply(reaction);
        self.node.gate(self.process, words).await
    }
}

async fn write(writer: Out, outbox: &Outbox) {
    loop {
        let (bytes, ends) = outbox.next().await;
        if writer.write_all(&bytes).await.is_err() || ends {
            return;
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
