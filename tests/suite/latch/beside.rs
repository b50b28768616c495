//! Latches and barriers beside everything else: what the manual's table says goes with them.

use std::time::Duration;

use quorlock::{Client, Durability};
use support::wait::PATIENCE;
use support::{Fleet, need_server};
use tokio::time::timeout;

use super::{MOMENT, latch};
use crate::{builder, connected};

#[tokio::test]
async fn on_servers_that_may_forget_they_open_as_well() {
    need_server!();
    let fleet = Fleet::start(3);
    let durability = Durability::Volatile { longest_ttl: Duration::from_secs(30) };
    let locker = connected(builder(&fleet).durability(durability)).await;
    locker.initialise().await.unwrap();
    let latch = locker.latch("l", 2).unwrap().ttl(Duration::from_secs(20)).unwrap();
    assert!(!latch.arrive("a").await.unwrap().is_open());
    assert!(latch.arrive("b").await.unwrap().is_open());
    latch.wait().await.unwrap();
    let barrier = || locker.barrier("b", 2).unwrap().ttl(Duration::from_secs(20)).unwrap();
    let (mut one, mut two) = (barrier(), barrier());
    for round in 0..3 {
        let (passed, beside) = tokio::join!(one.pass("one"), two.pass("two"));
        assert_eq!((passed.unwrap(), beside.unwrap()), (round, round));
    }
}

/// On the same server, and each gets the answers to its own commands.
#[tokio::test]
async fn a_client_beside_them_changes_neither() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker = connected(builder(&fleet)).await;
    let client = Client::new(fleet[0].url_as("")).unwrap().timeout(PATIENCE);
    for round in 1..=50 {
        let latch = locker.latch(format!("l:{round}"), 2).unwrap();
        assert!(!latch.arrive("a").await.unwrap().is_open());
        let nonce = format!("nonce-{round}");
        let echoed = client.command(["ECHO", &nonce]).await.unwrap();
        assert_eq!(echoed.as_bytes().unwrap(), nonce.as_bytes());
        assert!(latch.arrive("b").await.unwrap().is_open());
    }
}

/// Nothing of a latch is its locker's own.
#[tokio::test]
async fn a_shutdown_keeps_arrivals_and_ends_its_own_waits() {
    need_server!();
    let fleet = Fleet::start(3);
    let leaving = connected(builder(&fleet)).await;
    let theirs = leaving.latch("l", 2).unwrap();
    assert!(!theirs.arrive("a").await.unwrap().is_open());
    let mut waiting = tokio::spawn({
        let theirs = theirs.clone();
        async move { theirs.wait().await }
    });
    assert!(timeout(MOMENT, &mut waiting).await.is_err(), "it waits");
    let found = leaving.shutdown(PATIENCE).await.unwrap();
    assert!(found.left.is_empty() && found.owed == 0, "{found:?}");
    let told = timeout(PATIENCE, waiting).await.expect("it is told").unwrap();
    assert!(told.unwrap_err().is_closed());
    assert!(latch(&fleet, 2).await.arrive("b").await.unwrap().is_open());
}
