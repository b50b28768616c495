//! Asking the holder of a lock, in whatever process, to let go of it.

use std::time::Duration;

use quorlock::Locker;
use tokio::time::timeout;

use super::Journal;
use super::lease::tell;
use crate::clock;
use crate::line::Line;

/// Asks the holder of this lock, and writes down by when it must be over.
pub(super) async fn revoke(locker: &Locker, journal: &Journal, key: String, patience: Duration) {
    let at = clock::now();
    match timeout(patience, locker.revoke(&key)).await {
        Err(_) => journal.count("revocation-cancelled"),
        Ok(Err(error)) => tell(journal, &error),
        Ok(Ok(None)) => journal.count("nothing-to-revoke"),
        Ok(Ok(Some(revocation))) => {
            // `over_in` counts from the call's end, before this reading.
            let over_by = clock::now() + clock::nanos(revocation.over_in);
            journal.write(&Line::Revoked { key, at, over_by });
        }
    }
}
