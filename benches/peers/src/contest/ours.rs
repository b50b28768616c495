//! This library, with its defaults.

use std::time::Duration;

use quorlock::{LockGuard, Locker, Tls, report::Outcome};
use support::tls;

use super::on_tokio::Lock;
use super::{DeleteBy, Failure};
use crate::args::Args;

/// How long the nodes may take to be connected.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub(crate) struct Ours(Locker);

impl Ours {
    /// Connects, with the defaults but for the options under study.
    pub(crate) async fn connect(
        urls: &[String],
        args: &Args,
        by: DeleteBy,
    ) -> Result<Self, Failure> {
        let native = by == DeleteBy::Native;
        let mut builder = Locker::quorum(urls)?.native_commands(native);
        if urls.iter().any(|url| url.starts_with("rediss://")) {
            builder = builder.tls(Tls::new().ca_pem(tls::authority().pem()));
        }
        if let Some(outstanding) = args.direct_writes {
            builder = builder.direct_writes(outstanding);
        }
        if let Some(deadline) = args.node_timeout {
            builder = builder.node_timeout(deadline);
        }
        let mut ours = Self(builder.build()?);
        ours.recover().await?;
        match ours.0.health().iter().all(|node| node.deletes_natively == native) {
            true => Ok(ours),
            false => Err("a node that does not know `DELIFEQ`".into()),
        }
    }
}

impl Lock for Ours {
    type Held = LockGuard;

    async fn acquire(&mut self, key: &str) -> Result<LockGuard, Failure> {
        Ok(self.0.lock(key).await?)
    }

    async fn release(&mut self, guard: LockGuard) -> Result<(), Failure> {
        let found = guard.release().await?;
        if found.is_released() { Ok(()) } else { Err(format!("not released: {found:?}").into()) }
    }

    async fn recover(&mut self) -> Result<(), Failure> {
        let nodes = self.0.ready(PATIENCE).await?;
        match nodes.iter().all(|node| node.outcome == Outcome::Connected) {
            true => Ok(()),
            false => Err(format!("not every node is usable: {nodes:?}").into()),
        }
    }
}
