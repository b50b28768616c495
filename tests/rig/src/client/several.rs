//! A lock of several keys, beside those who want one of them: had as a whole, or not at all.

use std::future::IntoFuture;
use std::time::Duration;

use quorlock::{LockGuard, Locker};
use tokio::time::{sleep, timeout};

use super::lease::{begin, end, see, tell, tell_release};
use super::{Journal, Stop};
use crate::random::Random;

/// Asks for all of these keys at once: tries, waits, or gives up soon. Works, and lets go of them.
pub(super) async fn turn(
    locker: &Locker,
    (journal, stop): (&Journal, &Stop),
    random: &mut Random,
    (keys, ttl): (Vec<String>, Duration),
) {
    let request = locker.lock_all(&keys).ttl(ttl);
    let patience = random.between(Duration::ZERO, ttl / 4);
    let got = match random.below(10) {
        0..=3 => request.try_acquire().await,
        4..=7 => request.await.map(Some),
        _ => match timeout(patience, request.into_future()).await {
            Ok(got) => got.map(Some),
            Err(_) => return journal.count("several-cancelled"),
        },
    };
    match got {
        Ok(Some(guard)) => hold(journal, stop, random, (&keys, guard)).await,
        Ok(None) => journal.count("several-busy"),
        Err(error) => tell(journal, &error),
    }
}

/// Each key is a hold of its own in what is written down.
async fn hold(
    journal: &Journal,
    stop: &Stop,
    random: &mut Random,
    (keys, guard): (&[String], LockGuard),
) {
    journal.count("several-granted");
    let holds: Vec<u64> =
        keys.iter().filter_map(|key| begin(journal, (key, false), &guard)).collect();
    let looks = random.below(8);
    for _ in 0..looks {
        sleep(random.between(Duration::from_millis(1), Duration::from_millis(15))).await;
        let seen = holds.iter().filter(|hold| see(journal, **hold, &guard)).count();
        if seen < holds.len() || stop.is_set() {
            break;
        }
    }
    let is_dropped = random.percent(40);
    holds.iter().for_each(|hold| end(journal, *hold, if is_dropped { "drop" } else { "release" }));
    if is_dropped {
        return drop(guard);
    }
    tell_release(journal, &guard.release().await);
}
