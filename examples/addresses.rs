//! Where nodes are and how to log in there: URLs, options, a configuration, a rotated password.
//!
//! ```sh
//! cargo run --example addresses --features serde              # shows what would be connected to
//! cargo run --example addresses --features serde -- connect   # and does
//! ```

use std::sync::{Arc, RwLock};
use std::time::Duration;

use quorlock::{Credentials, Error, Locker, NodeOptions, TcpOptions};

/// A password that is changed elsewhere: a file that is watched, an answer of a vault.
#[derive(Clone)]
struct Secret(Arc<RwLock<String>>);

impl Secret {
    /// Asked at every connect, so it must not block: the reading is done elsewhere.
    fn now(&self) -> Credentials {
        let password = self.0.read().map(|it| it.clone()).unwrap_or_default();
        Credentials::new("locker", password)
    }
}

fn nodes(secret: &Secret) -> Result<Vec<NodeOptions>, Error> {
    let [first, second] = [secret.clone(), secret.clone()];
    // Behind a firewall that forgets a connection after 10 s without a word.
    let far = TcpOptions::new().keepalive(Duration::from_secs(5), Duration::from_secs(2));
    let mut nodes = vec![
        // By its parts: nothing needs to be percent-encoded.
        NodeOptions::tcp("127.0.0.1", 6379).credentials(move || first.now()).name("example"),
        // By its URL, with what no URL should hold.
        "redis://localhost:6380/1".parse::<NodeOptions>()?.credentials(move || second.now()),
        NodeOptions::unix("/run/valkey/valkey.sock").database(2).password("a/b@c"),
    ];
    nodes.push(NodeOptions::tcp("::1", 6381).tcp_options(far));
    #[cfg(feature = "serde")]
    {
        let file = r#"["redis://127.0.0.1:6382", {"path": "/run/redis.sock", "protocol": 2}]"#;
        let configured: Vec<NodeOptions> = serde_json::from_str(file).unwrap_or_default();
        nodes.extend(configured);
    }
    Ok(nodes)
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let secret = Secret(Arc::new(RwLock::new("first".into())));
    let nodes = nodes(&secret)?;
    for node in &nodes {
        println!("{node:?}"); // where, and never the login
    }

    // What cannot be right is refused, in a line that repeats nothing of it.
    for url in ["redis://:p@ss@host:63790000", "redis://host?timeout=3", "redis://:p?w@host"] {
        if let Err(error) = Locker::single(url) {
            println!("{error}");
        }
    }

    let locker = Locker::quorum(nodes)?.connect_timeout(Duration::from_millis(500)).build()?;
    if std::env::args().nth(1).as_deref() == Some("connect") {
        match locker.ready(Duration::from_secs(2)).await {
            Ok(nodes) => nodes.iter().for_each(|node| println!("{node}")),
            Err(error) => println!("{error}"),
        }
    }
    Ok(())
}
