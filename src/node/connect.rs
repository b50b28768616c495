//! One attempt to connect: a stream, TLS over it where the address asks for that, a handshake over
//! both, one deadline for all.
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

use crate::clock::Clock;
use crate::link::{Address, Dial, Greeting, Handshake, Inbound, Peer, Reader, Writer, secure};
use crate::report::{Fault, printable};
use crate::sync::atomic::{AtomicBool, Ordering};

/// A stream that has shaken hands.
pub(crate) struct Connected {
    pub(crate) inbound: Inbound,
    pub(crate) writer: Writer,
    pub(crate) peer: Peer,
}

/// An attempt under way.
pub(crate) type Connecting = Pin<Box<dyn Future<Output = Result<Connected, Fault>> + Send>>;

/// Starts an attempt that ends, one way or the other, within `deadline`.
pub(crate) fn connect(
    dial: Arc<dyn Dial>,
    address: Address,
    greeting: Greeting,
    clock: Clock,
    deadline: Duration,
) -> Connecting {
    Box::pin(async move {
        let securing = AtomicBool::new(false);
        let mut attempt = pin!(attempt(dial, address, greeting, &clock, &securing));
        let mut timer = clock.sleep_until(clock.now().plus(deadline));
        poll_fn(|cx| {
            if let Poll::Ready(connected) = attempt.as_mut().poll(cx) {
                return Poll::Ready(connected);
            }
            let silent = || match securing.load(Ordering::Relaxed) {
                true => Fault::insecure(deadline),
                false => Fault::Silent { after: deadline },
            };
            timer.as_mut().poll(cx).map(|()| Err(silent()))
        })
        .await
    })
}

/// `securing` is true while TLS is being put onto the stream.
async fn attempt(
    dial: Arc<dyn Dial>,
    address: Address,
    greeting: Greeting,
    clock: &Clock,
    securing: &AtomicBool,
) -> Result<Connected, Fault> {
    let mut streams = dial.dial(&address).await.map_err(unreachable)?;
    if address.tls {
        // Ordering: one task writes and reads it.
        securing.store(true, Ordering::Relaxed);
        streams = secure(streams, &address, &greeting).await?;
        securing.store(false, Ordering::Relaxed);
    }
    let (mut reader, writer) = streams;
    let address = log_in(address).await?;
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
            let frame = discreet(frame, secret.as_bytes());
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

/// An error without the password, should the server repeat what it was told.
fn discreet(frame: Frame, secret: &[u8]) -> Frame {
    const REDACTED: &[u8] = b"(redacted)";
    let Some(text) = frame.as_error() else { return frame };
    // The words by which errors are told apart stay, should the password be one of them.
    let words: &[&[u8]] =
        &[b"ERR unknown command ", b"ERR ", b"NOAUTH ", b"WRONGPASS ", b"NOPERM "];
    let kept = words.iter().find(|words| text.starts_with(words)).map_or(0, |words| words.len());
    let (kept, mut rest) = text.split_at_checked(kept).unwrap_or((text, b""));
    if secret.is_empty() || !rest.windows(secret.len()).any(|part| part == secret) {
        return frame;
    }
    let mut shown = kept.to_vec();
    while let Some((first, tail)) = rest.split_first() {
        match rest.strip_prefix(secret) {
            Some(behind) => {
                shown.extend_from_slice(REDACTED);
                rest = behind;
            }
            None => {
                shown.push(*first);
                rest = tail;
            }
        }
    }
    Frame::Error(shown.into())
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
            let frame = discreet(Frame::Error(said.into()), secret.as_bytes());
            assert_eq!(frame.as_error(), Some(shown.as_bytes()), "{said}");
        }
        assert_eq!(discreet(Frame::Integer(1), b"1"), Frame::Integer(1));
    }
}
