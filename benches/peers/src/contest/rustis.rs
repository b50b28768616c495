//! The `rustis` crate: a client per node, shared by all callers; it pipelines by itself.
//!
//! Each command is encoded once for all nodes: a copy of it is a reference. It has no timeout of a
//! response by default and is given none, which is in its favour.

use ::rustis::client::{Client, IntoConfig};
use ::rustis::commands::ScriptingCommands;
use ::rustis::resp::{Command, Value, cmd};

use super::on_tokio::Lock;
use super::wait::Wait;
use super::{COMPARE_AND_DELETE, Failure, TTL};

#[derive(Clone)]
pub(crate) struct Rustis {
    nodes: Vec<Client>,
    wait: Wait,
    digest: String,
}

/// A key and the value that shows whose it is.
pub(crate) struct Held {
    key: String,
    value: String,
}

impl Rustis {
    pub(crate) async fn connect(
        urls: &[String],
        wait: Wait,
        nodelay: bool,
    ) -> Result<Self, Failure> {
        let mut nodes = Vec::new();
        let mut digest = String::new();
        for url in urls {
            let mut config = url.as_str().into_config()?;
            config.no_delay = nodelay;
            let node = Client::connect(config).await?;
            digest = node.script_load(COMPARE_AND_DELETE).await?;
            nodes.push(node);
        }
        Ok(Self { nodes, wait, digest })
    }

    /// Sends to all nodes, and waits until as many say `good` as are to be waited for.
    async fn ask(&self, command: Command, good: &Value) -> Result<(), Failure> {
        let asked = self.nodes.iter().map(|node| node.send::<Value>(command.clone(), None));
        let is_good = |reply: &::rustis::Result<Value>| reply.as_ref().is_ok_and(|it| it == good);
        self.wait.gather(self.nodes.len(), asked, is_good).await
    }
}

impl Lock for Rustis {
    type Held = Held;

    async fn acquire(&mut self, key: &str) -> Result<Held, Failure> {
        let value = format!("{:032x}", rand::random::<u128>());
        let held = Held { key: key.to_owned(), value };
        let ttl_ms = TTL.as_millis() as u64;
        let set = cmd("SET").key(key).arg(&held.value).arg("NX").arg("PX").arg(ttl_ms);
        self.ask(set.into(), &Value::SimpleString("OK".into())).await?;
        Ok(held)
    }

    async fn release(&mut self, held: Held) -> Result<(), Failure> {
        let delete = cmd("EVALSHA").arg(&self.digest).key_with_count(held.key).arg(held.value);
        self.ask(delete.into(), &Value::Integer(1)).await
    }
}
