//! Every way in which five nodes can be up, taken by another, or hung: the verdict is the oracle's.

use std::thread;
use std::time::Duration;

use quorlock::{LockGuard, Locker};
use support::{Fleet, Reply, Server, eventually_async, need_server};
use tokio::runtime::Builder;

use crate::{builder, connected};

const NODES: usize = 5;

/// Long beside a server's answer, also on a busy machine: only the hung ones take it all, and each
/// set of them does so once.
const DEADLINE: Duration = Duration::from_secs(2);

const LANES: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Up,
    /// Another client holds the key there.
    Taken,
    /// The process is stopped.
    Hung,
}

type Mask = [State; NODES];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Won,
    Contended,
    Unavailable,
}

/// What must come of an attempt, by counting.
fn oracle(mask: &Mask) -> Verdict {
    let count = |state| mask.iter().filter(|found| **found == state).count();
    let answers = count(State::Up) + count(State::Taken);
    match count(State::Up) {
        3.. => Verdict::Won,
        _ if answers >= 3 => Verdict::Contended,
        _ => Verdict::Unavailable,
    }
}

/// All masks in which exactly the nodes of `hung` (a bit for each) are hung.
fn masks(hung: usize) -> Vec<Mask> {
    let free = NODES - hung.count_ones() as usize;
    let mask = |taken: usize| {
        let mut next = 0;
        std::array::from_fn(|node| {
            if hung & 1 << node != 0 {
                return State::Hung;
            }
            next += 1;
            if taken & 1 << (next - 1) != 0 { State::Taken } else { State::Up }
        })
    };
    (0..1 << free).map(mask).collect()
}

fn name(mask: &Mask) -> String {
    mask.iter()
        .map(|state| match state {
            State::Up => 'u',
            State::Taken => 't',
            State::Hung => 'h',
        })
        .collect()
}

fn is_theirs(server: &Server, mask: &Mask) -> bool {
    server.command(&["GET", &name(mask)]) == Reply::bulk("theirs")
}

async fn attempt(locker: Locker, key: String) -> (Verdict, Option<LockGuard>) {
    match locker.lock(key).try_acquire().await {
        Ok(Some(guard)) => (Verdict::Won, Some(guard)),
        Ok(None) => (Verdict::Contended, None),
        Err(error) if error.is_unavailable() => (Verdict::Unavailable, None),
        Err(error) => panic!("{error}"),
    }
}

/// Each mask has a key of its own, so that all masks with the same hung nodes are tried at once.
/// There are several fleets, for whatever hangs is waited for.
#[test]
fn case_05_every_mask_of_five_nodes_gives_the_oracles_verdict() {
    need_server!();
    let tried: usize = thread::scope(|scope| {
        let lane = |lane: usize| {
            scope.spawn(move || {
                let runtime = Builder::new_current_thread().enable_all().build().unwrap();
                let hung = (0..1 << NODES).filter(|hung| hung % LANES == lane);
                runtime.block_on(try_masks(hung))
            })
        };
        let lanes: Vec<_> = (0..LANES).map(lane).collect();
        lanes.into_iter().map(|lane| lane.join().unwrap()).sum()
    });
    assert_eq!(tried, 243);
}

/// Tries all masks with these hung nodes, and counts them.
async fn try_masks(hung: impl Iterator<Item = usize>) -> usize {
    let fleet = Fleet::start(NODES);
    let mut tried = 0;
    for hung in hung {
        let locker = connected(builder(&fleet).node_timeout(DEADLINE)).await;
        let masks = masks(hung);
        for mask in &masks {
            for (server, _) in fleet.iter().zip(mask).filter(|(_, state)| **state == State::Taken) {
                let reply = server.command(&["SET", &name(mask), "theirs", "PX", "60000"]);
                assert_eq!(reply, Reply::ok());
            }
        }
        let stopped = || fleet.iter().enumerate().filter(|(node, _)| hung & 1 << node != 0);
        stopped().for_each(|(_, server)| server.pause());
        let attempts: Vec<_> =
            masks.iter().map(|mask| tokio::spawn(attempt(locker.clone(), name(mask)))).collect();
        for (mask, attempt) in masks.iter().zip(attempts) {
            let (verdict, guard) = attempt.await.unwrap();
            assert_eq!(verdict, oracle(mask), "{}", name(mask));
            assert_eq!(guard.is_some(), verdict == Verdict::Won);
            drop(guard);
            tried += 1;
        }
        stopped().for_each(|(_, server)| server.resume());
        let taken = |node: usize| masks.iter().filter(move |mask| mask[node] == State::Taken);
        let only_theirs = |(node, server): (usize, &Server)| {
            let keys = server.command(&["KEYS", "*"]).array();
            keys.len() == taken(node).count() && taken(node).all(|mask| is_theirs(server, mask))
        };
        let settled = async || fleet.iter().enumerate().all(only_theirs);
        eventually_async("nothing of ours is left, and all of theirs", settled).await;
        fleet.command(&["FLUSHALL"]);
    }
    tried
}
