//! Readers that are kept out while a writer waits, also where readers have the lock on the nodes
//! beside that of the queue alone. Exact, on nodes inside this process under a driven clock.

use quorlock::testing::{Nodes, Reaction, When};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::release;
use crate::waiting::exact::{ms, process};

const QUEUE: &str = "{k}:quorlock:queue";
const GATE: &str = "{k}:quorlock:gate";

/// Those nodes that have this key.
fn with(nodes: &Nodes, key: &str) -> Vec<usize> {
    let has = |node: &quorlock::testing::Node| node.keys().iter().any(|it| it == key.as_bytes());
    nodes.iter().enumerate().filter(|(_, node)| has(node)).map(|(number, _)| number).collect()
}

/// Readers lose their lock where the queue is.
fn lose_readers(nodes: &Nodes) {
    let [keeper] = with(nodes, QUEUE)[..] else { panic!("one node keeps the queue") };
    let node = nodes.iter().nth(keeper).unwrap();
    node.command(["DEL", "k", "{k}:quorlock:readers", GATE]);
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_is_refused_again_and_again_keeps_readers_out() {
    let nodes = Nodes::new(3);
    let (reader, writer) = (process(&nodes, "reader").await, process(&nodes, "writer").await);
    let read = reader.read("k").ttl(ms(60_000)).await.unwrap();
    // It gives up its place after a third of its TTL, and asks anew.
    let request = writer.write("k").ttl(ms(900)).wait(ms(20_000));
    let writing = tokio::spawn(request.into_future());
    sleep(ms(10)).await;
    lose_readers(&nodes);
    sleep(ms(600)).await;
    for _ in 0..100 {
        sleep(ms(30)).await;
        assert!(with(&nodes, GATE).len() >= 2, "a gate is open");
        assert!(reader.read("k").try_acquire().await.unwrap().is_none());
    }
    assert!(!writing.is_finished());
    release(read).await;
    release(writing.await.unwrap().unwrap()).await;
    assert_eq!(with(&nodes, GATE), [], "it is open again");
}

/// They cannot reach the node with the queue, which so knows of none of them.
#[tokio::test(start_paused = true)]
async fn readers_that_overlap_beside_the_queue_do_not_keep_a_writer_out() {
    let nodes = Nodes::new(3);
    let (first, writer) = (process(&nodes, "first").await, process(&nodes, "writer").await);
    let written = first.write("k").ttl(ms(60_000)).await.unwrap();
    let writing = tokio::spawn(writer.write("k").wait(ms(20_000)).into_future());
    sleep(ms(10)).await;
    let [keeper] = with(&nodes, QUEUE)[..] else { panic!("one node keeps the queue") };
    let denied = Reaction::Answer(b"-ERR not here\r\n".to_vec());
    nodes.iter().nth(keeper).unwrap().add(When::before("read").then(denied));
    let mut readers = JoinSet::new();
    for number in 0..8 {
        let reader = process(&nodes, &format!("reader{number}")).await;
        readers.spawn(async move {
            loop {
                if let Ok(Some(read)) = reader.read("k").ttl(ms(60_000)).try_acquire().await {
                    sleep(ms(10)).await;
                    release(read).await;
                }
                sleep(ms(1 + number)).await;
            }
        });
    }
    sleep(ms(100)).await;
    release(written).await;
    let free = Instant::now();
    let guard = writing.await.unwrap().unwrap();
    assert!(free.elapsed() <= ms(3_000), "{:?}", free.elapsed());
    readers.abort_all();
    release(guard).await;
}

#[tokio::test(start_paused = true)]
async fn a_writer_waits_no_longer_than_it_wants_to() {
    for limit in [300, 520, 700, 1_100, 3_000].map(ms) {
        let nodes = Nodes::new(3);
        let (reader, writer) = (process(&nodes, "reader").await, process(&nodes, "writer").await);
        let read = reader.read("k").ttl(ms(60_000)).await.unwrap();
        let began = Instant::now();
        let writing = tokio::spawn(writer.write("k").wait(limit).into_future());
        sleep(ms(10)).await;
        lose_readers(&nodes);
        assert!(writing.await.unwrap().unwrap_err().is_contended());
        assert!(began.elapsed() <= limit + ms(5), "{limit:?}: {:?}", began.elapsed());
        release(read).await;
    }
}

/// The one behind it is told, and shuts the gate anew.
#[tokio::test(start_paused = true)]
async fn a_writer_that_gives_up_opens_no_gate_for_the_next_ones_readers() {
    let nodes = Nodes::new(3);
    let (reader, gives_up) = (process(&nodes, "reader").await, process(&nodes, "gives-up").await);
    let stays = process(&nodes, "stays").await;
    let read = reader.read("k").ttl(ms(60_000)).await.unwrap();
    let first = tokio::spawn(gives_up.write("k").wait(ms(20_000)).into_future());
    sleep(ms(100)).await;
    let next = tokio::spawn(stays.write("k").wait(ms(20_000)).into_future());
    sleep(ms(100)).await;
    first.abort();
    for _ in 0..60 {
        sleep(ms(10)).await;
        assert_eq!(with(&nodes, GATE), [0, 1, 2], "{:?}", Instant::now());
        assert!(reader.read("k").try_acquire().await.unwrap().is_none());
    }
    release(read).await;
    release(next.await.unwrap().unwrap()).await;
}
