//! A stock counter under one lock, and as sixteen heaps under the segments of one: how many pieces
//! 64 buyers buy a second. A record, and not a test.
//!
//! `cargo bench -p quorlock --bench segments` prints a table in Markdown; it takes about a minute.
//! `QUORLOCK_ROUNDS` sets another number of rounds. The one lock stands twice: what differs between
//! those two rows is the machine's noise.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "it measures real time, runs buyers as tasks, and ends when it cannot be set up"
)]

use std::time::{Duration, Instant};

use quorlock::{Client, Locker, Segments};
use support::{Fleet, Server, tools};
use tokio::runtime::Builder;
use tokio::task::JoinSet;

/// The lockers, each as in a process of its own, and the buyers of each.
const LOCKERS: u64 = 8;
const BUYERS: u64 = 8;

/// What a buyer buys in a round.
const PIECES: u64 = 10;

/// The heaps, and their segments.
const CONTENDERS: [(&str, u16); 4] =
    [("one lock", 1), ("one lock, again", 1), ("4 segments", 4), ("16 segments", 16)];

fn main() {
    if let Err(why) = tools::find_server() {
        println!("skipped: {why}");
        return;
    }
    let rounds = std::env::var("QUORLOCK_ROUNDS").ok().map_or(11, |rounds| rounds.parse().unwrap());
    let (fleet, server) = (Fleet::start(5), Server::start());
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let mut rates: [Vec<f64>; CONTENDERS.len()] = Default::default();
    runtime.block_on(async {
        let store = Client::new(server.url_as("")).unwrap();
        let mut lockers = Vec::new();
        for _ in 0..LOCKERS {
            let locker = Locker::quorum(fleet.urls()).unwrap().build().unwrap();
            locker.ready(Duration::from_secs(5)).await.unwrap();
            lockers.push(locker);
        }
        // The first round warms up, and brings the servers the scripts.
        for round in 0..=rounds {
            for turn in 0..CONTENDERS.len() {
                let index = (round + turn) % CONTENDERS.len();
                let rate = sell(&lockers, &store, CONTENDERS[index].1).await;
                if round > 0 {
                    rates[index].push(rate);
                }
            }
        }
    });
    rates.iter_mut().for_each(|rates| rates.sort_unstable_by(f64::total_cmp));
    println!("| 5 nodes, 64 buyers | pieces a second | least and most | beside one lock |");
    println!("|---|---:|---:|---:|");
    let middle = |rates: &[f64]| rates[rates.len() / 2];
    for ((name, _), all) in CONTENDERS.iter().zip(&rates) {
        println!(
            "| {name} | {:.0} | {:.0} to {:.0} | {:.2} |",
            middle(all),
            all[0],
            all[all.len() - 1],
            middle(all) / middle(&rates[0]),
        );
    }
}

/// Has all buyers buy, and counts that each piece was sold once. Returns how many a second were.
async fn sell(lockers: &[Locker], store: &Client, segments: u16) -> f64 {
    let sold = LOCKERS * BUYERS * PIECES;
    for segment in 0..segments {
        let heap = format!("pieces:stock/{segment}");
        store.command(["SET", &heap, &sold.to_string()]).await.unwrap();
    }
    let (began, mut buyers) = (Instant::now(), JoinSet::new());
    for buyer in 0..LOCKERS * BUYERS {
        let stock = lockers[(buyer % LOCKERS) as usize].segments("stock", segments);
        let store = store.clone();
        buyers.spawn(async move {
            for _ in 0..PIECES {
                buy(&stock, &store, buyer).await;
            }
        });
    }
    buyers.join_all().await;
    let took = began.elapsed();
    let mut left = 0;
    for segment in 0..segments {
        left += pieces(store, &format!("pieces:stock/{segment}")).await;
    }
    assert_eq!(left, sold * (u64::from(segments) - 1), "each piece was sold once");
    sold as f64 / took.as_secs_f64()
}

async fn buy(stock: &Segments, store: &Client, buyer: u64) {
    let guard = stock.of(buyer).wait_forever().await.unwrap();
    let heap = format!("pieces:{}", guard.key());
    let left = pieces(store, &heap).await;
    store.command(["SET", &heap, &(left - 1).to_string()]).await.unwrap();
    assert!(guard.release().await.unwrap().is_released());
}

async fn pieces(store: &Client, heap: &str) -> u64 {
    store.command(["GET", heap]).await.unwrap().as_str().unwrap().parse().unwrap()
}
