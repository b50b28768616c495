//! Processes wait for one lock while everything fails by chance: no two ever have it, and when the
//! nodes are well again it is free, and nothing else is left.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use quorlock::testing::{Nodes, Reaction, When};
use quorlock::{Durability, LockGuard, Locker};
use tokio::time::{sleep, timeout};

use super::exact::ms;

const TTL: Duration = ms(2_000);

/// Numbers by chance, the same for each seed.
struct Chance(u64);

impl Chance {
    /// One below this.
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % end
    }
}

/// Whose lock it was last.
#[derive(Default)]
struct Last(Mutex<Weak<LockGuard>>);

impl Last {
    async fn visit(&self, locker: &Locker, chance: &mut Chance) {
        let limit = ms(chance.below(4_000));
        let request = locker.lock("k").wait(limit);
        let request = match chance.below(4) {
            0 => timeout(limit / 2, request.acquire()).await.ok(),
            1 => locker.lock("k").try_acquire().await.transpose(),
            _ => Some(request.await),
        };
        let Some(Ok(guard)) = request else { return };
        let guard = Arc::new(guard);
        {
            let mut last = self.0.lock().unwrap();
            let other = last.upgrade().filter(|other| other.is_valid());
            if let Some(other) = other.filter(|_| guard.is_valid()) {
                let (one, two) = (guard.owner_token(), other.owner_token());
                panic!("{one:?} and {two:?} have it: {:?} and {:?}", guard.votes(), other.votes());
            }
            *last = Arc::downgrade(&guard);
        }
        sleep(ms(chance.below(60) * chance.below(60))).await;
        match Arc::into_inner(guard).expect("no one keeps it") {
            guard if chance.below(2) == 0 => drop(guard.release().await),
            guard if chance.below(20) == 0 => drop(guard.forget()),
            guard => drop(guard),
        }
    }
}

fn spoil(nodes: &Nodes, seed: u64) {
    for (number, node) in nodes.iter().enumerate() {
        let seed = seed * 31 + number as u64 * 7;
        let slow = |millis| Reaction::Delay(ms(millis));
        node.add(When::before_any().chance(100, seed + 1).then(slow(1 + seed % 7)));
        node.add(When::after_any().chance(100, seed + 2).then(slow(1 + seed % 5)));
        node.add(When::before_any().chance(10, seed + 3).then(slow(150)));
        node.add(When::after_any().chance(10, seed + 4).then(slow(150)));
        node.add(When::before_any().chance(2, seed + 5).then(Reaction::Drop));
        node.add(When::after_any().chance(2, seed + 6).then(Reaction::Drop));
        node.add(When::after_any().chance(3, seed + 7).then(Reaction::Cut { after_bytes: 2 }));
    }
}

async fn fail(nodes: &Nodes, chance: &mut Chance, keeps_data: bool) {
    let node = &nodes[chance.below(nodes.len() as u64) as usize];
    sleep(ms(chance.below(400))).await;
    match chance.below(4) {
        0 => node.hang(),
        1 => node.stop(),
        2 => node.cut(),
        _ => node.restart(keeps_data).unwrap(),
    }
    sleep(ms(chance.below(1_500))).await;
    if !node.is_running() {
        node.resume();
    }
    if !node.is_running() {
        node.restart(keeps_data).unwrap();
    }
}

/// Fifteen tasks of five processes, each thirty times.
async fn run(seed: u64, durability: Durability) {
    let nodes = Nodes::new(5);
    let locker = |number: u64| {
        let builder = nodes.locker().owner(format!("process-{number}")).ttl(TTL);
        builder.durability(durability).node_timeout(ms(100)).build().unwrap()
    };
    let lockers: Vec<_> = (0..5).map(locker).collect();
    let keeps_data = matches!(durability, Durability::Persistent);
    if !keeps_data {
        lockers[0].initialise().await.unwrap();
    }
    spoil(&nodes, seed);
    let last = Arc::new(Last::default());
    let tasks = (0..15).zip(lockers.iter().cycle()).map(|(number, locker)| {
        let (last, locker) = (last.clone(), locker.clone());
        let mut chance = Chance(seed * 1_000 + number);
        tokio::spawn(async move {
            for _ in 0..30 {
                last.visit(&locker, &mut chance).await;
                sleep(ms(chance.below(50))).await;
            }
        })
    });
    let tasks: Vec<_> = tasks.collect();
    let mut chance = Chance(seed);
    while tasks.iter().any(|task| !task.is_finished()) {
        fail(&nodes, &mut chance, keeps_data).await;
    }
    for task in tasks {
        task.await.unwrap();
    }
    nodes.iter().for_each(|node| node.clear_rules());
    // A node that has forgotten gives no vote for one TTL from when it is asked.
    for locker in &lockers {
        let request = locker.lock("k").wait(5 * TTL).unavailable_wait(5 * TTL);
        assert!(request.await.unwrap().release().await.unwrap().is_released());
    }
    // What was left to its end is gone by then, and what connections owed is paid.
    sleep(10 * TTL).await;
    for node in &nodes {
        let keys = node.keys();
        assert!(keys.iter().all(|key| key.starts_with(b"quorlock:")), "seed {seed}: {keys:?}");
    }
}

/// How many runs: as many as the environment asks for.
fn seeds() -> std::ops::Range<u64> {
    0..std::env::var("QUORLOCK_SEEDS").map_or(1, |seeds| seeds.parse().unwrap())
}

#[tokio::test(start_paused = true)]
async fn no_two_have_it_whatever_fails_on_nodes_that_keep_what_they_granted() {
    for seed in seeds() {
        run(seed, Durability::Persistent).await;
    }
}

#[tokio::test(start_paused = true)]
async fn no_two_have_it_whatever_fails_on_nodes_that_forget_what_they_granted() {
    for seed in seeds() {
        run(seed, Durability::Volatile { longest_ttl: TTL }).await;
    }
}
