//! Reaching the nodes when the program starts.
//!
//! The library connects in the background. If no quorum can be reached within a short time, the
//! address is wrong or everything is down, and that is reported before anything else is tried. One
//! dead or hung node must not delay the start, so the program polls for a majority, with pauses
//! that are short at first.

use std::time::Duration;

use quorlock::{
    Error, Locker,
    report::{Fault, NodeReport},
};

use crate::clock;

/// How long reaching the nodes may take. Connecting by itself may take one second.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);

/// The first and the longest pause between two checks for a majority; each is twice the one before.
const FIRST_LOOK: Duration = Duration::from_millis(4);
const LONGEST_LOOK: Duration = Duration::from_millis(512);

/// Waits until a majority of the nodes is connected, no longer than `patience`; but where a node is
/// still being connected to for the first time, as long as that may take.
pub(crate) async fn majority(locker: &Locker, patience: Duration) -> Result<(), Error> {
    let began = clock::now();
    let enough = |ready: &Ready| {
        let is_over = clock::now().saturating_duration_since(began) >= patience;
        ready.is_ok() || (is_over && !is_connecting(ready))
    };
    reach(locker, patience.max(PATIENCE), enough).await.map(drop)
}

/// Waits until each node's first attempt to connect has ended. A node that cannot be reached is no
/// error, unless our rights are the cause.
pub(crate) async fn every_answer(locker: &Locker) -> Result<(), Error> {
    match reach(locker, PATIENCE, |ready| !is_connecting(ready)).await {
        // Nodes of another deployment can be looked at all the same.
        Err(error) if error.is_unavailable() || error.is_misuse() => Ok(()),
        other => other.map(drop),
    }
}

type Ready = Result<Vec<NodeReport>, Error>;

/// Whether some node's first attempt to connect has not ended yet.
fn is_connecting(ready: &Ready) -> bool {
    let nodes = ready.as_ref().map_or_else(Error::nodes, Vec::as_slice);
    nodes.iter().any(|node| matches!(node.outcome.fault(), Some(Fault::Connecting { .. })))
}

/// Polls until the result is `enough`, for at most `patience`.
async fn reach(locker: &Locker, patience: Duration, enough: impl Fn(&Ready) -> bool) -> Ready {
    let began = clock::now();
    let mut look = FIRST_LOOK;
    loop {
        let left = patience.saturating_sub(clock::now().saturating_duration_since(began));
        let ready = locker.ready(look.min(left)).await;
        // Waiting longer cures neither a wrong password nor a runtime that is gone.
        let hopeless = ready.as_ref().is_err_and(|error| !error.is_unavailable());
        if hopeless || left <= look || enough(&ready) {
            return ready;
        }
        look = look.saturating_mul(2).min(LONGEST_LOOK);
    }
}
