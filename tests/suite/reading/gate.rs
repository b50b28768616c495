//! Readers that are kept out while a writer waits, also where readers have the lock on the nodes
//! beside that of the queue alone. Exact, on nodes inside this process under a driven clock.

use quorlock::testing::{Nodes, Reaction, When};
use quorlock::{Error, LockGuard, LockRequest, Locker};
use tokio::task::{JoinHandle, JoinSet};
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

/// Waits in a task, and is in the queue by now.
async fn wait(request: LockRequest) -> JoinHandle<Result<LockGuard, Error>> {
    let waiting = tokio::spawn(request.wait(ms(20_000)).into_future());
    sleep(ms(100)).await;
    waiting
}

/// For longer than a heartbeat, of one that has met no other.
async fn assert_that_readers_are_kept_out(nodes: &Nodes, fresh: &Locker) {
    for _ in 0..60 {
        sleep(ms(10)).await;
        assert_eq!(with(nodes, GATE), [0, 1, 2], "{:?}", Instant::now());
        assert!(fresh.read("k").try_acquire().await.unwrap().is_none());
    }
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

/// The one behind it is told, and shuts the gate anew. The delete may come late to some nodes.
#[tokio::test(start_paused = true)]
async fn a_writer_that_gives_up_opens_no_gate_for_the_next_ones_readers() {
    for late in [0, 20].map(ms) {
        let nodes = Nodes::new(3);
        let reader = process(&nodes, "reader").await;
        let (gives_up, stays) = (process(&nodes, "gives-up").await, process(&nodes, "stays").await);
        let read = reader.read("k").ttl(ms(60_000)).await.unwrap();
        let first = wait(gives_up.write("k")).await;
        let next = wait(stays.write("k")).await;
        let [keeper] = with(&nodes, QUEUE)[..] else { panic!("one node keeps the queue") };
        for (_, node) in nodes.iter().enumerate().filter(|(number, _)| *number != keeper) {
            node.add(When::before("release").times(1).then(Reaction::Delay(late)));
        }
        first.abort();
        assert_that_readers_are_kept_out(&nodes, &reader).await;
        release(read).await;
        release(next.await.unwrap().unwrap()).await;
    }
}

/// A writer has the lock, a reader waits for it, and another writer behind that reader.
struct Behind {
    held: LockGuard,
    reading: JoinHandle<Result<LockGuard, Error>>,
    next: JoinHandle<Result<LockGuard, Error>>,
    /// It has met none of them.
    fresh: Locker,
}

async fn reader_and_writer_behind(nodes: &Nodes) -> Behind {
    let (written, reader) = (process(nodes, "written").await, process(nodes, "reader").await);
    let (stays, fresh) = (process(nodes, "stays").await, process(nodes, "fresh").await);
    let held = written.write("k").ttl(ms(60_000)).await.unwrap();
    let reading = wait(reader.read("k").ttl(ms(60_000))).await;
    let next = wait(stays.write("k")).await;
    Behind { held, reading, next, fresh }
}

/// From then on it is the first.
#[tokio::test(start_paused = true)]
async fn a_writer_keeps_readers_out_as_soon_as_the_readers_before_it_read() {
    let nodes = Nodes::new(3);
    let Behind { held, reading, next, fresh } = reader_and_writer_behind(&nodes).await;
    release(held).await;
    let read = reading.await.unwrap().unwrap();
    assert_that_readers_are_kept_out(&nodes, &fresh).await;
    release(read).await;
    release(next.await.unwrap().unwrap()).await;
}

/// Its command reaches the other nodes when that writer has shut the gate there.
#[tokio::test(start_paused = true)]
async fn a_reader_whose_turn_has_come_passes_the_gate_of_the_writer_behind_it() {
    for refused_first in [false, true] {
        let nodes = Nodes::new(3);
        let Behind { held, reading, next, .. } = reader_and_writer_behind(&nodes).await;
        let [keeper] = with(&nodes, QUEUE)[..] else { panic!("one node keeps the queue") };
        let reaction = match refused_first {
            false => Reaction::Delay(ms(20)),
            true => Reaction::Answer(b":-1\r\n".to_vec()), // and it asks there again
        };
        for (_, node) in nodes.iter().enumerate().filter(|(number, _)| *number != keeper) {
            node.add(When::before("read").times(1).then(reaction.clone()));
        }
        release(held).await;
        sleep(ms(30)).await;
        assert_eq!(with(&nodes, GATE), [0, 1, 2]);
        assert!(reading.is_finished(), "it has lost its turn");
        release(reading.await.unwrap().unwrap()).await;
        release(next.await.unwrap().unwrap()).await;
    }
}

/// That writer may have been there before it.
#[tokio::test(start_paused = true)]
async fn a_reader_whose_turn_has_come_passes_no_gate_of_another_queues_writer() {
    let nodes = Nodes::new(3);
    let (written, reader) = (process(&nodes, "written").await, process(&nodes, "reader").await);
    let held = written.write("k").ttl(ms(60_000)).await.unwrap();
    let reading = wait(reader.read("k")).await;
    let [keeper] = with(&nodes, QUEUE)[..] else { panic!("one node keeps the queue") };
    let shut = Instant::now();
    for (_, node) in nodes.iter().enumerate().filter(|(number, _)| *number != keeper) {
        node.command(["SET", GATE, "1:0123456789abcdef", "PX", "400"]);
    }
    release(held).await;
    let read = reading.await.unwrap().unwrap();
    assert!(shut.elapsed() >= ms(400), "{:?}", shut.elapsed());
    release(read).await;
}

/// The gate is that of the new queue's writer then.
#[tokio::test(start_paused = true)]
async fn a_gate_stays_shut_while_its_writer_moves_to_another_queue() {
    let nodes = Nodes::new(3);
    let (reader, writer) = (process(&nodes, "reader").await, process(&nodes, "writer").await);
    let read = reader.read("k").ttl(ms(60_000)).await.unwrap();
    let writing = wait(writer.write("k")).await;
    let [keeper] = with(&nodes, QUEUE)[..] else { panic!("one node keeps the queue") };
    let [other, _] =
        [0, 1, 2].into_iter().filter(|number| *number != keeper).collect::<Vec<_>>()[..]
    else {
        panic!("there are three")
    };
    let value = || nodes[other].command(["GET", GATE]);
    let before = value();
    nodes[keeper].stop();
    for _ in 0..2_000 {
        sleep(ms(1)).await;
        let shut = with(&nodes, GATE).into_iter().filter(|number| *number != keeper).count();
        assert_eq!(shut, 2, "{:?}", Instant::now());
    }
    assert_ne!(value(), before, "it has moved");
    release(read).await;
    release(writing.await.unwrap().unwrap()).await;
}

/// The reader was told that it is its turn, and takes none.
#[tokio::test(start_paused = true)]
async fn a_writer_keeps_readers_out_as_soon_as_the_reader_before_it_gives_up() {
    let nodes = Nodes::new(3);
    let (first, reader) = (process(&nodes, "first").await, process(&nodes, "reader").await);
    let (gives_up, stays) = (process(&nodes, "gives-up").await, process(&nodes, "stays").await);
    let fresh = process(&nodes, "fresh").await;
    let read = first.read("k").ttl(ms(60_000)).await.unwrap();
    let writing = wait(gives_up.write("k")).await;
    let reading = wait(reader.read("k")).await;
    let next = wait(stays.write("k")).await;
    nodes.add(When::before("read").times(1).then(Reaction::Delay(ms(20))));
    writing.abort();
    sleep(ms(5)).await;
    reading.abort();
    sleep(ms(20)).await;
    assert_that_readers_are_kept_out(&nodes, &fresh).await;
    release(read).await;
    release(next.await.unwrap().unwrap()).await;
}

/// Another has taken the lock meanwhile, and hears of the writer once that is the first.
#[tokio::test(start_paused = true)]
async fn a_writer_is_woken_though_the_reader_before_it_came_too_late() {
    let nodes = Nodes::new(3);
    let Behind { held, reading, next, fresh } = reader_and_writer_behind(&nodes).await;
    nodes.add(When::before("read").times(1).then(Reaction::Delay(ms(20))));
    release(held).await;
    let between = fresh.write("k").try_acquire().await.unwrap().unwrap();
    sleep(ms(50)).await;
    release(between).await;
    let free = Instant::now();
    let guard = next.await.unwrap().unwrap();
    assert!(free.elapsed() <= ms(2), "{:?}", free.elapsed());
    reading.abort();
    release(guard).await;
}

/// A gate ends by itself, so no node that is away is owed its end.
#[tokio::test(start_paused = true)]
async fn a_gate_that_was_shut_leaves_nothing_to_be_done_at_a_shutdown() {
    let nodes = Nodes::new(3);
    let (reader, writer) = (process(&nodes, "reader").await, process(&nodes, "writer").await);
    nodes[2].stop();
    sleep(ms(10)).await;
    let read = reader.read("k").ttl(ms(60_000)).await.unwrap();
    let writing = wait(writer.write("k")).await;
    assert_eq!(with(&nodes, GATE), [0, 1]);
    release(read).await;
    release(writing.await.unwrap().unwrap()).await;
    let found = writer.shutdown(ms(1_000)).await.unwrap();
    assert!(found.is_complete() && found.owed == 0, "{found:?}");
}
