//! Locks on plain threads: no async code, no runtime of yours.
//!
//! ```sh
//! cargo run --example plain_threads --features blocking  # on nodes of its own
//! cargo run --example plain_threads --features blocking -- redis://127.0.0.1:6379
//! ```

use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use quorlock::Locker as AsyncLocker;
use quorlock::blocking::{LockGuard, Locker};
use quorlock::testing::Nodes;

type Done = Result<(), Box<dyn Error + Send + Sync>>;

const TELLERS: u32 = 4;
const DEPOSITS: u32 = 25;

/// Stands for a database: between reading a balance and writing it, others may do the same.
struct Account(AtomicU32);

impl Account {
    fn deposit(&self, guard: &LockGuard, amount: u32) -> Done {
        let balance = self.0.load(Ordering::SeqCst);
        thread::sleep(Duration::from_millis(1));
        // The guard is kept alive by a thread of the locker's. Where work must not be done too
        // late, it asks whether the lock is still held.
        if !guard.is_valid() {
            return Err("the lock was lost before the deposit".into());
        }
        self.0.store(balance + amount, Ordering::SeqCst);
        Ok(())
    }
}

fn main() -> Done {
    let urls: Vec<String> = std::env::args().skip(1).collect();
    let nodes = Nodes::new(3);
    let builder = if urls.is_empty() { nodes.locker() } else { AsyncLocker::quorum(urls)? };
    let locker = builder.prefix("bank:").build_blocking()?;

    let account = Account(AtomicU32::new(0));
    thread::scope(|scope| {
        let teller = || deposits(&locker, &account);
        let tellers: Vec<_> = (0..TELLERS).map(|_| scope.spawn(teller)).collect();
        let panicked = |_| Err("a teller has panicked".into());
        tellers.into_iter().try_for_each(|teller| teller.join().unwrap_or_else(panicked))
    })?;
    println!("{} of {} deposits", account.0.load(Ordering::SeqCst), TELLERS * DEPOSITS);
    // Waits until every node has been told what is released.
    locker.shutdown(Duration::from_secs(1))?;
    Ok(())
}

fn deposits(locker: &Locker, account: &Account) -> Done {
    for _ in 0..DEPOSITS {
        let request = locker.lock("account:7").wait(Duration::from_secs(10));
        request.run(|guard| account.deposit(guard, 1))?;
    }
    Ok(())
}
