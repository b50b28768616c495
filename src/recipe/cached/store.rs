//! Where a cache keeps its values: a trait, and a server by our own client.

use std::future::Future;
use std::time::Duration;

use crate::client::Client;
use crate::recipe::store_error::StoreError;

/// Where a [`Cached`](super::Cached) keeps its values.
///
/// Each value is some bytes that mean nothing to the store, and is gone when its time is over: for
/// all processes at the same time, and by the clock of the store.
pub trait Store: Send + Sync + 'static {
    /// The value that stands under this key, and how long it stays.
    fn get(&self, key: &[u8]) -> impl Future<Output = Result<Option<Stored>, StoreError>> + Send;

    /// Puts a value under this key, for so long: whole milliseconds, one at least.
    fn put(
        &self,
        key: &[u8],
        value: &[u8],
        life: Duration,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// A value in a [`Store`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    /// Its bytes, as they were put there.
    pub value: Vec<u8>,
    /// How long it stays from now on.
    pub remaining: Duration,
}

/// `GET` and `PTTL` in one round trip; `SET` with `PX`.
impl Store for Client {
    async fn get(&self, key: &[u8]) -> Result<Option<Stored>, StoreError> {
        let mut both = self.pipeline();
        both.command([b"GET", key]).command([b"PTTL".as_slice(), key]);
        let mut replies = both.run().await?.into_iter().map(StoreError::check);
        let (Some(value), Some(left)) = (replies.next(), replies.next()) else { return Ok(None) };
        let (value, left) = (value?, left?);
        if value.is_null() {
            return Ok(None);
        }
        let left = match left.as_integer() {
            Ok(-2) => return Ok(None), // gone between the two
            Ok(-1) => return Err(StoreError::Unexpected("a value without an end".into())),
            left => left.ok().and_then(|left| u64::try_from(left).ok()).unwrap_or_default(),
        };
        match value.as_bytes() {
            Ok(bytes) => {
                let remaining = Duration::from_millis(left);
                Ok(Some(Stored { value: bytes.to_vec(), remaining }))
            }
            Err(_) => Err(StoreError::unexpected(&value)),
        }
    }

    async fn put(&self, key: &[u8], value: &[u8], life: Duration) -> Result<(), StoreError> {
        let life = life.as_millis().to_string();
        let words = [b"SET".as_slice(), key, value, b"PX", life.as_bytes()];
        StoreError::check(self.command(words).await?).map(drop)
    }
}
