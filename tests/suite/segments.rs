//! One hot key as several locks: tasks on different segments do not wait for each other, and tasks
//! on the same segment do.

use std::collections::BTreeMap;

use quorlock::{Client, LockGuard, Segments};
use support::{Fleet, Server, need_process, need_server};
use tokio::task::JoinSet;

use crate::{builder, connected};

const COUNT: u16 = 16;

/// Each of them, held.
async fn hold_each(stock: &Segments) -> Vec<LockGuard> {
    let mut guards = Vec::new();
    for number in 0..u64::from(stock.count()) {
        guards.push(stock.of(number).await.unwrap());
    }
    guards
}

#[tokio::test]
async fn segments_are_locks_of_their_own_names_and_exclude_nothing_else() {
    need_server!();
    let fleet = Fleet::start(3);
    let (ours, theirs) = (connected(builder(&fleet)).await, connected(builder(&fleet)).await);
    let stock = ours.segments("stock:7", COUNT);
    let guards = hold_each(&stock).await;
    for (number, guard) in guards.iter().enumerate() {
        assert_eq!(guard.key().to_string(), format!("stock:7/{number}"));
        assert!(theirs.lock(guard.key()).try_acquire().await.unwrap().is_none(), "a plain lock");
        let same = theirs.segments("stock:7", COUNT).of(number as u64 + 16 * 1_000_003);
        assert!(same.try_acquire().await.unwrap().is_none(), "the remainder counts");
    }
    for free in ["stock:7", "stock:7/16", "stock:71/1", "stock:7/01"] {
        assert!(theirs.lock(free).try_acquire().await.unwrap().is_some(), "{free}");
    }
    assert!(theirs.segments("stock:7", COUNT).all().try_acquire().await.unwrap().is_none());
    for guard in guards {
        assert!(guard.release().await.unwrap().is_released());
    }
    let all = theirs.segments("stock:7", COUNT).all().await.unwrap();
    assert!(all.is_valid() && all.keys().len() == usize::from(COUNT));
    assert!(stock.of(9).try_acquire().await.unwrap().is_none());
}

/// By bytes that every program hashes alike.
#[tokio::test]
async fn the_same_part_is_in_the_same_segment_everywhere() {
    need_server!();
    let fleet = Fleet::start(1);
    let stock = connected(builder(&fleet)).await.segments("stock:7", COUNT);
    // FNV-1a of 64 bits: …8c and …e8.
    for (part, key) in [("a", "stock:7/12"), ("foobar", "stock:7/8")] {
        assert_eq!(stock.of_part(part).await.unwrap().key().to_string(), key);
    }
    let mut parts = BTreeMap::<String, u32>::new();
    for customer in 0..1_600 {
        let guard = stock.of_part(format!("customer:{customer}")).await.unwrap();
        *parts.entry(guard.key().to_string()).or_default() += 1;
        assert!(guard.release().await.unwrap().is_released());
    }
    assert_eq!(parts.len(), usize::from(COUNT));
    assert!(parts.values().all(|count| (50..200).contains(count)), "{parts:?}");
}

#[tokio::test]
async fn what_cannot_be_is_refused_before_anything_is_sent() {
    need_server!();
    let fleet = Fleet::start(1);
    let locker = connected(builder(&fleet)).await;
    let cases = [
        (locker.segments("k", 0).of(7), "at least"),
        (locker.segments("k", 0).of_part("p"), "at least"),
        (locker.segments("k", 0).all(), "at least"),
        (locker.segments("k", 65).all(), "64"),
        (locker.segments("k".repeat(4_095), 16).of(3), "4096"),
    ];
    for (request, why) in cases {
        let error = request.await.unwrap_err();
        assert!(error.is_misuse() && error.to_string().replace(',', "").contains(why), "{error}");
    }
    assert!(fleet.holders("k/3").is_empty());
}

#[cfg(feature = "blocking")]
#[test]
fn a_plain_thread_takes_segments() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker = builder(&fleet).build_blocking().unwrap();
    let stock = locker.segments("stock:7", 4);
    let first = stock.of(1).acquire().unwrap();
    assert!(stock.of(5).try_acquire().unwrap().is_none());
    assert!(stock.of_part("foobar").try_acquire().unwrap().is_some());
    assert!(stock.all().try_acquire().unwrap().is_none() && stock.count() == 4);
    assert!(first.release().unwrap().is_released());
    assert_eq!(stock.all().acquire().unwrap().keys().len(), 4);
}

const PIECES: u32 = 320;
const BUYERS: u64 = 48;

/// Buys one piece: of the heap of its own segment or, where that is sold out, of the next one that
/// is not. It reads, and writes what it has computed: without the lock, a piece is sold twice.
async fn buy(stock: &Segments, store: &Client, buyer: u64) -> bool {
    for step in 0..u64::from(stock.count()) {
        let guard = stock.of(buyer + step).wait_forever().await.unwrap();
        let heap = format!("pieces:{}", guard.key());
        let left: u32 =
            store.command(["GET", &heap]).await.unwrap().as_str().unwrap().parse().unwrap();
        if left > 0 {
            store.command(["SET", &heap, &(left - 1).to_string()]).await.unwrap();
        }
        assert!(guard.release().await.unwrap().is_released());
        if left > 0 {
            return true;
        }
    }
    false
}

#[tokio::test]
async fn what_lies_on_several_heaps_is_sold_once_and_all_of_it() {
    need_process!();
    let (fleet, server) = (Fleet::start(3), Server::start());
    let store = Client::new(server.url_as("")).unwrap();
    let heap = PIECES / u32::from(COUNT);
    for segment in 0..COUNT {
        let pieces = format!("pieces:stock:7/{segment}");
        store.command(["SET", &pieces, &heap.to_string()]).await.unwrap();
    }
    let (mut lockers, mut buyers) = (Vec::new(), JoinSet::new());
    for _ in 0..4 {
        lockers.push(connected(builder(&fleet)).await);
    }
    for buyer in 0..BUYERS {
        let stock = lockers[buyer as usize % 4].segments("stock:7", COUNT);
        let store = store.clone();
        buyers.spawn(async move {
            let mut bought = 0;
            while buy(&stock, &store, buyer).await {
                bought += 1;
            }
            bought
        });
    }
    let bought: u32 = buyers.join_all().await.into_iter().sum();
    assert_eq!(bought, PIECES, "none twice, and none left");
}
