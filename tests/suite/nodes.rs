//! Nodes given part by part, over every kind of address, and logins that change.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorlock::{
    Client, Credentials, NodeOptions, Protocol,
    report::{Fault, Outcome},
};
use support::{
    Fleet, Greeting, Reply, Script, Scripted, Server, eventually_async, need_process, need_server,
    reach,
};

use crate::{connected, quorum, single};

/// As the environment chooses, without a login.
fn node(server: &Server) -> NodeOptions {
    server.url_as("").parse().unwrap()
}

#[track_caller]
fn accepts(server: &Server, args: &[&str]) {
    let reply = server.command(args);
    assert_eq!(reply, Reply::ok(), "{args:?}");
}

#[tokio::test]
async fn a_lock_is_held_over_every_kind_of_address() {
    need_process!();
    let server = Server::builder()
        .user("me", "on >p@ss:w/?#[]% ~* +@all")
        .args(["--bind", "127.0.0.1", "-::1"])
        .start();
    let (port, path) = (server.port(), server.socket_path());
    let me = |node: NodeOptions| node.username("me").password("p@ss:w/?#[]%");
    let urls = [
        format!("redis://127.0.0.1:{port}"),
        format!("valkey://localhost:{port}/2"),
        format!("redis://me:p%40ss%3Aw%2F%3F%23%5B%5D%25@127.0.0.1:{port}?protocol=2&name=web"),
        format!("unix://{}", path.display()),
        format!("redis+unix://me:p%40ss%3Aw%2F%3F%23%5B%5D%25@{}?db=3", path.display()),
        format!("valkey+unix://{}?protocol=2", path.display()),
    ];
    let mut nodes: Vec<NodeOptions> = urls.iter().map(|url| url.parse().unwrap()).collect();
    nodes.extend([
        me(NodeOptions::tcp("127.0.0.1", port)).database(2).protocol(Protocol::Resp2).name("web"),
        me(NodeOptions::tcp("LOCALHOST", port)),
        me(NodeOptions::unix(&path)).database(3),
    ]);
    if std::net::TcpStream::connect(("::1", port)).is_ok() {
        nodes.push(me(NodeOptions::tcp("::1", port)));
        nodes.push(format!("redis://[::1]:{port}").parse().unwrap());
    }
    nodes.extend(server.tls_addr().map(|addr| format!("rediss://{addr}").parse().unwrap()));
    reach::aside("every kind of address, one by one");
    for node in nodes {
        let shown = format!("{node:?}");
        let locker = connected(single(&node)).await;
        let guard = locker.lock("k").await.unwrap_or_else(|error| panic!("{shown}: {error}"));
        assert!(guard.release().await.unwrap().is_released(), "{shown}");
        let client = Client::new(node).unwrap().timeout(Duration::from_secs(5));
        let name = client.command(["CLIENT", "GETNAME"]).await.unwrap();
        assert_eq!(name.as_str() == Ok("web"), shown.contains("web"), "{shown}: {name:?}");
    }
}

/// A password in its owner's hands, and how often it was asked for.
#[derive(Clone, Default)]
struct Vault {
    password: Arc<Mutex<String>>,
    asked: Arc<AtomicUsize>,
}

impl Vault {
    fn holding(password: &str) -> Self {
        let vault = Self::default();
        vault.put(password);
        vault
    }

    fn put(&self, password: &str) {
        *self.password.lock().unwrap() = password.into();
    }

    fn password(&self) -> String {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.password.lock().unwrap().clone()
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn a_login_is_asked_for_at_each_connect() {
    need_process!();
    let server = Server::builder().user("me", "on >first ~* +@all").start();
    // One for each: a locker that has gone may still be about to ask.
    let vaults = [Vault::holding("first"), Vault::holding("first")];
    let [by_password, by_both] = vaults.clone();
    let nodes = [
        node(&server).username("me").credentials(move || by_password.password()),
        node(&server).username("nobody").password("wrong").credentials_async(move || {
            let login = Credentials::new("me", by_both.password());
            async {
                tokio::task::yield_now().await;
                Ok::<_, std::io::Error>(login)
            }
        }),
    ];
    for (vault, node) in vaults.into_iter().zip(nodes) {
        accepts(&server, &["ACL", "SETUSER", "me", "resetpass", ">first"]);
        let locker = connected(single(node)).await;
        assert_eq!(vault.asked(), 1);

        // A connection that stands is not asked again.
        accepts(&server, &["ACL", "SETUSER", "me", "resetpass", ">second"]);
        vault.put("second");
        drop(locker.lock("k").await.unwrap());
        assert_eq!(vault.asked(), 1);

        server.cut_clients();
        eventually_async("the login to be asked for again", async || vault.asked() > 1).await;
        drop(locker.lock("k").await.unwrap());

        // An old password is told as a wrong one.
        vault.put("first");
        server.cut_clients();
        eventually_async("the old password to be refused", async || {
            let health = locker.health();
            let is_refused = |outcome: &Outcome| {
                matches!(outcome, Outcome::Down { fault: Fault::Authentication { .. }, .. })
            };
            health.iter().all(|node| is_refused(&node.outcome))
        })
        .await;
        let error = locker.lock("k").await.unwrap_err();
        assert!(error.is_authentication(), "{error}");
    }
}

#[tokio::test]
async fn a_login_that_cannot_be_had_is_told_and_asked_for_again() {
    need_server!();
    let fleet = Fleet::start_with(3, |_, server| server.password("pw"));
    let is_open = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let failing = is_open.clone();
    let panicking = is_open.clone();
    let nodes = [
        node(&fleet[0]).credentials(|| "pw"),
        node(&fleet[1]).credentials_async(move || {
            let is_open = failing.load(Ordering::SeqCst);
            async move { if is_open { Ok("pw") } else { Err("the vault\nis sealed") } }
        }),
        node(&fleet[2]).credentials(move || {
            assert!(panicking.load(Ordering::SeqCst), "a bug of the application's");
            "pw"
        }),
    ];
    let locker = quorum(nodes).build().unwrap();
    eventually_async("both failures are told", async || {
        let error = locker.lock("k").wait(Duration::from_millis(500)).await.unwrap_err();
        assert!(error.is_unavailable() && error.is_retryable(), "{error}");
        let line = error.to_string();
        line.contains(r"the callback for credentials: the vault\nis sealed")
            && line.contains("the callback for credentials: it panicked")
    })
    .await;

    // Neither has hurt what is beside it, and both are asked again.
    is_open.store(true, Ordering::SeqCst);
    assert_eq!(locker.ready(Duration::from_secs(5)).await.unwrap().len(), 3);
    drop(locker.lock("k").await.unwrap());
}

#[tokio::test]
async fn a_login_that_takes_too_long_counts_towards_the_connects_deadline() {
    let server = Scripted::start(Script::greeting_as(Greeting::default().password("pw")));
    let node: NodeOptions = server.url().parse().unwrap();
    let node = node.credentials_async(std::future::pending::<Result<String, String>>);
    let deadline = Duration::from_millis(100);
    let locker = single(node).connect_timeout(deadline).build().unwrap();
    eventually_async("the callback's silence is told", async || {
        let error = locker.lock("k").wait(Duration::from_secs(1)).await.unwrap_err();
        error.to_string().contains("(the callback for credentials: no answer within 100 ms)")
    })
    .await;
    assert!(server.heard().is_empty(), "nothing is said before there is a login");
}
