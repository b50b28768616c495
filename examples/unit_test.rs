//! A unit test of code that takes locks: no server, no waiting, and a fault.
//!
//! Run it by `cargo test --example unit_test`.

#![cfg_attr(not(test), expect(dead_code, reason = "the tests call it"))]
#![expect(clippy::disallowed_methods, reason = "users sleep by tokio; this library by its clock")]

use std::time::Duration;

use quorlock::{Error, Locker};

fn main() {
    println!("this is a test: cargo test --example unit_test");
}

/// The code under test: a minute of work under a lock of ten seconds, which is extended.
async fn settle(locker: &Locker) -> Result<&'static str, Error> {
    let guard = locker.lock("invoice:7").await?;
    tokio::select! {
        _ = guard.lost() => Ok("given up"),
        () = tokio::time::sleep(Duration::from_secs(60)) => Ok("settled"),
    }
}

#[cfg(test)]
mod tests {
    use quorlock::testing::{Nodes, Reaction, When};

    #[tokio::test(start_paused = true)]
    async fn work_ends_with_the_lock() -> Result<(), quorlock::Error> {
        let nodes = Nodes::new(5);
        let locker = nodes.locker().build()?;
        assert_eq!(super::settle(&locker).await?, "settled"); // a minute, in no time
        nodes.add(When::before("extend").from(3).then(Reaction::Hang)); // on each node
        assert_eq!(super::settle(&locker).await?, "given up");
        Ok(())
    }
}
