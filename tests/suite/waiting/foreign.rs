//! Holders of other libraries, and holders that die: nothing hands the lock over.

use quorlock::{Locker, Retry};
use support::wait::PATIENCE;
use support::{Fleet, Reply, Watchdog, eventually_async, need_process};
use tokio::time::Instant;

use super::{hasty, listening, queued, wait, waits};

/// One that does not find the lock free by polling.
async fn patient(fleet: &Fleet) -> Locker {
    let builder = hasty(fleet.urls(), "waiter").node_timeout(PATIENCE);
    listening(builder.retry(Retry::fixed(12 * PATIENCE))).await
}

fn hold(fleet: &Fleet, value: &[u8]) {
    for set in fleet.command(&[b"SET".as_slice(), b"k", value, b"NX", b"PX", b"60000"]) {
        assert_eq!(set, Reply::ok());
    }
}

/// As rslock, node-redlock and others release.
const COMPARE_AND_DELETE: &str =
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";

#[tokio::test]
async fn a_lock_that_another_library_releases_is_taken_without_polling() {
    need_process!();
    let fleet = Fleet::start(5);
    let waiter = patient(&fleet).await;
    let none = || Some("0".to_owned());
    let random: Vec<u8> = (0..20).map(|byte| (byte * 13) ^ 0xa5).collect();
    // Whoever it names, there is none such.
    let of_none: Vec<u8> = [b"ab".repeat(20).as_slice(), b"@nobody"].concat();
    let releases: [(&[u8], &[&[u8]]); 6] = [
        (b"of another client", &[b"DEL", b"k"]),
        (b"", &[b"UNLINK", b"k"]),
        (&of_none, &[b"DEL", b"k"]),
        (b"renamed", &[b"RENAME", b"k", b"other"]),
        (b"ended", &[b"PEXPIRE", b"k", b"1"]),
        (&random, &[b"EVAL", COMPARE_AND_DELETE.as_bytes(), b"1", b"k", &random]),
    ];
    for (value, release) in releases {
        let _watchdog = Watchdog::new(format!("a release by {release:?}"));
        hold(&fleet, value);
        let woken = waiter.stats().changed;
        let waiting = wait(&waiter, "k");
        waits(&fleet, "k", 1).await;
        let tracked = async || fleet.iter().any(|it| it.info("tracking_total_keys") != none());
        eventually_async("a node tells when the key changes", tracked).await;
        fleet.command(release);
        let guard = waiting.await.unwrap();
        assert!(guard.is_valid() && fleet.holders("k").len() >= 3);
        assert!(guard.release().await.unwrap().is_released());
        // A majority has told the outcome; a node that is late is still to let go of the key.
        let is_free = async || fleet.holders("k").is_empty();
        eventually_async("each node has let go of the key", is_free).await;
        assert_eq!(queued(&fleet, "k"), 0);
        let stats = waiter.stats();
        assert!(stats.changed > woken && stats.handed_over == 0, "{release:?}: {stats:?}");
    }
}

#[tokio::test]
async fn case_25_a_holder_that_dies_among_200_000_other_keys_with_an_end_is_followed() {
    need_process!();
    let fleet = Fleet::start(5);
    let others = "for n = ARGV[1], ARGV[1] + 9999 do \
                  redis.call('SET', 'other:' .. n, '', 'PX', 3600000 + n) end";
    std::thread::scope(|scope| {
        for server in &fleet {
            scope.spawn(|| {
                for first in (0..200_000).step_by(10_000) {
                    server.command(&["EVAL", others, "0", &first.to_string()]);
                }
            });
        }
    });
    let waiter = patient(&fleet).await;
    for server in &fleet {
        let set = server.command(&["SET", "k", "of a dead client", "NX", "PX", "700"]);
        assert_eq!(set, Reply::ok());
    }
    let _watchdog = Watchdog::new("the end of the key");
    let began = Instant::now();
    let guard = wait(&waiter, "k").await.unwrap();
    assert!(guard.is_valid() && fleet.holders("k").len() >= 3);
    println!("{:?} after it was set for 700 ms: {:?}", began.elapsed(), waiter.stats());
    assert!(guard.release().await.unwrap().is_released());
    let counts = fleet.command(&["DBSIZE"]);
    assert!(counts.iter().all(|count| count.int() >= 200_000), "{counts:?}");
}
