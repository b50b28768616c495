//! The command that `quorlock lock` runs: it holds the lock for as long as it lives, and says so.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

use super::Pen;
use crate::Failure;
use crate::args::ClientArgs;
use crate::clock;
use crate::dice::Dice;
use crate::line::Line;

/// The name by which a client process is started as this command.
pub(super) const NAME: &str = "child";

/// How often it says that it lives.
const BEAT: Duration = Duration::from_millis(2);

/// Lives for a while that chance decides, mostly longer than a TTL.
pub(super) async fn work(args: &ClientArgs) -> Result<(), Failure> {
    let key = std::env::var("QUORLOCK_KEY")?;
    let mut dice = Dice::new(args.seed, 1);
    let ttl = Duration::from_millis(args.ttl_ms);
    let length = dice.between(ttl / 4, ttl * 4);
    // A command that does not end when it is asked to must be killed in time.
    let deaf = dice.percent(50).then(|| signal(SignalKind::terminate()));
    let (pen, hold, began) = (Pen::default(), u64::from(std::process::id()), clock::now());
    // It claims no more than that it lives now.
    pen.write(&Line::Granted { hold, key, at: began, until: began });
    while clock::between(began, clock::now()) < length {
        sleep(BEAT).await;
        let at = clock::now();
        pen.write(&Line::Held { hold, at, until: at });
    }
    pen.write(&Line::Ended { hold, at: clock::now(), how: "command".into() });
    drop(deaf);
    Ok(())
}
