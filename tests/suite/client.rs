//! The protocol-level client.

use quorlock::{Client, Frame};
use support::wait::PATIENCE;
use support::{PollTimes, Script, Scripted, Server, need_server, poll_times};

/// A client that a busy machine does not make give up.
fn patient(url: String) -> Client {
    Client::new(url).unwrap().timeout(PATIENCE)
}

#[tokio::test]
async fn commands_and_pipelines_are_answered_in_order() {
    need_server!();
    let server = Server::start();
    let client = patient(server.url_as(""));
    assert!(client.command(["SET", "k", "v"]).await.unwrap().is_ok());
    assert_eq!(client.command(["GET", "k"]).await.unwrap().as_str(), Ok("v"));
    assert!(client.command(["GET", "none"]).await.unwrap().is_null());
    let error = client.command(["INCR", "k"]).await.unwrap();
    assert!(matches!(error, Frame::Error(_)), "an error of the server is a reply");

    let mut pipeline = client.pipeline();
    for _ in 0..100 {
        pipeline.command(["INCR", "n"]);
    }
    let replies = pipeline.run().await.unwrap();
    let counted: Vec<_> = replies.iter().map(|reply| reply.as_integer().unwrap()).collect();
    assert_eq!(counted, (1..=100).collect::<Vec<_>>());
}

#[tokio::test]
async fn large_values_pass_both_ways() {
    need_server!();
    let server = Server::start();
    let client = patient(server.url_as(""));
    let value = vec![b'x'; 3 << 20];
    assert!(client.command([&b"SET"[..], b"k", &value]).await.unwrap().is_ok());
    assert_eq!(client.command(["GET", "k"]).await.unwrap().as_bytes(), Ok(&value[..]));
}

/// Thousands of requests, many of them dropped at some poll: every reply belongs to its request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_requests_reply_reaches_no_other_caller() {
    need_server!();
    let server = Server::start();
    let client = patient(server.url_as(""));
    let tasks: Vec<_> = (0..16)
        .map(|task| {
            let client = client.clone();
            tokio::spawn(async move {
                for round in 0..500 {
                    let nonce = format!("{task}:{round}");
                    let echo = client.command(["ECHO", &nonce]);
                    let polls = if round % 3 == 0 { round % 4 } else { 64 };
                    if let PollTimes::Completed(reply) = poll_times(echo, polls).await {
                        assert_eq!(reply.unwrap().as_str(), Ok(&*nonce));
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn a_command_without_a_reply_is_unknown_and_one_that_was_not_sent_is_unavailable() {
    let server = Scripted::start(Script::greeting().expect("INCR").cut());
    let client = patient(server.url());
    let error = client.command(["INCR", "n"]).await.unwrap_err();
    assert!(error.is_unknown(), "{error}");
    assert!(error.to_string().contains("closed the connection"), "{error}");

    let nowhere = Client::new("redis://127.0.0.1:1").unwrap();
    let error = nowhere.command(["PING"]).await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
}
