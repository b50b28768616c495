//! Servers that cannot be reached, refuse, hang, or repeat what they are told.

use std::net::TcpListener;
use std::time::Duration;

use quorlock::{Client, Credentials, Durability, Locker, NodeOptions};
use support::{Greeting, Script, Scripted, Server, eventually_async};

use crate::life::{builder, fleet};
use crate::print::{fails, look, observed, show};
use crate::{CANARY, PASSWORD, Tokens, random_values, values_in, with_memory};

const SECOND: Duration = Duration::from_secs(1);

pub(crate) async fn run(tokens: &mut Tokens) {
    unreachable().await;
    hostile(tokens).await;
    logins(tokens).await;
    forbidden(tokens).await;
    forgetful(tokens).await;
}

/// Has a lock refused by the one node, and prints all that is said of it.
async fn refused_by(node: NodeOptions) {
    let builder = observed(Locker::single(node.clone()).unwrap());
    let locker = show(builder.connect_timeout(SECOND / 5).wait(SECOND / 2).build().unwrap());
    fails(locker.lock("k").await);
    look(locker.health());
    look(locker.inspect("k").await.unwrap());
    let client = show(Client::new(node).unwrap());
    println!("{}", client.command(["GET", "k"]).await.is_ok());
}

fn node(port: u16) -> NodeOptions {
    NodeOptions::tcp("127.0.0.1", port).username("me").password(PASSWORD)
}

async fn unreachable() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    refused_by(node(port)).await;
    drop(silent);
    refused_by(node(port)).await;
    refused_by(NodeOptions::tcp("no-such-name.invalid", 1).password(PASSWORD)).await;
    refused_by(NodeOptions::unix("/no/such/socket").password(PASSWORD)).await;
    refused_by(NodeOptions::tcp("256.0.0.1", 1).password(PASSWORD)).await;
    let failing = node(port).credentials_async(async || Err::<String, _>("no vault"));
    refused_by(failing).await;
}

/// Everything that it was told.
fn repeated(command: &[Vec<u8>]) -> Vec<u8> {
    command.join(&b' ')
}

/// What servers say to a command that they do not know.
fn unknown(command: &[Vec<u8>]) -> Vec<u8> {
    let quoted = |word: &Vec<u8>| [b"'", &word[..], b"' "].concat();
    let words: Vec<u8> = command.iter().skip(1).flat_map(quoted).collect();
    let name = String::from_utf8_lossy(&command[0]).into_owned();
    let head = format!("-ERR unknown command '{name}', with args beginning with: ").into_bytes();
    [head, words, b"\r\n".to_vec()].concat()
}

async fn hostile(tokens: &mut Tokens) {
    let error = |command: &[Vec<u8>]| [b"-ERR ", &repeated(command)[..], b"\r\n"].concat();
    let bare = |command: &[Vec<u8>]| [b"-", &repeated(command)[..], b"\r\n"].concat();
    let denied = |command: &[Vec<u8>]| [b"-WRONGPASS ", &repeated(command)[..], b"\r\n"].concat();
    let noise = |command: &[Vec<u8>]| [&repeated(command)[..], b"\r\n"].concat();
    let string = |command: &[Vec<u8>]| [b"+", &repeated(command)[..], b"\r\n"].concat();
    let greeting = || Script::greeting_as(Greeting::default());
    let old = || Script::greeting_as(Greeting::default().without_hello());
    let scripts = [
        Script::bare().answer_all(error),
        Script::bare().answer_all(bare),
        Script::bare().answer_all(denied),
        Script::bare().answer_all(noise),
        Script::bare().answer_all(string),
        Script::bare().answer_all(unknown),
        Script::bare().cut(),
        Script::bare().stall(),
        greeting().answer_all(error),
        greeting().answer_all(bare),
        greeting().answer_all(unknown),
        greeting().answer_all(noise),
        greeting().answer_all(string),
        greeting().stall(),
        greeting().expect("SET").cut(),
        old().answer_all(error),
        old().answer_all(unknown),
    ];
    let servers = scripts.map(Scripted::start);
    let mut tasks = tokio::task::JoinSet::new();
    for server in &servers {
        let node = NodeOptions::tcp("127.0.0.1", server.addr().port());
        tasks.spawn(refused_by(node.clone().password(PASSWORD)));
        tasks.spawn(refused_by(node.password(CANARY).protocol(quorlock::Protocol::Resp2)));
    }
    tasks.join_all().await;
    for heard in servers.iter().flat_map(Scripted::heard) {
        let words: Vec<_> = heard.command.iter().map(|w| String::from_utf8_lossy(w)).collect();
        tokens.extend(values_in(&words.join(" ")));
    }
}

