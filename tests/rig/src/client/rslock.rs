//! The `rslock` crate as a client, with its defaults but for the number of tries.

use std::sync::Arc;
use std::time::Duration;

use ::rslock::LockManager;
use tokio::time::sleep;

use super::{Journal, inbox};
use crate::Failure;
use crate::args::ClientArgs;
use crate::clock;
use crate::line::{Line, Part};
use crate::random::Random;

pub(super) async fn work(args: Arc<ClientArgs>) -> Result<(), Failure> {
    let (journal, (stop, _)) = (Journal::default(), inbox::listen());
    let mut random = Random::new(args.seed, 77_000 + args.slot as u64);
    let mut manager = LockManager::new(args.urls.clone());
    manager.set_retry(1, Duration::from_millis(20));
    let ttl = Duration::from_millis(args.ttl_ms);
    let pause = Duration::from_secs(1).mul_f64(1.0 / args.rate.max(0.1));
    while !stop.is_set() {
        let key = format!("k{}", random.below(args.keys));
        let full = [args.prefix.as_bytes(), key.as_bytes()].concat();
        let asked = clock::now();
        match manager.lock(full.as_slice(), ttl).await {
            Ok(lock) => {
                let (at, hold) = (clock::now(), journal.number());
                // Its own word, and no more than it can have had when it was asked.
                let valid = Duration::from_millis(lock.validity_time as u64);
                let until = (at + clock::nanos(valid)).min(asked + clock::nanos(ttl));
                journal.write(&Line::Granted { hold, key, part: Part::Whole, at, until });
                sleep(random.between(Duration::ZERO, Duration::from_millis(30))).await;
                journal.write(&Line::Ended { hold, at: clock::now(), how: "unlock".into() });
                manager.unlock(&lock).await;
            }
            Err(error) => journal.count(if error.to_string().contains("unavailable") {
                "busy"
            } else {
                "failed"
            }),
        }
        sleep(random.between(pause / 2, pause * 3 / 2)).await;
    }
    Ok(())
}
