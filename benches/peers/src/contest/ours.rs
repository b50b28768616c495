//! This library, with its defaults.

use std::time::Duration;

use quorlock::{LockGuard, Locker, Outcome};

use super::Failure;
use super::on_tokio::Lock;

#[derive(Clone)]
pub(crate) struct Ours(Locker);

impl Ours {
    /// Connects. `direct_writes` is an option under study; none is the default.
    pub(crate) async fn connect(
        urls: &[String],
        direct_writes: Option<usize>,
    ) -> Result<Self, Failure> {
        let mut builder = Locker::quorum(urls)?;
        if let Some(outstanding) = direct_writes {
            builder = builder.direct_writes(outstanding);
        }
        let locker = builder.build()?;
        let nodes = locker.ready(Duration::from_secs(5)).await?;
        match nodes.iter().all(|node| !matches!(node.outcome, Outcome::Down { .. })) {
            true => Ok(Self(locker)),
            false => Err(format!("not every node is usable: {nodes:?}").into()),
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
}
