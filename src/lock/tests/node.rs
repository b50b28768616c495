//! A node in memory: a small honest server behind connections. It can be switched while it runs,
//! and remembers what it was told.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::BytesMut;
use quorlock_resp::{Decoder, Frame, Limits};
use tokio::sync::{Notify, mpsc};

use super::server::State;
use crate::clock::{Clock, Moment};
use crate::link::{Dial, Dialing, Reader, Writer, memory};
use crate::options::{Address, Endpoint};

/// How a node serves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Behaviour {
    /// At once.
    Grants,
    /// What it has got it executes when this ends.
    Hangs,
    /// At once, and answers so late.
    After(Duration),
    /// Nobody listens, and every connection has ended.
    Down,
}

/// A command that a node has got.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Said {
    /// When it came.
    pub(super) at: Moment,
    /// Connections have numbers.
    pub(super) connection: u64,
    /// Commands that came together have the same number.
    pub(super) read: u64,
    /// `SET`, `extend`, `EXTEND` (the whole script), `release`, `RELEASE`, `DEL` and so on; `?` for
    /// what is no whole command.
    pub(super) what: &'static str,
    pub(super) key: String,
}

/// One node.
pub(super) struct Node {
    state: Mutex<State>,
    /// Its behaviour has changed.
    switched: Notify,
    /// Every connection ends.
    cut: Notify,
}

/// A command that waits to be executed.
struct Command {
    words: Vec<Vec<u8>>,
    came: Moment,
}

impl Node {
    pub(super) fn new(index: usize, behaviour: Behaviour) -> Arc<Self> {
        let state = State::new(index, behaviour);
        Arc::new(Self { state: Mutex::new(state), switched: Notify::new(), cut: Notify::new() })
    }

    fn with<R>(&self, work: impl FnOnce(&mut State) -> R) -> R {
        work(&mut self.state.lock().unwrap())
    }

    pub(super) fn set(&self, behaviour: Behaviour) {
        self.with(|state| state.behaviour = behaviour);
        self.switched.notify_waiters();
        if behaviour == Behaviour::Down {
            self.cut();
        }
    }

    /// Ends every connection. What it had not executed is lost.
    pub(super) fn cut(&self) {
        self.cut.notify_waiters();
    }

    /// Empties it.
    pub(super) fn flush(&self) {
        self.with(|state| state.keys.clear());
    }

    pub(super) fn delete(&self, key: &str) {
        self.with(|state| state.keys.remove(key));
    }

    /// Gives the key to somebody else, for an hour.
    pub(super) fn steal(&self, key: &str) {
        let end = Clock::default().now().plus(Duration::from_secs(3_600));
        self.with(|state| state.put(key, b"thief", end));
    }

    pub(super) fn forget_scripts(&self) {
        self.with(|state| state.scripts.clear());
    }

    /// It ends no connection that it is told to end.
    pub(super) fn forbid_kill(&self) {
        self.with(|state| state.kills = false);
    }

    /// It refuses to execute scripts, or no longer does.
    pub(super) fn set_busy(&self, busy: bool) {
        self.with(|state| state.busy = busy);
    }

    /// What stands under the key.
    pub(super) fn value(&self, key: &str) -> Option<Vec<u8>> {
        self.with(|state| state.live(key).map(|entry| entry.value.clone()))
    }

    /// How long the key lives still.
    pub(super) fn left(&self, key: &str) -> Duration {
        let now = Clock::default().now();
        self.with(|state| state.live(key).map(|entry| entry.end.since(now)).unwrap_or_default())
    }

    /// What it has got since [`Node::clear_log`], without the handshakes.
    pub(super) fn log(&self) -> Vec<Said> {
        self.with(|state| state.log.clone())
    }

    pub(super) fn clear_log(&self) {
        self.with(|state| state.log.clear());
    }

    /// Completes with the present behaviour, unless that is to hang.
    async fn awake(&self) -> Behaviour {
        loop {
            let switched = self.switched.notified();
            let behaviour = self.with(|state| state.behaviour);
            if behaviour != Behaviour::Hangs {
                return behaviour;
            }
            switched.await;
        }
    }

    async fn serve(self: Arc<Self>, (reader, writer): (Reader, Writer)) {
        let (commands, queue) = mpsc::unbounded_channel();
        tokio::select! {
            biased; // what it has not executed is lost
            () = self.cut.notified() => {}
            _ = self.read(reader, commands) => {}
            _ = self.work(queue, writer) => {}
        }
    }

    async fn read(
        &self,
        mut reader: Reader,
        commands: mpsc::UnboundedSender<Command>,
    ) -> io::Result<()> {
        let (mut decoder, mut buffer) = (Decoder::new(Limits::default()), BytesMut::new());
        let mut staging = vec![0; 1 << 16];
        let connection = self.with(|state| {
            state.connections += 1;
            state.connections
        });
        loop {
            let count = std::future::poll_fn(|cx| reader.poll_read(cx, &mut staging)).await?;
            if count == 0 {
                return Ok(());
            }
            buffer.extend_from_slice(&staging[..count]);
            self.with(|state| state.reads += 1);
            loop {
                let words = match decoder.decode(&mut buffer) {
                    Ok(None) => break,
                    Ok(Some(command)) => words(&command).unwrap_or_default(),
                    Err(_) => Vec::new(),
                };
                let came = Clock::default().now();
                self.with(|state| state.note(&words, connection, came));
                if words.is_empty() {
                    return Ok(()); // servers hang up on what is no command
                }
                if commands.send(Command { words, came }).is_err() {
                    return Ok(());
                }
            }
        }
    }

    async fn work(
        &self,
        mut queue: mpsc::UnboundedReceiver<Command>,
        writer: Writer,
    ) -> io::Result<()> {
        while let Some(Command { words, came }) = queue.recv().await {
            let behaviour = self.awake().await;
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            let reply = self.with(|state| state.execute(&words));
            if let Behaviour::After(late) = behaviour {
                Clock::default().sleep_until(came.plus(late)).await;
            }
            writer.try_write(reply.as_bytes())?;
        }
        Ok(())
    }
}

/// A command's words, if it is one.
fn words(command: &Frame) -> Option<Vec<Vec<u8>>> {
    let word = |frame: &Frame| Some(frame.as_bytes().ok()?.to_vec());
    command.as_items().ok()?.iter().map(word).collect()
}

/// Nodes by their host names, `n0` and so on.
pub(super) struct Network(pub(super) Vec<Arc<Node>>);

impl Dial for Network {
    fn dial(&self, address: &Address) -> Dialing {
        let Endpoint::Tcp { host, .. } = &address.endpoint else { unreachable!("by host name") };
        let node = self.0[host[1..].parse::<usize>().unwrap()].clone();
        Box::pin(async move {
            if node.with(|state| state.behaviour) == Behaviour::Down {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let ((reader, writer), (far_reader, far_writer)) = memory::pair(1 << 16);
            let far = (Reader::Memory(far_reader), Writer::Memory(far_writer));
            #[expect(clippy::disallowed_methods, reason = "the far end of a test's connection")]
            tokio::spawn(node.serve(far));
            Ok((Reader::Memory(reader), Writer::Memory(writer)))
        })
    }
}
