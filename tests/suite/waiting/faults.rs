//! A thousand tasks of several processes wait for one lock on real servers that fail, and come
//! back: each has it once, and no two at a time.
//!
//! How soon behind the end of the faults they have it as fast as before is printed; that it is soon
//! enough is asserted under the driven clock, in `crowd`.

use std::sync::Arc;
use std::time::Duration;

use quorlock::{Durability, Locker, LockerBuilder};
use support::wait::PATIENCE;
use support::{Fleet, Proxy, Reply, Server, eventually_async, need_process};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::crowd::{COUNT, Crowd, PROCESSES};
use super::{hasty, listening};

/// A thousand that wait, some of whom have had it.
struct Waiting {
    crowd: Arc<Crowd>,
    tasks: Vec<JoinHandle<()>>,
    queue_node: usize,
    /// So many have had it before the faults.
    before: usize,
}

impl Waiting {
    async fn begin(fleet: &Fleet, lockers: &[Locker]) -> Self {
        let crowd = Arc::new(Crowd::default());
        let tasks = crowd.gather(lockers, Duration::ZERO);
        crowd.reaches(COUNT / 10).await;
        let queue_node = queue_node(fleet).await;
        Self { before: crowd.count(), crowd, tasks, queue_node }
    }

    /// So many more have it while nodes fail.
    async fn serves(&self, more: usize) {
        self.crowd.reaches((self.crowd.count() + more).min(COUNT)).await;
    }

    async fn ends(self, fleet: &Fleet) {
        let ended = Instant::now();
        self.crowd.ends(self.tasks, (self.before, ended)).await;
        eventually_async("nothing is left", async || {
            fleet.keys_left("k").is_empty() && fleet.keys_left("{k}").is_empty()
        })
        .await;
    }
}

/// The node that keeps the queue.
async fn queue_node(fleet: &Fleet) -> usize {
    let mut found = None;
    eventually_async("a node keeps the queue", async || {
        found = fleet
            .command(&["EXISTS", "{k}:quorlock:queue"])
            .iter()
            .position(|it| *it == Reply::Int(1));
        found.is_some()
    })
    .await;
    found.unwrap()
}

async fn processes(fleet: &Fleet, describe: fn(LockerBuilder) -> LockerBuilder) -> Vec<Locker> {
    let mut lockers = Vec::new();
    for number in 0..PROCESSES {
        let builder = hasty(fleet.urls(), &format!("process-{number}"));
        lockers.push(listening(describe(builder)).await);
    }
    lockers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_are_served_though_the_node_with_the_queue_is_killed_and_comes_back_empty() {
    need_process!();
    let fleet = Fleet::start(5);
    let lockers = processes(&fleet, |builder| builder).await;
    let waiting = Waiting::begin(&fleet, &lockers).await;
    fleet[waiting.queue_node].stop();
    waiting.serves(200).await;
    fleet[waiting.queue_node].restart();
    waiting.ends(&fleet).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_are_served_though_the_node_with_the_queue_hangs() {
    need_process!();
    let fleet = Fleet::start(5);
    let lockers = processes(&fleet, |builder| builder).await;
    let waiting = Waiting::begin(&fleet, &lockers).await;
    fleet[waiting.queue_node].pause();
    waiting.serves(200).await;
    fleet[waiting.queue_node].resume();
    waiting.ends(&fleet).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_are_served_though_some_cannot_reach_the_node_with_the_queue() {
    need_process!();
    let fleet = Fleet::start(5);
    let proxies: Vec<_> = fleet.iter().map(Proxy::before).collect();
    let mut lockers = Vec::new();
    for number in 0..PROCESSES {
        let urls: Vec<_> = match number % 2 {
            0 => fleet.iter().map(Server::tcp_url).collect(),
            _ => proxies.iter().map(Proxy::url).collect(),
        };
        lockers.push(listening(hasty(urls, &format!("process-{number}"))).await);
    }
    let waiting = Waiting::begin(&fleet, &lockers).await;
    proxies[waiting.queue_node].freeze();
    waiting.serves(300).await;
    proxies[waiting.queue_node].thaw();
    waiting.ends(&fleet).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_are_served_though_three_of_five_hang() {
    need_process!();
    let fleet = Fleet::start(5);
    let lockers = processes(&fleet, |builder| builder).await;
    let waiting = Waiting::begin(&fleet, &lockers).await;
    let hung: Vec<_> = (0..3).map(|more| &fleet[(waiting.queue_node + more) % 5]).collect();
    hung.iter().for_each(|server| server.pause());
    // Each of them is found to be silent.
    eventually_async("no quorum is left", async || {
        let tried = lockers[0].lock("another").try_acquire().await;
        tried.is_err_and(|error| error.is_unavailable())
    })
    .await;
    hung.iter().for_each(|server| server.resume());
    waiting.ends(&fleet).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_are_served_though_three_of_five_are_killed_and_forget_what_they_granted() {
    need_process!();
    let fleet = Fleet::start(5);
    let volatile = |builder: LockerBuilder| {
        let longest_ttl = PATIENCE / 5;
        builder.durability(Durability::Volatile { longest_ttl }).ttl(longest_ttl)
    };
    let lockers = processes(&fleet, volatile).await;
    lockers[0].initialise().await.unwrap();
    let waiting = Waiting::begin(&fleet, &lockers).await;
    let killed: Vec<_> = (0..3).map(|more| &fleet[(waiting.queue_node + more) % 5]).collect();
    killed.iter().for_each(|server| server.stop());
    killed.iter().for_each(|server| server.restart());
    waiting.ends(&fleet).await;
}
