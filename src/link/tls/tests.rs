//! What a link relies on: that its account of what was written is exact.

use std::future::poll_fn;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream as Blocking};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use rcgen::generate_simple_self_signed;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use tokio::net::TcpStream;

use super::session::{Incoming, RECORD_MAX, Session};
use super::{Reader, Writer};
use crate::report::Fault;
use crate::sync::Mutex;

/// Long beside anything that happens on loopback.
const PATIENCE: Duration = Duration::from_secs(20);

/// Our end of a connection and the server's, before a word is said; ours has small buffers.
async fn strangers() -> (ClientConnection, TcpStream, ServerConnection, Blocking) {
    let made = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let server = ServerConfig::builder_with_provider(provider.clone());
    let server = server.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let server = server.with_single_cert(vec![certificate.clone()], key).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let client = ClientConfig::builder_with_provider(provider);
    let client = client.with_safe_default_protocol_versions().unwrap();
    let client = client.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let client = ClientConnection::new(client.into(), name).unwrap();
    let server = ServerConnection::new(server.into()).unwrap();

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    socket2::SockRef::from(&near).set_send_buffer_size(64 << 10).unwrap();
    let (far, _) = listener.accept().unwrap();
    socket2::SockRef::from(&far).set_recv_buffer_size(64 << 10).unwrap();
    near.writable().await.unwrap();
    (client, near, server, far)
}

/// The same, once hands are shaken.
async fn shaken() -> (Session, TcpStream, ServerConnection, Blocking) {
    let (client, near, mut server, far) = strangers().await;
    let mut session = Session::new(client);
    let mut incoming = Incoming::default();
    while session.is_handshaking() || server.is_handshaking() {
        session.push(&near).unwrap();
        while server.is_handshaking() && !server.wants_write() {
            server.read_tls(&mut &far).unwrap();
            server.process_new_packets().unwrap();
        }
        while server.wants_write() {
            server.write_tls(&mut &far).unwrap();
        }
        if session.is_handshaking() {
            near.readable().await.unwrap();
            let filled = incoming.fill(|bytes| Poll::Ready(near.try_read(bytes)));
            assert!(filled.is_ready());
            session.shake(&mut incoming).unwrap();
        }
    }
    (session, near, server, far)
}

/// What one poll of a handshake gives, where nothing can be written any more and what the peer has
/// sent, or its end, has arrived.
async fn poll_once(client: ClientConnection, near: TcpStream) -> Poll<Result<(), Fault>> {
    near.readable().await.unwrap();
    let (half, writer) = near.into_split();
    // Ends our direction: from now on each write is an error.
    drop(writer);
    let session = Arc::new(Mutex::new(Session::new(client)));
    let mut reader = Reader { half, session, incoming: Incoming::default(), ended: None };
    poll_fn(|cx| Poll::Ready(reader.poll_handshake(cx))).await
}

/// Everything that the server can decrypt of what has arrived.
fn decrypted(server: &mut ServerConnection, far: &Blocking) -> Vec<u8> {
    far.set_nonblocking(true).unwrap();
    let mut all = Vec::new();
    loop {
        match server.read_tls(&mut &*far) {
            Ok(0) => return all,
            Ok(_) => {
                server.process_new_packets().unwrap();
                // `WouldBlock` behind the last byte is the usual end of what there is.
                let _ = server.reader().read_to_end(&mut all);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return all,
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn what_counts_as_written_is_what_the_peer_can_read() {
    let (mut session, near, mut server, far) = shaken().await;
    let bytes: Vec<u8> = (0..8_000_000_u32).map(|n| (n % 251) as u8).collect();
    let (mut written, mut arrived, mut put_off) = (0, Vec::new(), 0);
    while written < bytes.len() {
        match session.try_write(&near, &bytes[written..]) {
            Ok(count) => {
                assert!((1..=RECORD_MAX).contains(&count));
                written += count;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                put_off += 1;
                // A message may not carry along what its writer was told is not written.
                session.push_messages(&near).unwrap();
                if put_off % 3 == 0 {
                    arrived.extend(decrypted(&mut server, &far));
                    assert!(arrived.len() <= written, "{} of {written} written", arrived.len());
                }
                // Waits, so that the socket's readiness is known again.
                if put_off % 3 == 0 {
                    tokio::time::timeout(PATIENCE, near.writable()).await.unwrap().unwrap();
                }
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(put_off > 10, "the socket was full {put_off} times");
    far.set_nonblocking(false).unwrap();
    far.set_read_timeout(Some(PATIENCE)).unwrap();
    while arrived.len() < bytes.len() {
        assert!(server.read_tls(&mut &far).unwrap() > 0);
        server.process_new_packets().unwrap();
        // `WouldBlock` behind the last byte is the usual end of what there is.
        let _ = server.reader().read_to_end(&mut arrived);
    }
    assert!(arrived == bytes, "every byte, once, in order");
}

#[tokio::test]
async fn nothing_is_said_behind_half_a_record() {
    let (mut session, near, mut server, far) = shaken().await;
    let bytes = vec![b'x'; 4 << 20];
    let mut written = 0;
    loop {
        assert!(written < bytes.len(), "the socket is never full");
        match session.try_write(&near, &bytes[written..]) {
            Ok(count) => written += count,
            Err(error) => break assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
    session.close(&near);
    socket2::SockRef::from(&near).shutdown(std::net::Shutdown::Write).unwrap();
    let mut arrived = 0;
    far.set_nonblocking(false).unwrap();
    while server.read_tls(&mut &far).unwrap() > 0 {
        let state = server.process_new_packets().unwrap();
        assert!(!state.peer_has_closed(), "half a record and a farewell do not go together");
        let mut plain = vec![0; state.plaintext_bytes_to_read()];
        server.reader().read_exact(&mut plain).unwrap();
        arrived += plain.len();
    }
    assert_eq!(arrived, written, "the half record is not read");
}

/// As with a connection in plain text: no farewell, and our kernel drops what it has not delivered.
#[tokio::test]
async fn an_abort_resets_the_connection() {
    let (session, near, _server, mut far) = shaken().await;
    let (reader, writer) = near.into_split();
    Writer { half: Some(writer), session: Arc::new(Mutex::new(session)) }.abort();
    drop(reader);
    let error = far.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

/// The socket can never be written to again, so the handshake must not wait for that. What it reads
/// says why.
#[tokio::test]
async fn a_handshake_that_cannot_write_ends_with_what_the_peer_has_sent() {
    const REFUSED: &[u8] = b"\x15\x03\x03\x00\x02\x02\x28";
    let cases = [("an alert", REFUSED, "refuses the handshake"), ("its end", b"", "closed")];
    for (what, left, words) in cases {
        let (client, near, _, mut far) = strangers().await;
        far.write_all(left).unwrap();
        drop(far);
        let ended = poll_once(client, near).await;
        let Poll::Ready(Err(fault)) = ended else { panic!("{what}: {ended:?}") };
        assert!(fault.to_string().contains(words), "{what}: {fault}");
    }
}

#[tokio::test]
async fn a_handshake_that_meets_a_reset_ends() {
    let (client, near, _, far) = strangers().await;
    socket2::SockRef::from(&far).set_linger(Some(Duration::ZERO)).unwrap();
    drop(far);
    let ended = poll_once(client, near).await;
    let Poll::Ready(Err(fault)) = ended else { panic!("{ended:?}") };
    assert!(fault.to_string().contains("the server closed the connection"), "{fault}");
}
