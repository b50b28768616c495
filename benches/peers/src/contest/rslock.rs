//! The `rslock` crate, with its defaults.

use ::rslock::LockManager;

use super::on_tokio::Lock;
use super::{Failure, TTL};

#[derive(Clone)]
pub(crate) struct Rslock(LockManager);

impl Rslock {
    /// Connects, by a lock that is taken and released.
    pub(crate) async fn connect(urls: &[String]) -> Result<Self, Failure> {
        let mut lock = Self(LockManager::new(urls.to_vec()));
        let held = lock.acquire("bench:first").await?;
        lock.release(held).await?;
        Ok(lock)
    }
}

impl Lock for Rslock {
    type Held = ::rslock::Lock;

    async fn acquire(&mut self, key: &str) -> Result<::rslock::Lock, Failure> {
        Ok(self.0.lock(key.as_bytes(), TTL).await?)
    }

    /// It does not tell what it found; that no key is left is asserted after each round.
    async fn release(&mut self, lock: ::rslock::Lock) -> Result<(), Failure> {
        self.0.unlock(&lock).await;
        Ok(())
    }
}
