//! At most so many in so much time, as real servers count.

use std::time::Duration;

use quorlock::Client;
use quorlock::recipe::{Limit, StoreError, Taken};
use support::{Server, eventually, need_process};

fn limit(server: &Server, count: u32, per: Duration) -> Limit {
    Limit::new(Client::new(server.url()).unwrap(), "k", count, per).unwrap()
}

const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test]
async fn a_burst_passes_and_then_it_is_said_when() {
    need_process!();
    let server = Server::start();
    let limit = limit(&server, 4, HOUR);
    for more in [3, 2, 1] {
        assert!(matches!(limit.take().await, Ok(Taken::Passed { left, .. }) if left == more));
    }
    let stats = server.command(&["INFO", "commandstats"]).text();
    assert!(stats.contains("cmdstat_eval:calls=1,"), "by its digest from then on: {stats}");
    // Together, all or none.
    let Ok(Taken::Limited { retry_after, .. }) = limit.take_many(2).await else { panic!() };
    assert!(retry_after > HOUR / 5 && retry_after <= HOUR / 4, "{retry_after:?}");
    assert!(matches!(limit.take().await, Ok(Taken::Passed { left: 0, .. })));
    assert!(matches!(limit.take().await, Ok(Taken::Limited { .. })));
    let left = server.command(&["PTTL", "k"]).int();
    assert!((3_500_000..=3_600_000).contains(&left), "as long as it says anything: {left}");
    // A server that has forgotten all of it lets one burst more pass, and its script is brought.
    server.command(&["FLUSHALL"]);
    server.command(&["SCRIPT", "FLUSH"]);
    assert!(matches!(limit.take_many(4).await, Ok(Taken::Passed { left: 0, .. })));
    assert!(matches!(limit.take().await, Ok(Taken::Limited { .. })));
}

#[tokio::test]
async fn what_has_passed_is_forgotten_when_it_does_not_matter_any_more() {
    need_process!();
    let server = Server::start();
    let limit = limit(&server, 2, Duration::from_millis(200));
    assert!(matches!(limit.take_many(2).await, Ok(Taken::Passed { .. })));
    eventually("the key to expire", || server.command(&["EXISTS", "k"]).int() == 0);
    assert!(matches!(limit.take_many(2).await, Ok(Taken::Passed { left: 0, .. })));
}

#[tokio::test]
async fn a_key_that_holds_something_else_is_left_as_it_is() {
    need_process!();
    let server = Server::start();
    let limit = limit(&server, 2, HOUR);
    for (foreign, said) in
        [(["SET", "k", "v"], "something else"), (["RPUSH", "k", "v"], "WRONGTYPE")]
    {
        server.command(&foreign);
        let error = limit.take().await.unwrap_err();
        assert!(matches!(&error, StoreError::Rejected(what) if what.contains(said)), "{error}");
        server.command(&["DEL", "k"]);
    }
    assert!(matches!(limit.take().await, Ok(Taken::Passed { .. })));
}
