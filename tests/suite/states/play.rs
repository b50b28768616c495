//! Plays one state: each operation on the node alone, and with the node as one of three.

use std::time::Duration;

use quorlock::{Error, LockGuard, Locker, Release, report::Outcome};
use support::{Fleet, eventually_async};

use super::state::{Said, State};
use super::tested_node::{TestedNode, is_told, tuned};
use crate::connected;

/// An acquisition on the node alone, by a locker that is connected and by one that is not yet.
pub(super) async fn acquire(state: &State, node: &TestedNode) {
    let [wanted, ..] = state.says;
    let locker = connected(node.builder(state)).await;
    node.enter(state, &locker).await;
    let asked = locker.lock("k").try_acquire().await;
    let found = acquired(&asked);
    assert!(wanted.is(&found), "{}: acquiring says {found:?}, not {wanted:?}", state.name);
    if state.cut && wanted != Said::Granted {
        let fresh = node.builder(state).build().unwrap();
        eventually_async(&format!("{}: a new locker says so, too", state.name), async || {
            wanted.is(&acquired(&fresh.lock("k").try_acquire().await))
        })
        .await;
    }
    node.leave(state);
    drop(asked);
    node.settle(state).await;
}

/// An acquisition where servers may forget, and so a script, on a node that is in service.
pub(super) async fn vote(state: &State, node: &TestedNode) {
    let Some(wanted) = state.vote else { return };
    let state = &State { volatile: true, ..*state };
    let locker = connected(node.builder(state)).await;
    locker.initialise().await.unwrap();
    node.enter(state, &locker).await;
    let asked = locker.lock("k").try_acquire().await;
    let found = acquired(&asked);
    assert!(wanted.is(&found), "{}: a vote says {found:?}, not {wanted:?}", state.name);
    node.leave(state);
    drop(asked);
    node.settle(state).await;
}

/// What an acquisition says of the one node.
fn acquired(asked: &Result<Option<LockGuard>, Error>) -> Outcome {
    match asked {
        Ok(Some(guard)) => guard.votes()[0].outcome.clone(),
        Ok(None) => Outcome::Held,
        Err(error) => error.nodes()[0].outcome.clone(),
    }
}

/// Whether what was refused is undone: nothing is, but what may have been applied.
pub(super) async fn undo(state: &State, node: &TestedNode) {
    let [wanted, ..] = state.says;
    if wanted == Said::Granted || state.cut || !node.is_real() {
        return;
    }
    let locker = connected(node.builder(state)).await;
    node.releases(); // those before do not count
    node.enter(state, &locker).await;
    let asked = locker.lock("k").try_acquire().await;
    assert!(matches!(asked, Ok(None) | Err(_)), "{}: {asked:?}", state.name);
    node.leave(state);
    // On the same connection: whatever was sent before this has been answered when this has.
    eventually_async(&format!("{}: it answers again", state.name), async || is_told(&locker).await)
        .await;
    // Where servers may forget, the acquisition is a script, too.
    let undone = node.releases() > u64::from(state.volatile);
    assert_eq!(undone, wanted.is_open(), "{}: {wanted:?}, and it was undone", state.name);
}

/// An extension on the node alone.
pub(super) async fn extend(state: &State, node: &TestedNode) {
    let [_, wanted, _] = state.says;
    let Some((locker, guard)) = hold(state, node, wanted).await else { return };
    node.enter(state, &locker).await;
    let ttl = guard.remaining() + Duration::from_secs(1);
    let asked = guard.extend(ttl).await;
    let found = match &asked {
        Ok(()) => Outcome::Granted,
        Err(error) => error.nodes()[0].outcome.clone(),
    };
    assert!(wanted.is(&found), "{}: extending says {found:?}, not {wanted:?}", state.name);
    let lost = matches!(wanted, Said::Gone | Said::Held);
    assert_eq!(guard.is_valid(), !lost, "{}: only what the node has lost is lost", state.name);
    assert_eq!(asked.is_err_and(|error| error.is_lost()), lost);
    node.leave(state);
    drop(guard);
    node.settle(state).await;
}

/// A release on the node alone.
pub(super) async fn release(state: &State, node: &TestedNode) {
    let [_, _, wanted] = state.says;
    let Some((locker, guard)) = hold(state, node, wanted).await else { return };
    let is_native = state.by_script && locker.health()[0].deletes_natively;
    let wanted = if is_native { Said::Granted } else { wanted };
    node.enter(state, &locker).await;
    let found = match guard.release().await.unwrap() {
        Release::Released => Outcome::Granted,
        Release::Expired => Outcome::Gone,
        Release::Taken => Outcome::Held,
        Release::Unknown(nodes) => nodes[0].outcome.clone(),
        other => panic!("{}: {other:?}", state.name),
    };
    assert!(wanted.is(&found), "{}: releasing says {found:?}, not {wanted:?}", state.name);
    node.leave(state);
    node.settle(state).await;
}

/// A lock that was acquired before the state.
async fn hold(state: &State, node: &TestedNode, wanted: Said) -> Option<(Locker, LockGuard)> {
    if wanted == Said::Never {
        return None;
    }
    let locker = connected(node.builder(state)).await;
    let guard = locker.lock("k").await.unwrap();
    Some((locker, guard))
}

/// With two sound nodes beside it, the lock works as ever.
pub(super) async fn be_one_of_three(state: &State, node: &TestedNode) {
    let wanted = state.in_quorum.unwrap_or(state.says[0]);
    if wanted == Said::Never {
        return;
    }
    let sound = Fleet::start(2);
    let urls = [vec![node.url(state)], sound.urls()].concat();
    let builder = tuned(Locker::quorum(urls).unwrap(), state);
    let locker = builder.build().unwrap();
    locker.ready(Duration::from_secs(5)).await.ok();
    node.enter(state, &locker).await;
    let guard = locker.lock("k").await.unwrap();
    eventually_async(&format!("{}: its vote is {wanted:?}", state.name), async || {
        wanted.is(&guard.votes()[0].outcome)
    })
    .await;
    guard.extend(guard.remaining() + Duration::from_secs(1)).await.unwrap();
    assert!(guard.is_valid());
    assert!(guard.release().await.unwrap().is_released(), "{}", state.name);
    // An early verdict does not wait for the last node: its key goes a little later.
    eventually_async("no key is left on the sound nodes", async || sound.keys_left("").is_empty())
        .await;
    node.leave(state);
    node.settle(state).await;
}
