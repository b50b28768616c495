//! Every mistake is told in one line that says what to do; where it can be known before anything
//! is sent, nothing is.

use std::time::Duration;

use quorlock::{Client, Locker, NodeOptions, Retry, TcpOptions};
use support::{Fleet, Script, Scripted, Server, need_server, reach};

use crate::{builder, connected, quorum, single};

#[track_caller]
fn refused<T>(result: Result<T, quorlock::Error>, words: &str) {
    let error = result.err().expect("it should have been refused");
    assert!(error.is_misuse(), "{error}");
    let line = error.to_string();
    assert!(line.contains(words), "{line}");
    assert!(!line.contains('\n'), "{line}");
    assert_eq!(format!("{error:?}"), line, "main prints the debug form");
}

#[test]
fn urls_that_cannot_be_right_are_refused() {
    refused(Locker::quorum(Vec::<String>::new()), "no node was given");
    refused(Locker::quorum(vec!["redis://h"; 16]), "16 nodes were given");
    assert!(Locker::quorum((0..15).map(|node| format!("redis://h{node}"))).is_ok());
    refused(Locker::single("localhost:6379"), "has no scheme");
    refused(Locker::single("http://h"), "unknown scheme");
    refused(Locker::single("redis://h?retries=3"), "unknown parameter \"retries\"");
    refused(
        Locker::quorum(["redis://a", "redis://b", "redis://A:6379/1"]),
        "a:6379 was given twice",
    );
    refused(Client::new("redis://h:notaport"), "bad port");
    // Where there are several, the place of the wrong one is said, for it is not repeated.
    refused(Locker::quorum(["redis://a", "redis://b:x"]), "(node 2 of those given)");
    refused(Locker::quorum(["redis://[::1]", "redis://[0::1]"]), "[::1]:6379 was given twice");
}

#[test]
fn nodes_options_that_cannot_be_right_are_refused() {
    let node = || NodeOptions::tcp("h", 6379);
    refused(Locker::single(NodeOptions::tcp("", 6379)), "has no host");
    refused(Locker::single(NodeOptions::tcp("redis://h", 6379)), "no IPv6 address");
    refused(Client::new(NodeOptions::unix("run/s")), "absolute path");
    refused(Locker::single(node().username("me")), "h:6379 has a user without a password");
    refused(Locker::quorum([node(), node().database(1)]), "h:6379 was given twice");
    let tcp = TcpOptions::new().user_timeout(Duration::ZERO);
    refused(Locker::single(node().tcp_options(tcp)), "at least 1 ms");
    refused(Locker::single(node()).unwrap().tcp(tcp).build(), "at least 1 ms");
    let often = TcpOptions::new().keepalive(Duration::from_millis(1), Duration::from_secs(1));
    refused(Locker::single(node()).unwrap().tcp(often).build(), "1 s to 32,767 s");
}

#[test]
fn options_out_of_range_are_refused() {
    let build = |ttl| Locker::single("redis://h").unwrap().ttl(ttl).build();
    refused(build(Duration::ZERO), "at least 1 ms");
    refused(build(Duration::from_micros(10)), "at least 1 ms");
    refused(build(Duration::from_millis(1)), "clock drift");
    refused(build(Duration::MAX), "servers take at most");
    refused(Locker::single("redis://h").unwrap().connections_per_node(0).build(), "at least 1");
    let [zero, second] = [Duration::ZERO, Duration::from_secs(1)];
    let reconnect = |first, cap| Locker::single("redis://h").unwrap().reconnect(first, cap).build();
    refused(reconnect(zero, zero), "at least 1 ms");
    refused(reconnect(zero, second), "at least 1 ms");
    refused(Locker::single("redis://h").unwrap().connect_timeout(zero).build(), "a timeout is 0");
    refused(Locker::single("redis://h").unwrap().node_timeout(zero).build(), "a timeout is 0");
    let pause = Retry::fixed(zero);
    refused(Locker::single("redis://h").unwrap().retry(pause).build(), "without end");
    refused(Locker::single("redis://h").unwrap().owner("a\nb").build(), "control characters");
    refused(Locker::single("redis://h").unwrap().owner("a".repeat(200)).build(), "at most 128");
}

