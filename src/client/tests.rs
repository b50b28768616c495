//! The client on a node in memory, under a paused clock.

use std::time::Duration;

use super::Client;
use crate::clock::{Clock, Moment};
use crate::testing::{Nodes, Reaction, When};

fn now() -> Moment {
    Clock::default().now()
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A node that answers `GET` so late, and a client that is connected to it.
async fn late(by: Duration) -> (Nodes, Client) {
    let nodes = Nodes::new(1);
    let client = Client::in_memory(std::sync::Arc::new(nodes.clone())).unwrap();
    assert!(client.command(["SET", "k", "v"]).await.unwrap().is_ok());
    nodes.add(When::before("GET").then(Reaction::Delay(by)));
    (nodes, client)
}

#[tokio::test(start_paused = true)]
async fn a_timeout_above_the_age_of_a_hung_nodes_replies_is_kept() {
    let (_nodes, client) = late(ms(7_000)).await;
    let client = client.timeout(ms(20_000));
    let began = now();
    assert_eq!(client.command(["GET", "k"]).await.unwrap().as_str(), Ok("v"));
    assert_eq!(now().since(began), ms(7_000));
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_never_comes_is_waited_for_until_the_timeout_and_no_longer() {
    let (nodes, client) = late(ms(60_000)).await;
    for (timeout, silent) in [(ms(500), "500 ms"), (ms(20_000), "20.0 s")] {
        let client = client.clone().timeout(timeout);
        let began = now();
        let error = client.command(["GET", "k"]).await.unwrap_err();
        assert!(error.is_unknown() && error.to_string().contains(silent), "{error}");
        let took = now().since(began);
        assert!(took >= timeout && took <= timeout + ms(1), "{took:?}");
        // The node is given up: the next command is sent on another connection.
        Clock::default().sleep_until(now().plus(ms(6_000))).await;
        assert!(client.command(["PING"]).await.is_ok());
    }
    drop(nodes);
}

/// Two callers share the connection: the patience of the second is its own.
#[tokio::test(start_paused = true)]
async fn a_long_timeout_is_kept_behind_a_command_that_was_given_up() {
    let (_nodes, client) = late(ms(7_000)).await;
    let patient = client.clone().timeout(ms(20_000));
    let began = now();
    let (short, long) = tokio::join!(client.command(["GET", "k"]), patient.command(["PING"]));
    assert!(short.unwrap_err().is_unknown());
    assert_eq!(long.unwrap().as_str(), Ok("PONG"));
    assert_eq!(now().since(began), ms(7_000));
}
