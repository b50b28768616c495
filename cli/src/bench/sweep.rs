//! Deleting the keys that a node may still hold.
//!
//! Every cycle releases its key. An error, a failed run or a late node may leave a key until its
//! TTL ends. The names of these keys are known, so no node has to be searched for them.

use std::time::Duration;

use quorlock::Client;
use tokio::task::JoinSet;

/// The keys' TTL: the library's default, so that the defaults derived from it are those that a user
/// gets.
pub(crate) const TTL: Duration = Duration::from_secs(10);

/// How long a node may take. If it does not answer, its keys stay until their TTL ends.
const PATIENCE: Duration = Duration::from_millis(500);

/// Keys in one command: few enough not to block the node.
const BATCH: usize = 100;

/// Keys that some node may still hold, as the nodes know them.
pub(crate) type Leftovers = Vec<Vec<u8>>;

/// Deletes these keys on every node that answers.
pub(crate) async fn delete(clients: Vec<Client>, keys: &[Vec<u8>]) {
    let mut nodes = JoinSet::new();
    for client in clients {
        let (client, keys) = (client.timeout(PATIENCE), keys.to_vec());
        nodes.spawn(async move {
            for batch in keys.chunks(BATCH) {
                let words = [&b"DEL"[..]].into_iter().chain(batch.iter().map(Vec::as_slice));
                if client.command(words).await.is_err() {
                    return;
                }
            }
        });
    }
    while nodes.join_next().await.is_some() {}
}