#[tokio::test]
async fn a_bad_key_or_ttl_sends_nothing() {
    let server = Scripted::start(Script::greeting().answer_all(|_| b"+OK\r\n".to_vec()));
    let locker = connected(single(server.url())).await;
    let greeted = server.heard().len();
    refused(locker.lock("").await, "the key is empty");
    refused(locker.lock("").try_acquire().await, "the key is empty");
    refused(locker.lock(vec![b'k'; 1 << 20]).await, "at most 4096");
    refused(locker.inspect("").await, "the key is empty");
    for ttl in [Duration::ZERO, Duration::from_micros(999), Duration::MAX] {
        refused(locker.lock("k").ttl(ttl).await, "the TTL is");
    }
    let client = Client::new(server.url()).unwrap();
    refused(client.command(Vec::<&str>::new()).await, "no name");
    refused(client.command([""]).await, "no name");
    refused(client.command(["subscribe", "c"]).await, "`SUBSCRIBE` has not one reply");
    let mut pipeline = client.pipeline();
    pipeline.command(["PING"]).command(["Client", "Reply", "OFF"]);
    refused(pipeline.run().await, "`CLIENT REPLY` has not one reply");
    refused(client.clone().timeout(Duration::ZERO).command(["PING"]).await, "the timeout is 0");
    assert_eq!(server.heard().len(), greeted, "something was sent: {:?}", server.names());
}

#[tokio::test]
async fn a_wrong_password_is_an_authentication_error_and_never_shows() {
    need_server!();
    let fleet = Fleet::start_with(3, |_, server| server.password("right"));
    let with = |login: &str| {
        let url = |url: String| url.replace(":right@", login);
        quorum(fleet.urls().into_iter().map(url))
    };
    for login in [":canary@", "me:canary@", ""] {
        let locker = with(login).build().unwrap();
        let error = locker.lock("k").await.unwrap_err();
        assert!(error.is_authentication(), "{error}");
        assert!(!error.is_retryable());
        let line = error.to_string();
        assert!(line.contains("check the") && !line.contains("canary"), "{line}");
        assert!(!format!("{locker:?} {:?}", with(login)).contains("canary"));
        assert!(locker.ready(Duration::from_secs(5)).await.unwrap_err().is_authentication());
    }
    assert!(with(":right@").build().unwrap().lock("k").await.is_ok());
    let resp2 = fleet.urls().into_iter().map(|url| reach::with(&url, "protocol=2"));
    assert!(quorum(resp2).build().unwrap().lock("k").await.is_ok());
}

#[tokio::test]
async fn the_same_server_under_two_addresses_counts_once_while_n_stays() {
    need_server!();
    let server = Server::start();
    let twin = server.tcp_url().replace("127.0.0.1", "localhost");
    let locker = quorum([server.url(), twin.clone()]).build().unwrap();
    let error = locker.lock("k").try_acquire().await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    assert!(error.to_string().contains("is the same server as"), "{error}");

    // With two more, two of three votes are a majority.
    let other = Server::start();
    let urls = [server.url(), twin, other.url()];
    let locker = quorum(urls).build().unwrap();
    let guard = locker.lock("k").wait(Duration::from_secs(5)).await.unwrap();
    assert_eq!(guard.votes().len(), 3, "N stays");
}

#[tokio::test]
async fn replicas_and_cluster_nodes_do_not_vote() {
    need_server!();
    let master = Server::start();
    let replica = Server::builder().replica_of(&master).start();
    let cluster = Server::builder().cluster().start();

    let urls = [master.url(), replica.url(), cluster.url()];
    let locker = quorum(urls).build().unwrap();
    let error = locker.lock("k").try_acquire().await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    let line = error.to_string();
    assert!(line.contains("is a replica (give its master's address)"), "{line}");
    assert!(line.contains("runs as a cluster node"), "{line}");

    let alone = single(replica.url()).build().unwrap();
    let error = alone.lock("k").wait(Duration::ZERO).await.unwrap_err();
    assert!(error.to_string().contains("is a replica"), "{error}");
}

#[tokio::test]
async fn a_key_that_no_lock_wrote_is_reported_as_such() {
    need_server!();
    for size in [1, 5] {
        let fleet = Fleet::start(size);
        let locker = connected(builder(&fleet)).await;
        fleet.command(&["HSET", "order:42", "field", "value"]);
        fleet.command(&["SET", "order:43", "value"]);
        refused(
            locker.lock("order:42").await,
            "\"order:42\" holds a value that no lock wrote (a hash, without expiry); use another \
             key or a prefix",
        );
        refused(locker.lock("order:43").await, "(a string, without expiry)");
        assert_eq!(fleet.holders("order:42").len(), size, "it is left alone");
        // A single try is told that it is held, and no more.
        assert!(locker.lock("order:42").try_acquire().await.unwrap().is_none());
    }
}

#[tokio::test]
async fn a_database_that_is_not_there_is_told() {
    need_server!();
    let server = Server::start();
    let locker = single(reach::with(&server.url(), "db=99")).build().unwrap();
    let error = locker.lock("k").wait(Duration::ZERO).await.unwrap_err();
    assert!(error.to_string().contains("DB index is out of range"), "{error}");
    let there = single(reach::with(&server.url(), "db=3")).build().unwrap();
    let guard = there.lock("k").await.unwrap();
    assert!(server.info("db3").is_some(), "the key is in the database of the URL");
    assert!(guard.release().await.unwrap().is_released());
}
