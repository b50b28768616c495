//! A connection over TLS that stands, and then something happens to it.

use std::time::Duration;

use quorlock::rustls::{self, version};
use quorlock::{Client, Frame, Locker, report::Fault};
use support::tls::authority;
use support::{Authority, Server, Terminator, eventually_async, need_server};

use crate::{builder, cycle, fault, trusting};

fn before(server: &Server) -> Terminator {
    let config = authority().server().server_config(None, rustls::ALL_VERSIONS);
    Terminator::start(server.addr(), config)
}

async fn connected(terminator: &Terminator) -> Locker {
    let tls = trusting();
    let reconnect = Duration::from_millis(50);
    let builder = builder(&terminator.url("127.0.0.1"), tls).reconnect(reconnect, reconnect);
    let locker = builder.node_timeout(Duration::from_secs(5)).build().unwrap();
    locker.ready(Duration::from_secs(5)).await.unwrap();
    locker
}

/// Why the link has ended: the error of a request made before the link is made anew.
async fn reason(locker: &Locker) -> Fault {
    let mut found = None;
    eventually_async("the end is noticed", async || {
        let tried = locker.lock("k").try_acquire().await;
        found = tried.err().and_then(|error| fault(&error));
        found.is_some()
    })
    .await;
    found.unwrap()
}

#[tokio::test]
async fn the_end_of_a_connection_is_an_end_with_or_without_a_farewell() {
    need_server!();
    let server = Server::start();
    let terminator = before(&server);
    let locker = connected(&terminator).await;
    for end in [Terminator::cut, Terminator::say_goodbye] {
        end(&terminator);
        assert_eq!(reason(&locker).await, Fault::Closed);
        cycle(&locker).await.unwrap();
    }
}

/// The server has shown that it speaks TLS: nothing may be said of its having another port.
#[tokio::test]
async fn a_record_that_is_none_ends_the_connection_and_is_told() {
    need_server!();
    let server = Server::start();
    let terminator = before(&server);
    let locker = connected(&terminator).await;
    let oversized = [&b"\x17\x03\x03\xff\xff"[..], &[0; 1 << 16]].concat();
    let cases: [(&str, &[u8]); 4] = [
        ("encrypted with no key", b"\x17\x03\x03\x00\x14garbledgarbledgarble"),
        ("no record at all", b"-ERR I am no TLS\r\n"),
        ("of no known type", b"\x63\x03\x03\x00\x01x"),
        ("too long", &oversized),
    ];
    for (what, bytes) in cases {
        cycle(&locker).await.unwrap();
        terminator.say_raw(bytes);
        let fault = reason(&locker).await;
        let words = fault.to_string();
        assert!(matches!(fault, Fault::Tls { .. }), "{what}: {words}");
        assert!(words.contains("a record came broken"), "{what}: {words}");
        assert!(!words.contains("plain text") && !words.contains('\n'), "{what}: {words}");
    }
    cycle(&locker).await.unwrap();
}

#[tokio::test]
async fn new_keys_change_nothing() {
    need_server!();
    let server = Server::start();
    let terminator = before(&server);
    let locker = connected(&terminator).await;
    for _ in 0..20 {
        terminator.renew_keys();
        cycle(&locker).await.unwrap();
    }
    assert_eq!(terminator.handshakes(), (1, 0), "it was one connection all the time");
}

#[tokio::test]
async fn later_connections_resume_the_session() {
    need_server!();
    let server = Server::start();
    for version in [&version::TLS13, &version::TLS12] {
        let config = authority().server().server_config(None, &[version]);
        let terminator = Terminator::start(server.addr(), config);
        let locker = connected(&terminator).await;
        for resumed in 1..=3 {
            cycle(&locker).await.unwrap();
            terminator.cut();
            reason(&locker).await;
            cycle(&locker).await.unwrap();
            assert_eq!(terminator.handshakes(), (1, resumed));
        }
    }
}

#[tokio::test]
async fn a_new_certificate_is_looked_at() {
    need_server!();
    let server = Server::start();
    let terminator = before(&server);
    let locker = connected(&terminator).await;
    cycle(&locker).await.unwrap();

    // Another one of the same authority's is as good.
    let all = rustls::ALL_VERSIONS;
    terminator.rotate(authority().server().server_config(None, all));
    terminator.cut();
    reason(&locker).await;
    cycle(&locker).await.unwrap();
    assert_eq!(terminator.handshakes(), (2, 0), "the new one has no tickets of the old one's");

    // A stranger's is not, although there was a session with this server.
    terminator.rotate(Authority::new("a stranger").server().server_config(None, all));
    terminator.cut();
    let mut line = String::new();
    eventually_async("the stranger is seen through", async || {
        line = reason(&locker).await.to_string();
        line.contains("no authority that is trusted here")
    })
    .await;

    terminator.rotate(authority().server().server_config(None, all));
    eventually_async("the right one is back", async || cycle(&locker).await.is_ok()).await;
}

/// Six megabytes each way: records of every size, and a socket that is full most of the time.
#[tokio::test(flavor = "multi_thread")]
async fn many_and_large_replies_come_whole_and_in_order() {
    need_server!();
    let server = Server::start();
    let terminator = before(&server);
    let client = Client::with_tls(terminator.url("localhost"), &trusting()).unwrap();
    let client = client.timeout(Duration::from_secs(20));
    let mut pipeline = client.pipeline();
    let value = |n: usize| vec![b'a' + (n % 26) as u8; (n * n * 400) % 200_000 + n];
    for n in 0..60 {
        pipeline.command([b"ECHO".to_vec(), value(n)]);
    }
    let replies = pipeline.run().await.unwrap();
    for (n, reply) in replies.iter().enumerate() {
        assert!(matches!(reply, Frame::Bulk(bytes) if **bytes == value(n)), "reply {n}");
    }
    assert_eq!(terminator.handshakes(), (1, 0));
}
