//! Everything that a URL may hold, on a server that has it.

use std::net::{Ipv6Addr, TcpListener};

use quorlock::Client;
use support::reach::Transport;
use support::{Reply, Server, need_process, reach, skip, test_name};

use crate::{connected, single};

/// An IPv6 address, a password that must be encoded, a database and a name, all in one URL; and the
/// same without the address on the transport that the environment chooses.
#[tokio::test]
async fn a_url_may_hold_an_ipv6_address_a_password_a_database_and_a_name() {
    need_process!();
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        return skip::skip(test_name!(), "no IPv6 here");
    }
    let server = Server::builder().args(["--bind", "127.0.0.1", "::1"]);
    let server = server.user("me", "on >p@ss:w/rd? ~* &* +@all").start();
    let login = "me:p%40ss:w%2Frd%3F";
    let ipv6 = format!("redis://{login}@[::1]:{}/3?name=web", server.port());
    let chosen = reach::with(&reach::with(&server.url_as(login), "db=3"), "name=web");
    reach::aside("an address of IPv6: over TCP, and then as it was asked for");
    for url in [reach::in_chosen_protocol(ipv6), chosen] {
        let locker = connected(single(&url)).await;
        let guard = locker.lock("k").await.unwrap();
        assert!(!guard.votes()[0].node.contains("p@ss"), "{:?}", guard.votes());
        let mut third = server.connect().unwrap();
        assert_eq!(third.call(&["SELECT", "3"]).unwrap(), Reply::ok());
        assert_eq!(third.call(&["GET", "k"]).unwrap(), Reply::bulk(guard.owner_token().as_str()));
        let clients = server.command(&["CLIENT", "LIST"]).text();
        let ours = clients.lines().find(|line| line.contains("name=web ")).unwrap();
        assert!(ours.contains("db=3 ") && ours.contains("user=me "), "{ours}");
        guard.extend(guard.remaining() * 2).await.unwrap();
        assert!(guard.release().await.unwrap().is_released());
        assert_eq!(server.info("db3"), None, "no key is left");
    }
}

/// What the environment asks for is what the server sees: a matrix in which every run goes over TCP
/// would show nothing.
#[tokio::test]
async fn a_server_sees_the_transport_that_was_asked_for() {
    need_process!();
    let server = Server::start();
    let client = Client::new(reach::with(&server.url(), "name=web")).unwrap();
    assert!(client.command(["PING"]).await.is_ok());
    let clients = server.command(&["CLIENT", "LIST"]).text();
    let ours = clients.lines().find(|line| line.contains("name=web ")).unwrap();
    let place = match (Transport::chosen(), server.tls_addr()) {
        (Transport::Unix, _) => format!("{}", server.socket_path().display()),
        // A terminator comes to the port of plain text, and has shaken hands with us.
        (Transport::Tls, Some(_)) if server.handshakes().is_some() => {
            assert_eq!(server.handshakes(), Some(1));
            format!(" laddr={} ", server.addr())
        }
        (Transport::Tls, Some(addr)) => format!(" laddr={addr} "),
        _ => format!(" laddr={} ", server.addr()),
    };
    assert!(ours.contains(&place), "{place}: {ours}");
}
