//! One attempt to connect: a stream, TLS over it where the address asks for that, a handshake over
//! both, one deadline for all.
//!
//! ```text
//!  Dialing ──▶ Securing ──▶ LoggingIn ──▶ Greeting ──▶ connected
//!              (TLS only)   (a callback only)
//! ```
//!
//! An attempt goes through the [`ConnectStep`]s in order, under one [`Limit`]. If the deadline
//! passes, the fault names the current step. `health` shows the step meanwhile.
//!
//! Any failure discards the stream: a reply that is still under way would otherwise be taken for
//! the answer to a later command.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::BytesMut;
use quorlock_resp::{Decoder, Frame};
use tokio::time::Sleep;

use crate::clock::Clock;
use crate::link::{Dial, Handshake, HandshakeConfig, Inbound, Peer, Reader, Writer, secure};
use crate::options::Address;
use crate::report::{ConnectStep, Fault, Humane, printable, without_secret};
use crate::sync::{Mutex, lock};

/// A stream after its handshake.
pub(crate) struct Connected {
    pub(crate) inbound: Inbound,
    pub(crate) writer: Writer,
    pub(crate) peer: Peer,
}

/// An attempt under way.
pub(crate) struct Connecting {
    work: Pin<Box<dyn Future<Output = Result<Connected, Fault>> + Send>>,
    step: Arc<Mutex<ConnectStep>>,
}

impl Connecting {
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Connected, Fault>> {
        self.work.as_mut().poll(cx)
    }

    /// The current step.
    pub(crate) fn step(&self) -> ConnectStep {
        *lock(&self.step)
    }
}

/// Starts an attempt that ends within `timeout`, with a connection or a fault.
pub(crate) fn connect(
    dial: Arc<dyn Dial>,
    address: Address,
    config: HandshakeConfig,
    clock: Clock,
    timeout: Duration,
) -> Connecting {
    let step = Arc::new(Mutex::new(ConnectStep::Dialing));
    let taken = step.clone();
    let work = Box::pin(async move {
        let mut limit = Limit::new(&clock, timeout, taken);
        let dialing = async { dial.dial(&address).await.map_err(unreachable) };
        let mut streams = limit.hold(ConnectStep::Dialing, dialing).await?;
        if address.tls {
            let securing = secure(streams, &address, &config);
            streams = limit.hold(ConnectStep::Securing, securing).await?;
        }
        let address = limit.hold(ConnectStep::LoggingIn, log_in(address)).await?;
        limit.hold(ConnectStep::Greeting, greet(streams, address, config, &clock)).await
    });
    Connecting { work, step }
}

/// Why there is no connection when this step has not ended in time.
fn overdue(step: ConnectStep, after: Duration) -> Fault {
    match step {
        ConnectStep::LoggingIn => {
            let error = format!("no answer within {}", Humane(after));
            Fault::Credentials { error: error.into() }
        }
        step => Fault::Silent { after, step: Some(step) },
    }
}

/// The common deadline of all steps, and the current one.
struct Limit {
    timer: Pin<Box<Sleep>>,
    after: Duration,
    step: Arc<Mutex<ConnectStep>>,
}

impl Limit {
    fn new(clock: &Clock, after: Duration, step: Arc<Mutex<ConnectStep>>) -> Self {
        Self { timer: clock.sleep_until(clock.now().plus(after)), after, step }
    }

    /// Runs a step, and fails it when the deadline passes.
    async fn hold<T>(
        &mut self,
        step: ConnectStep,
        work: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        *lock(&self.step) = step;
        let mut work = pin!(work);
        poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(done),
            Poll::Pending => self.timer.as_mut().poll(cx).map(|()| Err(overdue(step, self.after))),
        })
        .await
    }
}

/// Does the handshake.
async fn greet(
    (mut reader, writer): (Reader, Writer),
    address: Address,
    config: HandshakeConfig,
    clock: &Clock,
) -> Result<Connected, Fault> {
    let secret = address.password.clone().unwrap_or_default();
    let mut handshake = Handshake::new(address, config);
    let (mut decoder, mut buffer) = (Inbound::decoder(), BytesMut::new());
    loop {
        let hello = handshake.poll_transmit(clock.read());
        // A server that closed at once has often sent the reason before; that is read next.
        let unsent = write_all(&reader, &writer, &hello).await.err();
        let replies = read_frames(&mut reader, &mut decoder, &mut buffer).await;
        let replies = match (replies, unsent) {
            (Err(Fault::Closed), Some(error)) => return Err(broken(error)),
            (replies, _) => replies?,
        };
        let (mut replies, now) = (replies.into_iter(), clock.read());
        while let Some(frame) = replies.next() {
            let frame = without_password(frame, secret.as_bytes());
            let Some(peer) = handshake.handle_frame(&frame, now)? else { continue };
            if replies.any(|frame| !frame.is_push()) {
                return Err(Fault::Protocol { error: "a reply to nothing that was asked".into() });
            }
            let inbound = Inbound::new(reader, buffer, decoder);
            return Ok(Connected { inbound, writer, peer });
        }
    }
}

