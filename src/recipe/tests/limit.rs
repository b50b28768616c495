//! `Gate`, and what a limit refuses. What passes a limit is decided by its script, which real
//! servers run: `tests/suite/limit.rs`.

use std::time::Duration;

use super::ms;
use crate::client::Client;
use crate::clock::Clock;
use crate::recipe::{Gate, Limit};

#[tokio::test(start_paused = true)]
async fn a_burst_passes_at_once_and_the_rest_evenly_in_their_order() {
    let gate = Gate::new(10, ms(1_000)).unwrap().burst(3).unwrap();
    let clock = Clock::default();
    let began = clock.now();
    let mut passed = Vec::new();
    for _ in 0..6 {
        gate.pass().await;
        passed.push(clock.now().since(began).as_millis());
    }
    assert_eq!(passed, [0, 0, 0, 100, 200, 300]);
    clock.sleep_until(clock.now().plus(ms(10_000))).await;
    let began = clock.now();
    for _ in 0..4 {
        gate.pass().await;
    }
    let took = clock.now().since(began);
    assert!(took >= ms(100) && took < ms(103), "no more than a burst was saved up: {took:?}");
}

#[tokio::test(start_paused = true)]
async fn who_comes_first_passes_first_and_who_leaves_keeps_the_place_taken() {
    let gate = Gate::new(1, ms(100)).unwrap();
    gate.pass().await;
    let (second, third) = (gate.pass(), gate.pass());
    tokio::pin!(second, third);
    tokio::select! {
        biased;
        () = &mut second => unreachable!(),
        () = &mut third => panic!("the second comes first"),
        () = super::pass(ms(50)) => {}
    }
    let clock = Clock::default();
    let began = clock.now();
    third.await;
    let took = clock.now().since(began);
    assert!(took >= ms(150) && took < ms(153), "{took:?}");
}

#[tokio::test]
async fn what_cannot_be_is_said() {
    let client = Client::new("redis://127.0.0.1:1").unwrap();
    let limit = |count, per| Limit::new(client.clone(), "k", count, per);
    for (count, per) in [(0, ms(1)), (2, Duration::from_micros(1)), (1, Duration::ZERO)] {
        let error = limit(count, per).unwrap_err();
        assert!(error.is_misuse() && error.to_string().contains("give at least 1"), "{error}");
        assert!(Gate::new(count, per).is_err());
    }
    let years = Duration::from_secs(400 * 24 * 60 * 60);
    assert!(limit(1, years).unwrap_err().to_string().contains("in a year"));
    // A rate that is no whole number of microseconds is a little lower, and never higher.
    let debug = format!("{:?}", limit(600_000, ms(1_000)).unwrap());
    assert!(debug.contains("interval: 2µs"), "{debug}");
    let three = limit(3, ms(1_000)).unwrap();
    assert!(format!("{three:?}").contains("interval: 333.334ms"), "{three:?}");
    assert!(three.clone().burst(0).unwrap_err().is_misuse());
    let error = three.take_many(4).await.unwrap_err().to_string();
    assert!(error.contains("4 at once can never pass; the burst is 3"), "{error}");
    assert!(Limit::new(client, "", 1, ms(1)).unwrap_err().is_misuse());
}
