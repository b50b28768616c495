//! One look for a key, or one computation of it, in this process: who comes while it is under way
//! shares what it comes to.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::watch;

use crate::sync::{Mutex, lock};

/// What is under way, by key.
pub(super) struct Flights<T>(Mutex<HashMap<Box<[u8]>, Outcome<T>>>);

/// What it will have come to.
type Outcome<T> = watch::Receiver<Option<T>>;

/// What one does about a key.
pub(super) enum Flight<T: Clone> {
    /// It does the work, and lands with what came of it.
    First(Leader<T>),
    /// It waits for the one that does.
    Other(Follower<T>),
}

/// The one that does the work. Dropped before it has landed, it leaves the key to the next.
pub(super) struct Leader<T: Clone> {
    flights: Arc<Flights<T>>,
    key: Box<[u8]>,
    outcome: watch::Sender<Option<T>>,
}

/// One that waits.
pub(super) struct Follower<T>(Outcome<T>);

impl<T: Clone> Flights<T> {
    pub(super) fn new() -> Self {
        Self(Mutex::new(HashMap::new()))
    }

    /// Joins what is under way for this key, or begins it.
    pub(super) fn join(self: &Arc<Self>, key: &[u8]) -> Flight<T> {
        let mut flights = lock(&self.0);
        if let Some(under_way) = flights.get(key) {
            return Flight::Other(Follower(under_way.clone()));
        }
        let (outcome, under_way) = watch::channel(None);
        flights.insert(key.into(), under_way);
        drop(flights);
        Flight::First(Leader { flights: self.clone(), key: key.into(), outcome })
    }
}

impl<T: Clone> Leader<T> {
    /// Tells all who wait, and ends.
    pub(super) fn land(self, outcome: T) {
        self.outcome.send_replace(Some(outcome));
    }
}

impl<T: Clone> Drop for Leader<T> {
    /// Who comes from now on begins anew; who waits is told by the sender's own drop.
    fn drop(&mut self) {
        lock(&self.flights.0).remove(&self.key);
    }
}

impl<T: Clone> Follower<T> {
    /// What it came to; `None` where it was given up.
    pub(super) async fn outcome(mut self) -> Option<T> {
        let outcome = self.0.wait_for(Option::is_some).await.ok()?;
        outcome.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn others_share_what_the_first_has_landed_with() {
        let flights = Arc::new(Flights::new());
        let Flight::First(leader) = flights.join(b"k") else { panic!("it is the first") };
        let Flight::Other(other) = flights.join(b"k") else { panic!("it is the second") };
        assert!(matches!(flights.join(b"other"), Flight::First(_)));
        leader.land(7);
        assert_eq!(other.outcome().await, Some(7));
        assert!(matches!(flights.join(b"k"), Flight::First(_)), "it has ended");
    }

    #[tokio::test]
    async fn a_flight_that_is_given_up_is_begun_by_another() {
        let flights = Arc::new(Flights::<()>::new());
        let Flight::First(leader) = flights.join(b"k") else { panic!("it is the first") };
        let Flight::Other(other) = flights.join(b"k") else { panic!("it is the second") };
        drop(leader);
        assert_eq!(other.outcome().await, None);
        assert!(matches!(flights.join(b"k"), Flight::First(_)));
    }
}
