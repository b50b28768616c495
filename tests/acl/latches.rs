//! Latches and barriers.

use std::cell::Cell;
use std::time::Duration;

use support::Server;

use super::{Outcome, builder, check, ready, said, soon};

pub(super) async fn latch(_server: &Server, url: &str) -> Outcome {
    let locker = ready(builder(url)).await?;
    let latch = locker.latch("l", 2).map_err(said)?;
    check(!latch.arrive("a").await.map_err(said)?.is_open(), "it is open early")?;
    check(latch.arrive("b").await.map_err(said)?.is_open(), "it does not open")?;
    latch.wait().await.map_err(said)
}

/// One waits, asks nothing meanwhile, and is told when the other has arrived.
pub(super) async fn wait_for_latch(server: &Server, url: &str) -> Outcome {
    let (one, two) = (ready(builder(url)).await?, ready(builder(url)).await?);
    let (waiting, arriving) = (one.latch("l", 1).map_err(said)?, two.latch("l", 1).map_err(said)?);
    let is_let_go = Cell::new(false);
    let wait = async {
        waiting.wait().await.map_err(said)?;
        is_let_go.set(true);
        Ok(())
    };
    let arrive = async {
        // It watches by then, and looks by the clock a second after it began; or it polls.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let looks = server.calls().of("eval");
        tokio::time::sleep(Duration::from_millis(250)).await;
        check(server.calls().of("eval") == looks, "it polls")?;
        arriving.arrive("a").await.map_err(said)?;
        soon("it is told", || is_let_go.get()).await
    };
    tokio::try_join!(wait, arrive).map(drop)
}
