//! What was sent on a connection that has ended can still arrive, behind what the next one sent.

use std::time::Duration;

use quorlock::Client;
use support::{Proxy, Reply, Server, eventually, need_server};

use crate::{connected, single};

/// The network holds a `SET` back, the connection dies, the next one settles it, and only then the
/// network delivers. The server must have been told to end the old connection first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_that_arrives_after_its_undo_leaves_no_key() {
    need_server!();
    for round in 0..20 {
        let server = Server::start();
        let proxy = Proxy::before(&server);
        let locker = connected(single(proxy.url())).await;
        let of_handshake = reads(&server);
        proxy.hold();
        let key = format!("k{round}");
        let trying = tokio::spawn({
            let locker = locker.clone();
            async move { locker.lock(key).try_acquire().await }
        });
        eventually("the network holds the SET", || proxy.held() > 0);
        proxy.pass();
        proxy.cut_clients();
        assert!(trying.await.unwrap().unwrap_err().is_unavailable());
        eventually("a new connection", || proxy.accepted() == 2);
        // What it settles has been executed when the link is in use again.
        locker.ready(Duration::from_secs(5)).await.unwrap();
        eventually("the undo was executed", || {
            reads(&server) > proxy.accepted() as u64 * of_handshake
        });
        proxy.deliver();
        let client = Client::new(server.url()).unwrap().timeout(Duration::from_secs(5));
        assert!(client.command(["PING"]).await.is_ok());
        // Whatever was delivered has been read by the time that several answers have come.
        for _ in 0..3 {
            assert_eq!(server.command(&["DBSIZE"]), Reply::Int(0), "round {round}");
        }
    }
}

/// How often a key was read: by each undo, and with some rights by each handshake, too.
fn reads(server: &Server) -> u64 {
    server.calls().of("get")
}

/// The same without `CLIENT KILL`: the danger is real, the test can see it, and it passes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_ending_the_old_connection_the_key_appears_and_is_undone_again() {
    need_server!();
    let server = Server::builder().args(["--rename-command", "CLIENT", ""]).start();
    let proxy = Proxy::before(&server);
    let locker = connected(single(proxy.url())).await;
    let of_handshake = reads(&server);
    proxy.hold();
    let trying = tokio::spawn({
        let locker = locker.clone();
        async move { locker.lock("k").try_acquire().await }
    });
    eventually("the network holds the SET", || proxy.held() > 0);
    proxy.pass();
    proxy.cut_clients();
    assert!(trying.await.unwrap().unwrap_err().is_unavailable());
    eventually("the undo was executed", || reads(&server) > proxy.accepted() as u64 * of_handshake);
    let calls = server.calls();
    assert_eq!((calls.of("set"), calls.of("del")), (0, 0), "the undo found nothing");
    proxy.deliver();
    // A client that cannot end the old connection undoes again: what arrived late was there, then,
    // for only a key with our value is deleted.
    eventually("the SET arrives late", || server.calls().of("set") == 1);
    eventually("it is undone again", || server.calls().of("del") == 1);
    assert_eq!(server.command(&["DBSIZE"]), Reply::Int(0));
}
