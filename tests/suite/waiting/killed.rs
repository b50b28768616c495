//! Holders and waiters that were killed, of locks that several may have: the others go on when the
//! time of what is left is over. Exact, on nodes inside this process under a driven clock.

use std::time::Duration;

use quorlock::testing::{Node, Nodes, Reaction, When};
use quorlock::{Extend, LockGuard, LockRequest};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::exact::{ms, process};

/// So late the next one has the lock at most.
const LATE: Duration = ms(20);

/// Waits in a task; when it has the lock, and the guard.
fn wait(request: LockRequest) -> JoinHandle<(Instant, LockGuard)> {
    let request = request.wait(ms(20_000));
    tokio::spawn(async move {
        let guard = request.await.unwrap();
        (Instant::now(), guard)
    })
}

/// Its holder is gone, and what it held ends by its time.
fn kill(guard: LockGuard) {
    drop(guard.forget());
}

/// It has come by the lock in time, and not before the end of what was in its way.
fn is_in_time(at: Instant, end: Instant, what: &str) {
    let late = at.checked_duration_since(end);
    let late = late.unwrap_or_else(|| panic!("{what}: {:?} before the end", end - at));
    assert!(late <= LATE, "{what}: {late:?}");
}

/// When to kill: at several distances from a beat of those that wait.
const AFTER: [u64; 6] = [0, 1, 9, 250, 499, 800];

#[tokio::test(start_paused = true)]
async fn the_last_reader_that_is_killed_keeps_a_writer_no_longer_than_its_time() {
    for after in AFTER {
        let nodes = Nodes::new(5);
        let (reader, writer) = (process(&nodes, "reader").await, process(&nodes, "writer").await);
        let first = reader.read("k").ttl(ms(1_000)).await.unwrap();
        let end = Instant::now() + ms(1_000);
        let last = reader.read("k").ttl(ms(1_000)).await.unwrap();
        let writing = wait(writer.write("k"));
        sleep(ms(after)).await;
        assert!(first.release().await.unwrap().is_released());
        kill(last);
        let (at, written) = writing.await.unwrap();
        is_in_time(at, end, &format!("after {after} ms"));
        drop(written);
    }
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_is_killed_keeps_readers_no_longer_than_its_time() {
    for after in AFTER {
        let nodes = Nodes::new(5);
        let (writer, reader) = (process(&nodes, "writer").await, process(&nodes, "reader").await);
        let end = Instant::now() + ms(1_000);
        let written = writer.write("k").ttl(ms(1_000)).await.unwrap();
        let reading = [wait(reader.read("k")), wait(reader.read("k"))];
        sleep(ms(after)).await;
        kill(written);
        for (place, reading) in reading.into_iter().enumerate() {
            let (at, guard) = reading.await.unwrap();
            // Both have it at once: neither lets go of it before the other has come.
            std::mem::forget(guard);
            is_in_time(at, end, &format!("{place}, after {after} ms"));
        }
    }
}

/// The next one comes during the hand-over, while another stands before it in the queue.
#[tokio::test(start_paused = true)]
async fn one_that_is_killed_as_it_has_the_lock_handed_over_keeps_the_next_no_longer_than_its_time()
{
    let nodes = Nodes::new(5);
    let (one, other) = (process(&nodes, "one").await, process(&nodes, "other").await);
    let held = one.lock("k").await.unwrap();
    let short = other.lock("k").ttl(ms(150)).auto_extend(Extend::Off);
    let handed_over = wait(short);
    sleep(ms(100)).await;
    nodes.add(When::before("turn_ask").times(1).then(Reaction::Delay(ms(20))));
    assert!(held.release().await.unwrap().is_released());
    let next = wait(one.lock("k"));
    let (at, guard) = handed_over.await.unwrap();
    kill(guard);
    let (had, guard) = next.await.unwrap();
    is_in_time(had, at + ms(150), "the next");
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn one_that_is_killed_with_a_slot_keeps_those_that_wait_no_longer_than_its_time() {
    for after in AFTER {
        let nodes = Nodes::new(5);
        let holder = process(&nodes, "holder").await;
        let (first, next) = (process(&nodes, "first").await, process(&nodes, "next").await);
        let request = holder.slots("k", 2).acquire();
        let held = request.ttl(ms(30_000)).await.unwrap();
        let end = Instant::now() + ms(1_000);
        let killed = holder.slots("k", 2).acquire().ttl(ms(1_000)).await.unwrap();
        let waiting = wait(first.slots("k", 2).acquire());
        sleep(ms(after)).await;
        let behind = wait(next.slots("k", 2).acquire());
        kill(killed);
        let (at, slot) = waiting.await.unwrap();
        is_in_time(at, end, &format!("after {after} ms"));
        drop(slot);
        drop(behind.await.unwrap());
        drop(held);
    }
}

/// It was told one end, and by then that is another.
#[tokio::test(start_paused = true)]
async fn one_that_is_killed_with_a_slot_that_it_had_extended_does_so_too() {
    for after in AFTER {
        let nodes = Nodes::new(5);
        let (holder, waiter) = (process(&nodes, "holder").await, process(&nodes, "waiter").await);
        let killed = holder.slots("k", 3).acquire_many(2).ttl(ms(1_000)).await.unwrap();
        let other = holder.slots("k", 3).acquire().ttl(ms(1_500)).await.unwrap();
        let waiting = wait(waiter.slots("k", 3).acquire_many(3));
        sleep(ms(after)).await;
        let end = Instant::now() + ms(2_000);
        killed.extend(ms(2_000)).await.unwrap();
        kill(other);
        kill(killed);
        is_in_time(waiting.await.unwrap().0, end, &format!("after {after} ms"));
    }
}

/// To be asked to let go does not change its end.
#[tokio::test(start_paused = true)]
async fn a_revoked_holder_that_is_killed_keeps_others_no_longer_than_its_time() {
    for after in AFTER {
        for fair in [false, true] {
            let nodes = Nodes::new(5);
            let (holder, waiter) =
                (process(&nodes, "holder").await, process(&nodes, "waiter").await);
            let held = holder.lock("k").ttl(ms(1_000)).await.unwrap();
            let end = Instant::now() + ms(1_000);
            let request = waiter.lock("k");
            let waiting = wait(if fair { request.fair() } else { request });
            sleep(ms(after)).await;
            let revocation = waiter.revoke("k").await.unwrap().unwrap();
            assert!(revocation.over_in >= end - Instant::now());
            kill(held);
            is_in_time(waiting.await.unwrap().0, end, &format!("after {after} ms, fair: {fair}"));
        }
    }
}

/// What one leaves that is killed where it waits, on a node that keeps a queue, and all else that
/// waits there.
fn leave_in_queue(node: &Node, queue: &str, value: &str) -> Instant {
    const LIFE: u64 = 1_500;
    let now = |frame: quorlock::Frame| {
        let items = frame.as_items().unwrap().to_vec();
        let number = |at: usize| items[at].as_str().unwrap().parse::<u64>().unwrap();
        number(0) * 1_000 + number(1) / 1_000
    };
    let dies = (now(node.command(["TIME"])) + LIFE).to_string();
    let beats = queue.replace(":queue", ":beats");
    for (name, score) in [(queue, "0.5"), (&beats, &dies)] {
        node.command(["ZADD", name, score, value]);
        node.command(["PEXPIRE", name, "3000"]);
    }
    Instant::now() + ms(LIFE)
}

/// The node that has something in this queue.
fn keeps<'a>(nodes: &'a Nodes, queue: &str) -> &'a Node {
    let is_there = |node: &&Node| node.keys().iter().any(|key| key == queue.as_bytes());
    nodes.iter().find(is_there).unwrap()
}

