//! What a link relies on: that its account of what was written is exact.

use std::io::{ErrorKind, Read};
use std::net::{TcpListener, TcpStream as Blocking};
use std::sync::Arc;
use std::time::Duration;

use rcgen::generate_simple_self_signed;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use tokio::net::TcpStream;

use super::Writer;
use super::session::{Incoming, RECORD_MAX, Session};
use crate::sync::Mutex;

/// Long beside anything that happens on loopback.
const PATIENCE: Duration = Duration::from_secs(20);

/// Both ends of a connection that have shaken hands; ours has small buffers.
async fn shaken() -> (Session, TcpStream, ServerConnection, Blocking) {
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
    let (mut session, mut server) = (Session::new(client), server);
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
            let filled = incoming.fill(|bytes| std::task::Poll::Ready(near.try_read(bytes)));
            assert!(filled.is_ready());
            session.shake(&mut incoming).unwrap();
        }
    }
    (session, near, server, far)
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
