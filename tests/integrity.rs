//! Stream integrity under load: no reply ever reaches another than its caller.
//!
//! Many tasks send `ECHO <nonce>` over one connection. Of their futures 1 % are dropped at some
//! poll, and the server ends the connection again and again with whatever is in flight. How many
//! requests: `QUORLOCK_REQUESTS` (`tests/run` asks for ten million), by default a brief run.
#![expect(clippy::disallowed_methods, reason = "callers are tasks here")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quorlock::Client;
use support::{PollTimes, Server, need_server, poll_times};

const TASKS: u64 = 64;
/// Replies between two disconnects: fewer would only wait for the pauses between connections.
const REPLIES_EACH: u64 = 10_000;

#[derive(Default)]
struct Tally {
    sent: AtomicU64,
    answered: AtomicU64,
    dropped: AtomicU64,
    /// Told that there is no reply: the connection ended, or there was none.
    failed: AtomicU64,
}

/// Sends requests until enough have been answered.
async fn ask(client: Client, tally: Arc<Tally>, task: u64, wanted: u64) {
    for round in 0_u64.. {
        if tally.answered.load(Ordering::Relaxed) >= wanted {
            return;
        }
        tally.sent.fetch_add(1, Ordering::Relaxed);
        let nonce = format!("{task}:{round}");
        let echo = client.command(["ECHO", &nonce]);
        let reply = if round % 100 == task % 100 {
            // Any of the polls that such a request has, the one before the first included.
            match poll_times(echo, (round / 100 % 3) as usize).await {
                PollTimes::Completed(reply) => reply,
                PollTimes::Dropped => {
                    tally.dropped.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
            }
        } else {
            echo.await
        };
        match reply {
            Ok(reply) => {
                assert_eq!(reply.as_str(), Ok(&*nonce), "a reply at the wrong caller");
                tally.answered.fetch_add(1, Ordering::Relaxed);
            }
            Err(_) => {
                tally.failed.fetch_add(1, Ordering::Relaxed);
                // A caller's own pause before it tries again, so that no task spins meanwhile.
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }
}

/// Ends all connections each time that so many more replies have come.
fn disconnect(server: &Server, tally: &Tally, wanted: u64) -> u64 {
    let mut ended = 0;
    while tally.answered.load(Ordering::Relaxed) < wanted {
        if tally.answered.load(Ordering::Relaxed) >= ended * REPLIES_EACH {
            server.cut_clients();
            ended += 1;
        }
        std::thread::sleep(Duration::from_millis(1)); // the cutter's pace
    }
    ended
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_reply_reaches_another_than_its_caller() {
    need_server!();
    let wanted = std::env::var("QUORLOCK_REQUESTS").map_or(100_000, |count| count.parse().unwrap());
    let server = Arc::new(Server::start());
    let client = Client::new(server.url()).unwrap();
    let tally = Arc::new(Tally::default());
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| tokio::spawn(ask(client.clone(), tally.clone(), task, wanted)))
        .collect();
    let cutter = {
        let (server, tally) = (server.clone(), tally.clone());
        tokio::task::spawn_blocking(move || disconnect(&server, &tally, wanted))
    };
    for task in tasks {
        task.await.unwrap();
    }
    let ended = cutter.await.unwrap();
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    println!(
        "{} sent, {} answered, {} dropped, {} told of no reply, {ended} disconnects",
        count(&tally.sent),
        count(&tally.answered),
        count(&tally.dropped),
        count(&tally.failed),
    );
    assert!(count(&tally.dropped) > 0 && count(&tally.failed) > 0);
}
