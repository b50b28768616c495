//! What is refused before anything is sent.

use std::time::Duration;

use quorlock::{
    Client, Credentials, Driver, Durability, Extend, Locker, NodeOptions, OnLoss, Protocol, Retry,
    TcpOptions,
};

use crate::print::{fails, look, show_error};
use crate::{CANARY, ENCODED, PASSWORD};

/// URLs of which each is wrong somewhere.
fn urls() -> Vec<String> {
    let around = [
        "{}",
        "{}:6379",
        "redis:{}",
        "{}://h",
        "http://me:{}@h",
        "redis://{}@h",
        "redis://:{}@",
        "redis://:{}@h:x",
        "redis://h:{}",
        "redis://:{}@h/x",
        "redis://h/{}",
        "redis://:{}@[::1",
        "redis://[{}]",
        "redis://{}!",
        "redis://h?name={}%20",
        "redis://h?{}",
        "redis://h?{}=1",
        "redis://h?db={}",
        "redis://h?protocol={}",
        "redis://:{}%zz@h",
        "redis://:{}%ff@h",
        "redis://:{}@h?x=1",
        "redis://h#{}",
        "unix://{}",
        "unix://me@{}",
        "unix:///{}%00",
        "redis://a,{}",
        "redis://:{} @h",
        "unix://:{}@run",
        "rediss+x://:{}@h",
        "redis://{}@h:0",
    ];
    let secrets = [CANARY, PASSWORD, ENCODED];
    let urls = around.iter().flat_map(|url| secrets.map(|secret| url.replace("{}", secret)));
    urls.collect()
}

/// Has everything refused that can be, and prints it.
pub(crate) fn refused() {
    for url in urls() {
        for result in [
            Locker::single(&url).map(drop),
            Locker::quorum(["redis://a", &*url]).map(drop),
            Client::new(&url).map(drop),
            url.parse::<NodeOptions>().and_then(|node| Locker::single(node).map(drop)),
        ] {
            // (A canary alone may be a host's name, and is in its place as a password.)
            if let Err(error) = result {
                show_error(&error);
            }
        }
    }
    let node = || NodeOptions::tcp("h", 6379).username("me").password(PASSWORD);
    for node in [
        NodeOptions::tcp(format!("redis://:{PASSWORD}@h"), 6379),
        NodeOptions::tcp(PASSWORD, 6379),
        NodeOptions::unix(format!("{CANARY}/s")),
        node().name("two words"),
        node().password("").username(CANARY),
    ] {
        look(node.clone());
        fails(Locker::single(node));
    }
    let twice = format!("redis://:{ENCODED}@h");
    fails(Locker::quorum([&twice, &twice]));
    #[cfg(feature = "serde")]
    configured();
    options(node());
}

#[cfg(feature = "serde")]
fn configured() {
    for json in [
        format!("\"redis://:{CANARY}@h:x\""),
        format!("{{\"host\": \"h\", \"password\": [\"{CANARY}\"]}}"),
        format!("{{\"host\": \"h\", \"{CANARY}\": 1}}"),
        format!("{{\"host\": \"h\", \"port\": \"{CANARY}\"}}"),
    ] {
        let error = serde_json::from_str::<NodeOptions>(&json).unwrap_err();
        println!("{error:?} {error}");
    }
}

/// Prints every option that there is.
fn options(node: NodeOptions) {
    look(node.clone());
    look(node.clone().credentials(|| CANARY));
    look(Credentials::new("me", PASSWORD));
    look(Credentials::from(PASSWORD));
    look(Protocol::Resp2);
    look(TcpOptions::new());
    look(Driver::Thread);
    look(Extend::Forever);
    look(OnLoss::Signal);
    look(Retry::fixed(Duration::from_millis(1)));
    look(Durability::Volatile { longest_ttl: Duration::from_secs(1) });
    let options = |ttl| Locker::single(node.clone()).unwrap().ttl(ttl).owner("me");
    fails(options(Duration::ZERO).build());
    look(options(Duration::from_secs(1)));
}