/// Calls the callback for credentials, if the address has one. It is called at each connect,
/// because a password may have been rotated.
async fn log_in(address: Address) -> Result<Address, Fault> {
    let Some(source) = address.source.clone() else { return Ok(address) };
    match source.fetch().await {
        Ok(login) => Ok(address.with_login(login)),
        Err(error) => Err(Fault::Credentials { error: printable(error.as_bytes()) }),
    }
}

/// Removes the password from an error that repeats it. The words that identify the error stay, even
/// if the password is one of them.
fn without_password(frame: Frame, secret: &[u8]) -> Frame {
    const WORDS: [&[u8]; 5] =
        [b"ERR unknown command ", b"ERR ", b"NOAUTH ", b"WRONGPASS ", b"NOPERM "];
    let Some(text) = frame.as_error() else { return frame };
    let kept = WORDS.iter().find(|words| text.starts_with(words)).map_or(0, |words| words.len());
    let (kept, rest) = text.split_at_checked(kept).unwrap_or((text, b""));
    match without_secret(rest, secret) {
        Some(shown) => Frame::Error([kept, &shown].concat().into()),
        None => frame,
    }
}

async fn write_all(reader: &Reader, writer: &Writer, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match writer.try_write(bytes) {
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                poll_fn(|cx| reader.poll_write_ready(cx)).await?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads once, and returns all frames that are complete then.
async fn read_frames(
    reader: &mut Reader,
    decoder: &mut Decoder,
    buffer: &mut BytesMut,
) -> Result<Vec<Frame>, Fault> {
    let mut staging = [0; 4_096];
    let count = poll_fn(|cx| reader.poll_read(cx, &mut staging)).await.map_err(broken)?;
    if count == 0 {
        return Err(Fault::Closed);
    }
    buffer.extend_from_slice(staging.get(..count).unwrap_or_default());
    let mut frames = Vec::new();
    loop {
        match decoder.decode(buffer) {
            Ok(Some(frame)) => frames.push(frame),
            Ok(None) => return Ok(frames),
            Err(_) if is_tls(buffer) => return Err(Fault::wants_tls()),
            Err(error) => return Err(Fault::Protocol { error: error.to_string().into() }),
        }
    }
}

/// Whether the bytes begin with a TLS alert, with which a TLS port answers plain text.
fn is_tls(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x15\x03")
}

fn unreachable(error: io::Error) -> Fault {
    let error = match error.downcast::<Fault>() {
        Ok(fault) => return fault,
        Err(error) => error,
    };
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Fault::Refused,
        _ => Fault::Unreachable { error: printable(error.to_string().as_bytes()) },
    }
}

/// Why a stream failed.
pub(super) fn broken(error: io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Fault::Closed,
        _ => unreachable(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_repeats_the_password_is_not_repeated() {
        let cases = [
            ("ERR you said pw, pw", "pw", "ERR you said (redacted), (redacted)"),
            ("pw", "pw", "(redacted)"),
            ("WRONGPASS invalid", "WRONGPASS", "WRONGPASS invalid"),
            ("ERR unknown command 'AUTH' 'ERR'", "ERR", "ERR unknown command 'AUTH' '(redacted)'"),
            ("ERR unknown command", "", "ERR unknown command"),
        ];
        for (said, secret, shown) in cases {
            let frame = without_password(Frame::Error(said.into()), secret.as_bytes());
            assert_eq!(frame.as_error(), Some(shown.as_bytes()), "{said}");
        }
        assert_eq!(without_password(Frame::Integer(1), b"1"), Frame::Integer(1));
    }

    #[tokio::test(start_paused = true)]
    async fn each_step_tells_what_the_deadline_met() {
        let clock = Clock::default();
        let ms = Duration::from_millis;
        let cases = [
            (ConnectStep::Dialing, "was silent for 100 ms while connecting (is the address right"),
            (
                ConnectStep::Securing,
                "was silent for 100 ms while connecting (is this its TLS port?",
            ),
            (ConnectStep::LoggingIn, "(the callback for credentials: no answer within 100 ms)"),
            (ConnectStep::Greeting, "was silent for 100 ms while connecting (connected, but"),
        ];
        for (step, words) in cases {
            let began = clock.now();
            let mut limit = Limit::new(&clock, ms(100), Arc::new(Mutex::new(step)));
            let before = limit.hold(ConnectStep::Dialing, async {
                clock.sleep_until(began.plus(ms(60))).await;
                Ok(())
            });
            assert_eq!(before.await, Ok(()));
            let never = limit.hold(step, std::future::pending::<Result<(), _>>());
            let fault = never.await.unwrap_err().to_string();
            assert!(fault.contains(words), "{step:?}: {fault}");
            let took = clock.now().since(began);
            assert!(took >= ms(100) && took < ms(105), "one deadline for all: {took:?}");
        }
    }
}
