//! One attempt to connect: a stream, TLS over it where the address asks for that, a handshake over
//! both, one deadline for all.
//!
//! ```text
//!  Dialing ──▶ Securing ──▶ LoggingIn ──▶ Greeting ──▶ connected
//!              (TLS only)   (a callback only)
//! ```
//!
//! An attempt is in one [`Stage`] after the other, each of which owns the [`Limit`] while it lasts:
//! so whichever the deadline meets is the one that is told of.
//!
//! Whatever goes wrong discards the stream: a reply that is still under way would otherwise answer
//! the next connection's first question.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::BytesMut;
use quorlock_resp::{Decoder, Frame};
use tokio::time::Sleep;

use crate::clock::Clock;
use crate::link::{Dial, Greeting, Handshake, Inbound, Peer, Reader, Writer, secure};
use crate::options::Address;
use crate::report::{Fault, Humane, printable, without_secret};

/// A stream that has shaken hands.
pub(crate) struct Connected {
    pub(crate) inbound: Inbound,
    pub(crate) writer: Writer,
    pub(crate) peer: Peer,
}

/// An attempt under way.
pub(crate) type Connecting = Pin<Box<dyn Future<Output = Result<Connected, Fault>> + Send>>;

/// Starts an attempt that ends, one way or the other, within `timeout`.
pub(crate) fn connect(
    dial: Arc<dyn Dial>,
    address: Address,
    greeting: Greeting,
    clock: Clock,
    timeout: Duration,
) -> Connecting {
    Box::pin(async move {
        let mut limit = Limit::new(&clock, timeout);
        let dialing = async { dial.dial(&address).await.map_err(unreachable) };
        let mut streams = limit.hold(Stage::Dialing, dialing).await?;
        if address.tls {
            let securing = secure(streams, &address, &greeting);
            streams = limit.hold(Stage::Securing, securing).await?;
        }
        let address = limit.hold(Stage::LoggingIn, log_in(address)).await?;
        limit.hold(Stage::Greeting, greet(streams, address, greeting, &clock)).await
    })
}

/// What an attempt is at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// The name is resolved, the stream is made.
    Dialing,
    /// TLS is put onto it.
    Securing,
    /// The login is asked for.
    LoggingIn,
    /// The server is asked who it is, and told who we are.
    Greeting,
}

impl Stage {
    /// Why there is no connection when this stage has not ended after the whole deadline.
    fn fault(self, after: Duration) -> Fault {
        match self {
            Self::Dialing | Self::Greeting => Fault::Silent { after },
            Self::Securing => Fault::insecure(after),
            Self::LoggingIn => {
                let error = format!("no answer within {}", Humane(after));
                Fault::Credentials { error: error.into() }
            }
        }
    }
}

/// The one deadline of all stages.
struct Limit {
    timer: Pin<Box<Sleep>>,
    after: Duration,
}

impl Limit {
    fn new(clock: &Clock, after: Duration) -> Self {
        Self { timer: clock.sleep_until(clock.now().plus(after)), after }
    }

    /// What comes of a stage, if it ends in time.
    async fn hold<T>(
        &mut self,
        stage: Stage,
        work: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let mut work = pin!(work);
        poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(done),
            Poll::Pending => self.timer.as_mut().poll(cx).map(|()| Err(stage.fault(self.after))),
        })
        .await
    }
}

/// Shakes hands.
async fn greet(
    (mut reader, writer): (Reader, Writer),
    address: Address,
    greeting: Greeting,
    clock: &Clock,
) -> Result<Connected, Fault> {
    let secret = address.password.clone().unwrap_or_default();
    let mut handshake = Handshake::new(address, greeting);
    let (mut decoder, mut buffer) = (Inbound::decoder(), BytesMut::new());
    loop {
        let greeting = handshake.poll_transmit(clock.read());
        // A server that closed at once has often said why before, and that is read next.
        let unsent = write_all(&reader, &writer, &greeting).await.err();
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

/// Asks for the login where the address says whom to ask: now, for the one that was good at the
/// last connect may not be any more.
async fn log_in(address: Address) -> Result<Address, Fault> {
    let Some(source) = address.source.clone() else { return Ok(address) };
    match source.fetch().await {
        Ok(login) => Ok(address.with_login(login)),
        Err(error) => Err(Fault::Credentials { error: printable(error.as_bytes()) }),
    }
}

/// An error without the password, should the server repeat what it was told. The words by which
/// errors are told apart stay, should the password be one of them.
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

/// Reads once; all frames that are complete by then.
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

/// Whether what came is the beginning of a TLS record: an alert, which is how a port that wants TLS
/// answers plain text.
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

fn broken(error: io::Error) -> Fault {
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
    async fn each_stage_tells_what_the_deadline_met() {
        let clock = Clock::default();
        let ms = Duration::from_millis;
        let cases = [
            (Stage::Dialing, "was silent for 100 ms while connecting"),
            (Stage::Securing, "was silent for 100 ms in the handshake"),
            (Stage::LoggingIn, "(the callback for credentials: no answer within 100 ms)"),
            (Stage::Greeting, "was silent for 100 ms while connecting"),
        ];
        for (stage, words) in cases {
            let began = clock.now();
            let mut limit = Limit::new(&clock, ms(100));
            let before = limit.hold(Stage::Dialing, async {
                clock.sleep_until(began.plus(ms(60))).await;
                Ok(())
            });
            assert_eq!(before.await, Ok(()));
            let never = limit.hold(stage, std::future::pending::<Result<(), _>>());
            let fault = never.await.unwrap_err().to_string();
            assert!(fault.contains(words), "{stage:?}: {fault}");
            let took = clock.now().since(began);
            assert!(took >= ms(100) && took < ms(105), "one deadline for all: {took:?}");
        }
    }
}