/// A reader is told nothing by one that is gone, and asks every half second.
#[tokio::test(start_paused = true)]
async fn a_writer_that_is_killed_in_front_of_readers_keeps_them_until_its_beat_is_over() {
    let nodes = Nodes::new(5);
    let (holder, reader) = (process(&nodes, "holder").await, process(&nodes, "reader").await);
    let held = holder.write("k").ttl(ms(30_000)).await.unwrap();
    let reading = wait(reader.read("k"));
    sleep(ms(10)).await;
    let queue = "{k}:quorlock:queue";
    let end = leave_in_queue(keeps(&nodes, queue), queue, &format!("{}@gone", "ab".repeat(20)));
    nodes
        .iter()
        .for_each(|node| drop(node.command(["SET", "{k}:quorlock:gate", "shut", "PX", "1500"])));
    drop(held);
    let (at, _guard) = reading.await.unwrap();
    assert!(at <= end + ms(520), "{:?}", at - end);
}

#[tokio::test(start_paused = true)]
async fn one_that_is_killed_in_front_of_others_that_want_slots_keeps_them_until_then_too() {
    let nodes = Nodes::new(5);
    let (holder, waiter) = (process(&nodes, "holder").await, process(&nodes, "waiter").await);
    let held = holder.slots("k", 2).acquire_many(2).ttl(ms(30_000)).await.unwrap();
    let waiting = wait(waiter.slots("k", 2).acquire());
    sleep(ms(10)).await;
    let queue = "{k}:slots:2:quorlock:queue";
    let end = leave_in_queue(keeps(&nodes, queue), queue, &format!("{}@gone", "ab".repeat(20)));
    drop(held);
    let (at, _guard) = waiting.await.unwrap();
    assert!(at <= end + ms(520), "{:?}", at - end);
}
