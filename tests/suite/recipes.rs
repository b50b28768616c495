//! Recipes on real servers, and each of them dropped at every poll.

use std::cell::Cell;
use std::future::{Future, ready};
use std::time::Duration;

use quorlock::recipe::{Cached, Done, Ran};
use quorlock::{Client, Locker};
use support::{Fleet, PollTimes, Server, eventually, need_server, poll_times};

use crate::{builder, connected};

type Error = Box<dyn std::error::Error + Send + Sync>;

const AT_LEAST: Duration = Duration::from_millis(200);

/// More polls than any of these needs.
const POLLS_MAX: usize = 200;

async fn stage() -> (Fleet, Locker, Server, Client) {
    let fleet = Fleet::start(3);
    let locker = connected(builder(&fleet)).await;
    let store = Server::start();
    let client = Client::new(store.url()).unwrap();
    assert!(client.command(["PING"]).await.is_ok());
    (fleet, locker, store, client)
}

/// Drops what this begins at each of its polls, under another name each time, and says what it was
/// then; until it is done before it is dropped.
async fn at_every_poll<F: Future>(
    begin: impl Fn(String) -> F,
    mut judge: impl AsyncFnMut(String, Option<F::Output>),
) {
    for polls in 0..POLLS_MAX {
        let name = format!("job:{polls}");
        let ended = poll_times(begin(name.clone()), polls).await;
        let is_done = matches!(ended, PollTimes::Completed(_));
        judge(name, ended.completed()).await;
        if is_done {
            assert!(polls > 1, "it has waited");
            return;
        }
    }
    panic!("it takes more polls");
}

#[tokio::test]
async fn a_run_that_is_dropped_has_run_or_leaves_nothing() {
    need_server!();
    let (fleet, locker, _store, _client) = stage().await;
    let begun = Cell::new(false);
    let begin = |name: String| {
        begun.set(false);
        let begun = &begun;
        let once = locker.once(name).at_least(AT_LEAST);
        once.run(move |_held| async move {
            begun.set(true);
            tokio::task::yield_now().await;
            Ok::<_, quorlock::Error>(())
        })
    };
    let judge = async |name: String, _done| {
        if begun.get() {
            // As long as it was to be kept, none runs it again.
            let job = locker.once(&name).run(|_held| ready(Ok::<_, quorlock::Error>(())));
            let ran = job.await.unwrap();
            assert!(matches!(ran, Ran::Elsewhere(_)) || fleet.holders(&name).is_empty(), "{name}");
        }
        eventually("its lock to end", || fleet.holders(&name).is_empty());
    };
    at_every_poll(begin, judge).await;
}

#[tokio::test]
async fn a_leader_and_a_look_that_are_dropped_leave_no_lock() {
    need_server!();
    let (fleet, locker, _store, _client) = stage().await;
    let lead = |role: String| {
        let election = locker.elect(role);
        async move {
            let work = |_term| async {
                tokio::task::yield_now().await;
                Ok::<_, quorlock::Error>(())
            };
            election.lead(work).await
        }
    };
    let judge = async |role: String, _done| {
        eventually("it to resign", || fleet.holders(&role).is_empty());
    };
    at_every_poll(lead, judge).await;

    let until = |key: String| {
        let looks = Cell::new(0);
        locker.lock(key).until(move || {
            looks.set(looks.get() + 1);
            let found = (looks.get() > 1).then_some(());
            async move {
                tokio::task::yield_now().await;
                Ok::<_, quorlock::Error>(found)
            }
        })
    };
    let judge = async |key: String, _done| {
        eventually("no lock to be left", || fleet.holders(&key).is_empty());
    };
    at_every_poll(until, judge).await;
}

#[tokio::test]
async fn a_computation_that_is_dropped_is_done_by_the_next_one() {
    need_server!();
    let (fleet, locker, _store, client) = stage().await;
    let cache: Cached<Client, quorlock::Error> = Cached::new(client, locker);
    let minute = Duration::from_secs(60);
    let compute = || async {
        tokio::task::yield_now().await;
        Ok(Some(b"v".to_vec()))
    };
    let begin = |key: String| {
        let cache = &cache;
        async move { cache.get(key, minute, compute).await }
    };
    let judge = async |key: String, _done| {
        eventually("no lock to be left", || fleet.holders(format!("{key}/computed")).is_empty());
        let value = cache.get(&key, minute, compute).await.unwrap();
        assert_eq!(value.as_deref(), Some(b"v".as_slice()));
    };
    at_every_poll(begin, judge).await;
}

#[tokio::test]
async fn a_request_that_is_dropped_is_done_once_or_is_unknown() {
    need_server!();
    let (fleet, locker, _store, client) = stage().await;
    let (effects, keep) = (Cell::new(0), Duration::from_secs(60));
    let request = |id: &str| locker.idempotent(&client, id, keep);
    let work = || async {
        effects.set(effects.get() + 1);
        tokio::task::yield_now().await;
        Ok::<_, Error>(b"outcome".to_vec())
    };
    let begin = |id: String| {
        effects.set(0);
        request(&id).run::<_, _, Error>(work)
    };
    let judge = async |id: String, _done| {
        eventually("no lock to be left", || fleet.holders(&id).is_empty());
        let again = request(&id).run::<_, _, Error>(work).await.unwrap();
        let is_known = again.outcome().is_some_and(|outcome| outcome == b"outcome");
        assert!(effects.get() == 1 && is_known || effects.get() <= 1 && !is_known, "{id}");
        let repeated = request(&id).run::<_, _, Error>(work).await.unwrap();
        assert!(!matches!(repeated, Done::First(_)) && effects.get() <= 1, "{id}");
    };
    at_every_poll(begin, judge).await;
}
