//! A hot key in sixteen segments: the stock of one article, which many buy at once.
//!
//! ```sh
//! cargo run --example segments                           # on nodes of its own
//! cargo run --example segments -- redis://127.0.0.1:6379 # on yours
//! ```

#![expect(clippy::disallowed_methods, reason = "users have real time; this library its clock")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use quorlock::Locker;
use quorlock::recipe::Gate;
use quorlock::testing::Node;
use tokio::task::JoinSet;

type Done<T> = Result<T, Box<dyn Error + Send + Sync>>;

const SEGMENTS: u16 = 16;

/// On each of the sixteen heaps.
const PIECES: u32 = 10;

/// More than there are pieces.
const CUSTOMERS: u32 = 400;

#[tokio::main]
async fn main() -> Done<()> {
    let nodes = [Node::listen().await?, Node::listen().await?, Node::listen().await?];
    let mut urls: Vec<String> = std::env::args().skip(1).collect();
    if urls.is_empty() {
        urls = nodes.iter().filter_map(Node::url).collect();
    }
    let locker = Locker::quorum(urls)?.prefix("example:").build()?;
    let heaps: Arc<[AtomicU32]> = (0..SEGMENTS).map(|_| AtomicU32::new(PIECES)).collect();
    // A crowd of customers does not become a crowd of commands: a hundred at once, in their order.
    let gate = Arc::new(Gate::new(2_000, Duration::from_secs(1))?.burst(100)?);
    let mut customers = JoinSet::new();
    for customer in 0..CUSTOMERS {
        let (locker, heaps, gate) = (locker.clone(), heaps.clone(), gate.clone());
        customers.spawn(async move {
            gate.pass().await;
            buy(&locker, &heaps, customer).await
        });
    }
    let mut sold = 0;
    while let Some(bought) = customers.join_next().await {
        sold += u32::from(bought??);
    }
    let left: u32 = heaps.iter().map(|heap| heap.load(Ordering::SeqCst)).sum();
    println!("{sold} sold and {left} left of {}", PIECES * u32::from(SEGMENTS));
    Ok(())
}

/// Takes a piece from the customer's heap, or from the next one that has any.
async fn buy(locker: &Locker, heaps: &[AtomicU32], customer: u32) -> Result<bool, quorlock::Error> {
    let stock = locker.segments("stock:7", SEGMENTS);
    for step in 0..SEGMENTS {
        let segment = (customer as usize + usize::from(step)) % usize::from(SEGMENTS);
        let guard = stock.of(segment as u64).await?;
        let heap = &heaps[segment];
        // Read and write, as in a database: under the lock of this heap none does it beside us.
        let left = heap.load(Ordering::SeqCst);
        tokio::time::sleep(Duration::from_micros(200)).await;
        if left > 0 && guard.is_valid() {
            heap.store(left - 1, Ordering::SeqCst);
            return Ok(true);
        }
    }
    Ok(false)
}
