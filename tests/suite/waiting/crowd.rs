//! A thousand tasks of several processes wait for one lock while nodes fail: each has it once, and
//! no two at a time. Under a driven clock here, on real servers in `faults`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorlock::testing::{Node, Nodes};
use quorlock::{LockGuard, Locker};
use support::Watchdog;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{Instant, sleep};

use super::exact::connected;

/// How many wait.
pub(super) const COUNT: usize = 1_000;

/// In how many processes.
pub(super) const PROCESSES: usize = 8;

/// How long after the end of faults they have the lock as fast as before.
const BACK: Duration = Duration::from_millis(300);

/// Who has had the lock, and who has it.
#[derive(Default)]
pub(super) struct Crowd {
    inside: AtomicUsize,
    visits: Mutex<Vec<Instant>>,
}

/// One who has it, until this is dropped.
struct Inside<'a>(&'a AtomicUsize);

impl<'a> Inside<'a> {
    fn enter(inside: &'a AtomicUsize) -> Self {
        let entered = Self(inside);
        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "others have it");
        entered
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Crowd {
    /// Tasks that wait for the lock, in turn by each of these lockers, and hold it for so long.
    pub(super) fn gather(
        self: &Arc<Self>,
        lockers: &[Locker],
        hold: Duration,
    ) -> Vec<JoinHandle<()>> {
        let lockers = lockers.iter().cycle().take(COUNT);
        lockers.map(|locker| tokio::spawn(self.clone().visit(locker.clone(), hold))).collect()
    }

    async fn visit(self: Arc<Self>, locker: Locker, hold: Duration) {
        let guard = locker.lock("k").wait_forever().await.unwrap();
        self.hold(&guard, hold).await;
        drop(guard);
    }

    async fn hold(&self, guard: &LockGuard, hold: Duration) {
        let _inside = Inside::enter(&self.inside);
        assert!(guard.is_valid(), "it has just been acquired");
        match hold {
            Duration::ZERO => yield_now().await,
            hold => sleep(hold).await,
        }
        assert!(guard.is_valid(), "it is held for far less than its TTL");
        self.visits.lock().unwrap().push(Instant::now());
    }

    /// How many have had it.
    pub(super) fn count(&self) -> usize {
        self.visits.lock().unwrap().len()
    }

    /// Waits until so many have had it. As long as one after the other has, that may take time.
    pub(super) async fn reaches(&self, count: usize) {
        let mut before = self.count();
        let mut watchdog = Watchdog::new("the next one has the lock");
        while before < count {
            watchdog.check();
            sleep(Duration::from_millis(1)).await;
            let now = self.count();
            if now > before {
                (before, watchdog) = (now, Watchdog::new("the next one has the lock"));
            }
        }
    }

    /// All have had it, each once. How long after this instant, behind the faults, they have had it
    /// as fast, one after the other, as where so many had had it.
    pub(super) async fn ends(
        &self,
        tasks: Vec<JoinHandle<()>>,
        faults: (usize, Instant),
    ) -> Duration {
        self.reaches(COUNT).await;
        for task in tasks {
            task.await.unwrap();
        }
        let visits = self.visits.lock().unwrap();
        assert_eq!(visits.len(), COUNT);
        back(&visits, faults)
    }
}

/// How many in a row are as fast as before if they take no more than twice as long.
const ROW: usize = 20;

/// How long after this instant the visits are as fast again as they were before the faults, when so
/// many had come.
fn back(visits: &[Instant], (before, ended): (usize, Instant)) -> Duration {
    let usual = (visits[before - 1] - visits[0]) / u32::try_from(before - 1).unwrap();
    let rows = visits.windows(ROW + 1).filter(|row| row[ROW] > ended);
    let is_usual = |row: &&[Instant]| row[ROW] - row[0] <= 2 * usual * ROW as u32;
    let row = rows.into_iter().find(is_usual).expect("they are as fast as before, at last");
    let back = row[0].saturating_duration_since(ended);
    println!("back: usually {usual:.1?} for each, as fast as that {back:.1?} later");
    back
}

/// The node that keeps the key's queue.
fn queue_node(nodes: &Nodes) -> Option<usize> {
    nodes.iter().position(|node| node.keys().iter().any(|key| key == b"{k}:quorlock:queue"))
}

async fn all_are_served(failing: usize, begin: fn(&Node), end: fn(&Node)) {
    let nodes = Nodes::new(5);
    let mut lockers = Vec::new();
    for number in 0..PROCESSES {
        lockers.push(connected(nodes.locker().owner(format!("process-{number}"))).await);
    }
    let crowd = Arc::new(Crowd::default());
    let tasks = crowd.gather(&lockers, Duration::from_millis(10));
    crowd.reaches(COUNT / 4).await;
    let before = crowd.count();
    // That with the queue among them.
    let first = queue_node(&nodes).expect("some wait in a queue");
    let failing = || (0..failing).map(|more| &nodes[(first + more) % nodes.len()]);
    failing().for_each(begin);
    sleep(Duration::from_secs(5)).await;
    failing().for_each(end);
    let back = crowd.ends(tasks, (before, Instant::now())).await;
    assert!(back <= BACK, "{back:?}");
    // The nodes that were away are told to delete what they have, and forget those that waited.
    sleep(Duration::from_secs(5)).await;
    assert!(nodes.iter().all(|node| node.keys().is_empty()), "{nodes:?}");
}

#[tokio::test(start_paused = true)]
async fn all_are_served_while_the_node_with_the_queue_hangs_for_five_seconds() {
    all_are_served(1, Node::hang, Node::resume).await;
}

#[tokio::test(start_paused = true)]
async fn all_are_served_while_the_node_with_the_queue_is_down_for_five_seconds_and_forgets() {
    all_are_served(1, Node::stop, |node| node.restart(false).unwrap()).await;
}

#[tokio::test(start_paused = true)]
async fn all_are_served_though_three_of_five_hang_for_five_seconds() {
    all_are_served(3, Node::hang, Node::resume).await;
}

#[tokio::test(start_paused = true)]
async fn all_are_served_though_three_of_five_are_down_for_five_seconds() {
    all_are_served(3, Node::stop, |node| node.restart(true).unwrap()).await;
}
