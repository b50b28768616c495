//! The `fred` crate: a client per node, shared by all callers; it pipelines by itself.
//!
//! Its parser has no copy to make of what it is sent as [`Bytes`], and RESP2 is its default. It has
//! no timeout of a response by default and is given none, which is in its favour.

use ::fred::bytes::Bytes;
use ::fred::prelude::*;

use super::on_tokio::Lock;
use super::wait::Wait;
use super::{COMPARE_AND_DELETE, Failure, TTL};

#[derive(Clone)]
pub(crate) struct Fred {
    nodes: Vec<Client>,
    wait: Wait,
    digest: String,
}

/// A key and the value that shows whose it is.
pub(crate) struct Held {
    key: Bytes,
    value: Bytes,
}

impl Fred {
    pub(crate) async fn connect(
        urls: &[String],
        wait: Wait,
        nodelay: bool,
    ) -> Result<Self, Failure> {
        let mut nodes = Vec::new();
        let mut digest = String::new();
        for url in urls {
            let mut builder = Builder::from_config(Config::from_url(url)?);
            builder.with_connection_config(|it| it.tcp.nodelay = Some(nodelay));
            let node = builder.build()?;
            node.init().await?;
            digest = node.script_load(COMPARE_AND_DELETE).await?;
            nodes.push(node);
        }
        Ok(Self { nodes, wait, digest })
    }
}

impl Lock for Fred {
    type Held = Held;

    async fn acquire(&mut self, key: &str) -> Result<Held, Failure> {
        let key = Bytes::copy_from_slice(key.as_bytes());
        let held = Held { key, value: Bytes::from_owner(rand::random::<[u8; 20]>()) };
        let expire = || Some(Expiration::PX(TTL.as_millis() as i64));
        let asked = self.nodes.iter().map(|node| {
            let (key, value) = (held.key.clone(), held.value.clone());
            node.set::<Value, _, _>(key, value, expire(), Some(SetOptions::NX), false)
        });
        let good = |reply: &Result<Value, Error>| reply.as_ref().is_ok_and(Value::is_ok);
        self.wait.gather(self.nodes.len(), asked, good).await?;
        Ok(held)
    }

    async fn release(&mut self, held: Held) -> Result<(), Failure> {
        let asked = self.nodes.iter().map(|node| {
            let (key, value) = (held.key.clone(), held.value.clone());
            node.evalsha::<Value, _, _, _>(self.digest.as_str(), key, value)
        });
        let good = |reply: &Result<Value, Error>| matches!(reply, Ok(Value::Integer(1)));
        self.wait.gather(self.nodes.len(), asked, good).await
    }
}
