//! The table: what is there, what the client brings, and what it says of it.

use std::sync::Arc;
use std::time::Duration;

use quorlock::rustls::{self, ServerConfig, version};
use quorlock::{Locker, Tls};
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, date_time_ymd};
use support::tls::authority;
use support::{
    Authority, Behaviour, Identity, Server, Terminator, eventually_async, need_server,
    need_tls_server,
};

use crate::{showing, trusting};

/// Long beside a handshake on this machine, short beside a test's patience.
const DEADLINE: Duration = Duration::from_secs(1);

/// One row.
struct Row {
    name: &'static str,
    host: &'static str,
    front: Front,
    tls: Tls,
    /// What the line holds; nothing where all is right.
    words: &'static str,
}

/// What the client meets.
enum Front {
    Terminator(Arc<ServerConfig>, Behaviour),
    Plain,
}

fn row(name: &'static str, identity: &Identity, tls: Tls, words: &'static str) -> Row {
    let config = identity.server_config(None, rustls::ALL_VERSIONS);
    Row { name, host: "127.0.0.1", front: Front::Terminator(config, Behaviour::Serve), tls, words }
}

/// A server that asks its clients for a certificate.
fn asking(name: &'static str, tls: Tls, words: &'static str) -> [Row; 2] {
    let server = authority().server();
    [&version::TLS13, &version::TLS12].map(|version| {
        let config = server.server_config(Some(authority()), &[version]);
        let front = Front::Terminator(config, Behaviour::Serve);
        Row { name, host: "127.0.0.1", front, tls: tls.clone(), words }
    })
}

fn behaving(name: &'static str, behaviour: Behaviour, words: &'static str) -> Row {
    let config = authority().server().server_config(None, rustls::ALL_VERSIONS);
    let front = Front::Terminator(config, behaviour);
    Row { name, host: "127.0.0.1", front, tls: trusting(), words }
}

fn issue(names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Identity {
    authority().issue(names, change)
}

fn certificates() -> Vec<Row> {
    let right = authority().server();
    let here = ["127.0.0.1"];
    let other = issue(&["other.test"], |_| ());
    let alone = Identity::self_signed(&here, |_| ());
    let own = Tls::new().ca_pem(&alone.certificate);
    let expired = issue(&here, |params| params.not_after = date_time_ymd(2024, 1, 1));
    let early = issue(&here, |params| params.not_before = date_time_ymd(3024, 1, 1));
    let ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let as_ca = Identity::self_signed(&here, |params| params.is_ca = ca);
    let as_ca_trusted = Tls::new().ca_pem(&as_ca.certificate);
    let for_clients = issue(&here, |params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    });
    let stranger = Authority::new("a stranger").server();
    let namesake = Authority::new("the tests' authority").server();
    let tls12 = right.server_config(None, &[&version::TLS12]);
    let tls12 = Front::Terminator(tls12, Behaviour::Serve);
    vec![
        row("right", &right, trusting(), ""),
        Row { host: "localhost", ..row("right, by name", &right, trusting(), "") },
        Row { front: tls12, ..row("TLS 1.2", &right, trusting(), "") },
        row("wrong host", &other, trusting(), "is for other.test, not for 127.0.0.1"),
        row("wrong host, told", &other, trusting().server_name("other.test"), ""),
        row("wrong IP SAN", &issue(&["127.0.0.2"], |_| ()), trusting(), "is for 127.0.0.2, not"),
        row("right IP SAN", &issue(&here, |_| ()), trusting(), ""),
        row("no name", &issue(&[], |_| ()), trusting(), "is for no name, not for 127.0.0.1"),
        row("expired", &expired, trusting(), "has expired, "),
        row("not yet valid", &early, trusting(), "not valid yet"),
        row("self-signed", &alone, trusting(), "no authority that is trusted here"),
        row("self-signed, trusted", &alone, own, ""),
        row("an authority's own", &as_ca, as_ca_trusted, "is an authority's own"),
        row("wrong CA", &stranger, trusting(), "no authority that is trusted here"),
        row("wrong CA of the same name", &namesake, trusting(), "not signed by the authority"),
        row("browsers' CAs", &right, Tls::new(), "no authority that is trusted here"),
        row("for clients", &for_clients, trusting(), "is not one for a server"),
    ]
}

