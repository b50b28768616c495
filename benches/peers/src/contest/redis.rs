//! The `redis` crate: a multiplexed connection per node, shared by all callers.
//!
//! Each command is encoded once for all nodes, and no task is spawned: it is as fast as we know
//! how to write it. One thing is not equal, in its favour: a request whose future is dropped before
//! the connection's task has come to it is never sent. So the early quorum may ask fewer nodes than
//! all, and where it is the release that is not sent, the key stays until its time is up. The
//! record says how many do. The timeout of a response is the crate's default, for ours has one too.

use ::redis::aio::MultiplexedConnection;
use ::redis::io::tcp::TcpSettings;
use ::redis::{Client, Cmd, IntoConnectionInfo, RedisResult, TlsCertificates, Value};
use support::tls;

use super::on_tokio::Lock;
use super::wait::Wait;
use super::{COMPARE_AND_DELETE, DeleteBy, Failure, TTL};

#[derive(Clone)]
pub(crate) struct Redis {
    nodes: Vec<MultiplexedConnection>,
    wait: Wait,
    digest: String,
    by: DeleteBy,
}

/// A key and the value that shows whose it is.
pub(crate) struct Held {
    key: String,
    value: [u8; 20],
}

impl Redis {
    pub(crate) async fn connect(
        urls: &[String],
        wait: Wait,
        nodelay: bool,
        by: DeleteBy,
    ) -> Result<Self, Failure> {
        let mut nodes = Vec::new();
        let mut digest = String::new();
        for url in urls {
            let settings = TcpSettings::default().set_nodelay(nodelay);
            let info = url.as_str().into_connection_info()?.set_tcp_settings(settings);
            let client = match url.starts_with("rediss://") {
                true => Client::build_with_tls(info, trust())?,
                false => Client::open(info)?,
            };
            let mut node = client.get_multiplexed_async_connection().await?;
            let mut load = ::redis::cmd("SCRIPT");
            digest = load.arg("LOAD").arg(COMPARE_AND_DELETE).query_async(&mut node).await?;
            nodes.push(node);
        }
        Ok(Self { nodes, wait, digest, by })
    }

    /// Sends to all nodes, and waits until as many say `good` as are to be waited for.
    async fn ask(&mut self, command: &Cmd, good: &Value) -> Result<(), Failure> {
        let nodes = self.nodes.len();
        let asked = self.nodes.iter_mut().map(|node| node.send_packed_command(command));
        self.wait.gather(nodes, asked, |reply| says(reply, good)).await
    }
}

/// The same authority and the same cryptography as ours have.
fn trust() -> TlsCertificates {
    // A second call finds it done.
    let _ = rustls::crypto::ring::default_provider().install_default();
    TlsCertificates { client_tls: None, root_cert: Some(tls::authority().pem().into_bytes()) }
}

fn says(reply: &RedisResult<Value>, good: &Value) -> bool {
    reply.as_ref().is_ok_and(|reply| reply == good)
}

impl Lock for Redis {
    type Held = Held;

    async fn acquire(&mut self, key: &str) -> Result<Held, Failure> {
        let held = Held { key: key.to_owned(), value: rand::random() };
        let mut set = ::redis::cmd("SET");
        set.arg(key).arg(&held.value).arg("NX").arg("PX").arg(TTL.as_millis() as u64);
        self.ask(&set, &Value::Okay).await?;
        Ok(held)
    }

    async fn release(&mut self, held: Held) -> Result<(), Failure> {
        let mut delete = match self.by {
            DeleteBy::Script => ::redis::cmd("EVALSHA"),
            DeleteBy::Native => ::redis::cmd("DELIFEQ"),
        };
        if self.by == DeleteBy::Script {
            delete.arg(&self.digest).arg(1);
        }
        delete.arg(held.key).arg(&held.value);
        self.ask(&delete, &Value::Int(1)).await
    }
}
