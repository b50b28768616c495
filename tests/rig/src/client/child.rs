//! The command that `quorlock lock` runs: it holds the lock for as long as it lives, and says so.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

use super::Journal;
use crate::Failure;
use crate::args::ClientArgs;
use crate::clock;
use crate::line::{Line, Part};
use crate::random::Random;

/// The name by which a client process is started as this command.
pub(super) const NAME: &str = "child";

/// How often it says that it lives.
const TELL_EVERY: Duration = Duration::from_millis(2);

/// Lives for a while that chance decides, mostly longer than a TTL.
pub(super) async fn work(args: &ClientArgs) -> Result<(), Failure> {
    let key = std::env::var("QUORLOCK_KEY")?;
    let mut random = Random::new(args.seed, 1);
    let ttl = Duration::from_millis(args.ttl_ms);
    let length = random.between(ttl / 4, ttl * 4);
    // A command that does not end when it is asked to must be killed in time.
    let deaf = random.percent(50).then(|| signal(SignalKind::terminate()));
    let (journal, hold, began) = (Journal::default(), u64::from(std::process::id()), clock::now());
    // It claims no more than that it lives now.
    journal.write(&Line::Granted { hold, key, part: Part::Whole, at: began, until: began });
    while clock::between(began, clock::now()) < length {
        sleep(TELL_EVERY).await;
        let at = clock::now();
        journal.write(&Line::Held { hold, at, until: at });
    }
    journal.write(&Line::Ended { hold, at: clock::now(), how: "command".into() });
    drop(deaf);
    Ok(())
}