/// Logins that are wrong, missing, or changed.
async fn logins(tokens: &mut Tokens) {
    let fleet = fleet(3);
    for login in ["", ":wrong-c4n4ry@", "me:c4n4ry@", "default:c4n4ry@"] {
        for query in ["", "?protocol=2"] {
            let url = |server: &Server| format!("redis://{login}{}{query}", server.addr());
            let locker = observed(Locker::quorum(fleet.iter().map(url)).unwrap()).build().unwrap();
            look(locker.ready(5 * SECOND).await);
            fails(locker.lock("k").await);
            look(locker.health());
        }
    }
    let asked = |credentials: Credentials| {
        let nodes = fleet.iter().map(|server| {
            let credentials = credentials.clone();
            NodeOptions::tcp("127.0.0.1", server.port()).credentials(move || credentials.clone())
        });
        show(observed(Locker::quorum(nodes).unwrap()).build().unwrap())
    };
    fails(asked(CANARY.into()).lock("k").await);
    drop(asked(PASSWORD.into()).lock("k").await.unwrap());

    let locker = builder(&fleet).build().unwrap();
    drop(locker.lock("k").await.unwrap());
    fleet.command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    fleet.cut_clients();
    eventually_async("the next connections tell what was set", async || {
        let told = locker.health().into_iter().filter_map(|node| node.server?.maxmemory_policy);
        told.filter(|policy| **policy == *"allkeys-lru").count() == 3
    })
    .await;
    drop(locker.lock("k").await.unwrap());
    tokens.extend(fleet.iter().flat_map(random_values));
}

/// Commands that are renamed away, and users who may not.
async fn forbidden(tokens: &mut Tokens) {
    for name in ["HELLO", "AUTH", "SET", "EVALSHA", "EVAL", "GET", "INFO"] {
        let server = with_memory(Server::builder().args(["--rename-command", name, ""]));
        let server = match name {
            // Its own `AUTH` is what the others are started with.
            "AUTH" => server.user("me", "on nopass ~* +@all"),
            _ => server.user("me", &format!("on >{CANARY} ~* +@all")),
        };
        let server = server.start();
        for protocol in [quorlock::Protocol::Resp2, quorlock::Protocol::Resp3] {
            let node = node(server.port()).password(CANARY).protocol(protocol);
            any(node).await;
        }
        tokens.extend(random_values(&server));
    }
    for rules in ["-@all", "-@all +hello +auth", "+@all -set", "+@all -evalsha -eval", "resetkeys"]
    {
        let rules = format!("on >{CANARY} ~* +@all {rules}");
        let server = with_memory(Server::builder()).user("me", &rules).start();
        any(node(server.port()).password(CANARY)).await;
        tokens.extend(random_values(&server));
    }
}

/// Holds a lock, or does not, and prints what comes of it.
async fn any(node: NodeOptions) {
    let builder = observed(Locker::single(node).unwrap()).ttl(SECOND / 2).wait(SECOND / 4);
    let locker = builder.build().unwrap();
    match locker.lock("k").await {
        Ok(guard) => {
            let extended = guard.extend(SECOND).await;
            println!("{extended:?} {:?} {:?}", locker.inspect("k").await, guard.release().await);
        }
        Err(error) => crate::print::show_error(&error),
    }
    println!("{:?} {:?}", locker.force_release("k").await, locker.shutdown(SECOND).await);
}

/// Another durability than the deployment's.
async fn forgetful(tokens: &mut Tokens) {
    let fleet = fleet(3);
    let volatile = |longest_ttl| {
        let durability = Durability::Volatile { longest_ttl };
        builder(&fleet).ttl(SECOND / 2).durability(durability).build().unwrap()
    };
    fails(volatile(SECOND).lock("k").await);
    look(volatile(SECOND).initialise().await.unwrap());
    drop(volatile(SECOND).lock("k").await.unwrap());
    fails(volatile(2 * SECOND).lock("k").await);
    let persistent = builder(&fleet).build().unwrap();
    fails(persistent.ready(5 * SECOND).await);
    fails(persistent.lock("k").await);
    tokens.extend(fleet.iter().flat_map(random_values));
}
