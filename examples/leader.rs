//! One leader among three, and another when it is gone.
//!
//! ```sh
//! cargo run --example leader                           # on nodes of its own
//! cargo run --example leader -- redis://127.0.0.1:6379 # on yours
//! ```

#![expect(clippy::disallowed_methods, reason = "users have tasks; this library its driver")]

use std::error::Error;
use std::future::pending;
use std::time::Duration;

use quorlock::Locker;
use quorlock::recipe::Term;
use quorlock::testing::Node;
use tokio::sync::mpsc;

type Done<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// How long there is no leader when one has died without a word.
const TTL: Duration = Duration::from_millis(500);

#[tokio::main]
async fn main() -> Done<()> {
    let nodes = [Node::listen().await?, Node::listen().await?, Node::listen().await?];
    let mut urls: Vec<String> = std::env::args().skip(1).collect();
    if urls.is_empty() {
        urls = nodes.iter().filter_map(Node::url).collect();
    }
    let (say, mut said) = mpsc::channel(1);
    let mut candidates = Vec::new();
    for name in 0..3 {
        // As in processes of their own: each has a locker.
        let locker = Locker::quorum(&urls)?.prefix("example:").build()?;
        candidates.push(tokio::spawn(stand(locker, name, say.clone())));
    }
    let mut last = 0;
    for place in ["first", "second", "third"] {
        let (name, term) = said.recv().await.ok_or("none stands any more")?;
        println!("the {place} leader: its term is above the last, {}", term > last);
        last = term;
        // It is gone in the middle of its work; the next one leads.
        candidates[name].abort();
    }
    Ok(())
}

/// Stands for the role for as long as the process runs.
async fn stand(locker: Locker, name: usize, say: mpsc::Sender<(usize, u64)>) -> Done<()> {
    let work = |term: Term| {
        let say = say.clone();
        async move {
            say.send((name, term.fence().number())).await?;
            // What only a leader does. It is dropped when the lead is lost. A step that must not be
            // done by two asks `term.is_valid()`, and what it writes to compares the number.
            pending().await
        }
    };
    locker.elect("leader").ttl(TTL).lead(work).await
}
