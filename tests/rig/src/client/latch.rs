//! One turn at a latch: a party arrives, or looks, in one of the ways there are.

use std::time::Duration;

use quorlock::{Error, LatchState, Locker};
use tokio::time::timeout;

use super::Journal;
use super::lease::tell;
use crate::args::LATCH_PARTIES;
use crate::clock;
use crate::latches::LatchLook;
use crate::line::Line;
use crate::random::Random;

/// All clients take the next latch after so long.
const ROUND: Duration = Duration::from_millis(400);

/// Arrives at the latch of this moment or of the one before, or looks at it.
pub(super) async fn turn(locker: &Locker, journal: &Journal, random: &mut Random, ttl: Duration) {
    let round = clock::now() / clock::nanos(ROUND) - u64::from(random.percent(30));
    let key = format!("latch{round}");
    let latch = locker.latch(&key, LATCH_PARTIES).and_then(|latch| latch.ttl(ttl));
    let latch = match latch {
        Ok(latch) => latch,
        Err(error) => return tell(journal, &error),
    };
    // A party may arrive from two processes at once, and again.
    let party = random.below(LATCH_PARTIES as u64);
    let party = random.percent(50).then(|| format!("party{party}"));
    if let Some(party) = &party {
        let (latch, party) = (key.clone(), party.clone());
        journal.write(&Line::Arriving { latch, party, at: clock::now() });
    }
    let patience = random.between(Duration::ZERO, ttl / 4);
    let began = clock::now();
    let told: Option<Result<LatchState, Error>> = match (&party, random.below(4)) {
        (Some(party), 0) => timeout(patience, latch.arrive(party)).await.ok(),
        (Some(party), 1) => {
            let waited = timeout(patience, latch.arrive_and_wait(party)).await.ok();
            waited.map(|waited| waited.map(|()| LatchState::Open))
        }
        (Some(party), _) => Some(latch.arrive(party).await),
        (None, 0) => timeout(patience, latch.state()).await.ok(),
        (None, 1) => Some(latch.wait_timeout(patience).await),
        (None, _) => Some(latch.state().await),
    };
    let missing = match told {
        Some(Ok(LatchState::Open)) => 0,
        Some(Ok(LatchState::Closed { missing, .. })) => missing,
        Some(Ok(state)) => return journal.write(&Line::Broken(format!("a latch is {state:?}"))),
        Some(Err(error)) => return tell(journal, &error),
        None => return journal.count("latch-cancelled"),
    };
    let ended = clock::now();
    journal.write(&Line::Latch(LatchLook { latch: key, began, ended, missing, party }));
}