fn clients() -> Vec<Row> {
    let strange = showing(&Authority::new("a stranger").client());
    let expired = issue(&["client.test"], |params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.not_after = date_time_ymd(2024, 1, 1);
    });
    let wanted = "client certificate";
    [
        asking("no client certificate", trusting(), wanted),
        asking("wrong client certificate", strange, "our client certificate"),
        asking("expired client certificate", showing(&expired), "client certificate has expired"),
        asking("right client certificate", showing(&authority().client()), ""),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn behaviours() -> Vec<Row> {
    let right = authority().server();
    vec![
        behaving("stalled behind ClientHello", Behaviour::Mute, "(is this its TLS port?"),
        behaving("stalled in ServerHello", Behaviour::HalfHandshake, "(is this its TLS port?"),
        behaving("stalled before HELLO", Behaviour::Deaf, "while connecting (connected, but"),
        behaving("truncated handshake", Behaviour::CutHandshake, "closed the connection in the"),
        Row { front: Front::Plain, ..row("plain text", &right, trusting(), "plain text") },
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn each_has_its_verdict_in_one_line_that_says_what_to_do() {
    need_server!();
    let server = Server::start();
    let (addr, plain) = (server.addr(), server.addr());
    let rows = [certificates(), clients(), behaviours()].into_iter().flatten();
    let trials: Vec<_> = rows
        .enumerate()
        .map(|(number, row)| {
            let Row { name, host, front, tls, words } = row;
            let name = format!("{name}, row {number}"); // the key as well: none is held twice
            let key = name.clone();
            let trial = async move {
                let (url, terminator) = match front {
                    Front::Plain => (format!("rediss://{plain}"), None),
                    Front::Terminator(config, behaviour) => {
                        let terminator = Terminator::with(addr, config, behaviour);
                        (terminator.url(host), Some(terminator))
                    }
                };
                let line = verdict(&url, &key, Some(tls)).await;
                drop(terminator);
                line
            };
            (name, words, tokio::spawn(trial))
        })
        .collect();
    assert!(trials.len() >= 24, "{} rows", trials.len());
    for (name, words, trial) in trials {
        let line = trial.await.unwrap();
        match (line, words) {
            (None, "") => {}
            (Some(line), words) if !words.is_empty() && line.contains(words) => {
                assert!(line.starts_with(&format!("no answer for {name:?}: ")), "{name}: {line}");
                assert!(!line.contains('\n') && line.len() < 300, "{name}: {line}");
                // What is no more than late has no cure that we could know.
                assert!(line.ends_with(')') || line.ends_with("connecting"), "{name}: {line}");
            }
            (line, words) => panic!("{name}: {line:?}, and not {words:?}"),
        }
    }
    assert!(server.command(&["KEYS", "*"]).array().is_empty(), "no lock is left behind");
}

#[tokio::test]
async fn plain_text_at_a_port_of_tls_is_told_so() {
    need_server!();
    let server = Server::start();
    let config = authority().server().server_config(None, rustls::ALL_VERSIONS);
    let terminator = Terminator::start(server.addr(), config);
    let line = verdict(&format!("redis://{}", terminator.addr()), "k", None).await.unwrap();
    assert!(line.ends_with("answers plain text with TLS (write rediss:// for it)"), "{line}");
}

/// The same, of a server that speaks TLS itself.
#[tokio::test]
async fn a_real_servers_tls_has_the_same_verdicts() {
    let program = need_tls_server!();
    let clients = Some(authority().pem());
    let asking = Server::builder().program(&program).tls(authority().server(), clients).start();
    let open = Server::builder().program(&program).tls(authority().server(), None).start();
    let stranger = Authority::new("a stranger").server();
    let wrong = Server::builder().program(&program).tls(stranger, None).start();
    let tls12 = Server::builder().program(&program).args(["--tls-protocols", "TLSv1.2"]);
    let tls12 = tls12.tls(authority().server(), None).start();
    let strange = showing(&Authority::new("a stranger").client());
    let rows = [
        (open.url(), Some(trusting()), ""),
        (tls12.url(), Some(trusting()), ""),
        (asking.url(), Some(showing(&authority().client())), ""),
        (asking.url(), Some(trusting()), "wants a client certificate"),
        (asking.url(), Some(strange), "our client certificate"),
        (wrong.url(), Some(trusting()), "no authority that is trusted here"),
        (format!("rediss://{}", open.addr()), Some(trusting()), "plain text"),
        (open.url().replace("rediss", "redis"), None, ""),
    ];
    let last = rows.len() - 1;
    for (number, (url, tls, words)) in rows.into_iter().enumerate() {
        let line = verdict(&url, "k", tls).await;
        match line {
            None => assert!(words.is_empty() && number != last, "{number}: it works"),
            Some(line) if number == last => {
                // OpenSSL's library leaves it to its user to say why; this one closes.
                assert!(line.contains("write rediss://") || line.contains("closed"), "{line}");
            }
            Some(line) => assert!(line.contains(words) && !words.is_empty(), "{number}: {line}"),
        }
    }
}

/// Nothing is accepted: the listener's queue is full, and the kernel drops the rest.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn stalled_while_connecting_is_no_fault_of_tls() {
    use std::net::TcpStream;

    use socket2::{Domain, Socket, Type};
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    socket.listen(0).unwrap();
    let addr = socket.local_addr().unwrap().as_socket().unwrap();
    let patience = Duration::from_millis(100);
    let connect = || TcpStream::connect_timeout(&addr, patience).ok();
    let queued: Vec<TcpStream> = std::iter::from_fn(connect).take(16).collect();
    assert!(queued.len() < 16, "the queue is full");
    let line = verdict(&format!("rediss://{addr}"), "k", Some(trusting())).await.unwrap();
    assert!(line.contains("was silent for 1.0 s while connecting (is the address right"), "{line}");
}

/// Before its time is up, too.
#[tokio::test]
async fn what_connecting_is_at_is_told_and_what_that_hints_at() {
    // The kernel accepts, and nothing is read.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let tls = "is not connected yet (waits for the handshake of TLS, which a port of plain text";
    let plain = "is not connected yet (is connected, and waits for the answer to the handshake)";
    for (scheme, words) in [("rediss", tls), ("redis", plain)] {
        let builder = Locker::single(format!("{scheme}://{addr}")).unwrap();
        let builder = if scheme == "rediss" { builder.tls(trusting()) } else { builder };
        let locker = builder.connect_timeout(Duration::from_secs(600)).build().unwrap();
        eventually_async("it says so", async || {
            let error = locker.ready(Duration::from_millis(20)).await.unwrap_err().to_string();
            error.contains(words)
        })
        .await;
    }
}

/// What an attempt to lock says; nothing when it works.
async fn verdict(url: &str, key: &str, tls: Option<Tls>) -> Option<String> {
    let mut builder = Locker::single(url).unwrap().connect_timeout(DEADLINE);
    if let Some(tls) = tls {
        builder = builder.tls(tls);
    }
    let locker = builder.node_timeout(Duration::from_secs(5)).build().unwrap();
    match locker.lock(key).try_acquire().await {
        Ok(guard) => {
            assert!(guard.unwrap().release().await.is_ok());
            None
        }
        Err(error) => {
            assert!(error.is_unavailable(), "{error}");
            Some(error.to_string())
        }
    }
}
