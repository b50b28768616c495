//! A page that takes long to render, under load: it is rendered once for all who ask.
//!
//! ```sh
//! cargo run --example cached_page                           # on nodes of its own
//! cargo run --example cached_page -- redis://127.0.0.1:6379 # on yours; the first keeps the page
//! ```

#![expect(clippy::disallowed_methods, reason = "users have real time; this library its clock")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use quorlock::recipe::Cached;
use quorlock::testing::Node;
use quorlock::{Client, Locker};
use tokio::task::JoinSet;

type Done<T> = Result<T, Box<dyn Error + Send + Sync>>;

const PROCESSES: usize = 4;
const CALLERS: usize = 50;

#[tokio::main]
async fn main() -> Done<()> {
    let nodes = [Node::listen().await?, Node::listen().await?, Node::listen().await?];
    let mut urls: Vec<String> = std::env::args().skip(1).collect();
    if urls.is_empty() {
        urls = nodes.iter().filter_map(Node::url).collect();
    }
    let store = urls.first().ok_or("no node")?.clone();
    let rendered = Arc::new(AtomicU32::new(0));
    let mut callers = JoinSet::new();
    for _ in 0..PROCESSES {
        // As in processes of their own: each has a locker, and a client for its cache.
        let locker = Locker::quorum(&urls)?.prefix("example:lock:").build()?;
        let cache = Cached::new(Client::new(store.as_str())?, locker);
        for _ in 0..CALLERS {
            let (cache, rendered) = (cache.clone(), rendered.clone());
            callers.spawn(async move {
                // One second, for the example; more or less by a tenth, so that pages that are
                // rendered together are not rendered again together.
                let page = cache.get("example:page", Duration::from_secs(1), || render(&rendered));
                page.await.map(|page| page.map_or(0, |page| page.len()))
            });
        }
    }
    let mut served = 0;
    while let Some(page) = callers.join_next().await {
        served += usize::from(page?? > 0);
    }
    let rendered = rendered.load(Ordering::SeqCst);
    println!("{served} of {} served, rendered {rendered} time", PROCESSES * CALLERS);
    Ok(())
}

/// `None` would say that there is no such page, and be remembered too.
async fn render(rendered: &AtomicU32) -> Result<Option<Vec<u8>>, std::io::Error> {
    rendered.fetch_add(1, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(100)).await;
    Ok(Some(b"<h1>Hello</h1>".to_vec()))
}
