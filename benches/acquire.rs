//! The fan-out: one lock, taken and released by one caller, a number for a developer's five
//! minutes. What one link does is in `link`.
//!
//! It needs a server (see `tests/servers`) and says so where there is none. For claims beside the
//! raw sockets and the peers, in interleaved rounds, there is `benches/peers`.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up ends on the spot")]

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use quorlock::Locker;
use support::{Fleet, tools};
use tokio::runtime::Builder;

fn acquire(criterion: &mut Criterion) {
    if let Err(why) = tools::find_server() {
        println!("skipped: {why}");
        return;
    }
    let mut group = criterion.benchmark_group("acquire_and_release");
    group.sample_size(30).measurement_time(Duration::from_secs(3));
    for nodes in [1, 5] {
        let fleet = Fleet::start(nodes);
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let locker = runtime.block_on(async {
            let locker = Locker::quorum(fleet.urls()).unwrap().build().unwrap();
            locker.ready(Duration::from_secs(5)).await.unwrap();
            locker
        });
        group.bench_function(format!("{nodes}_nodes"), |bencher| {
            bencher.iter(|| {
                runtime.block_on(async {
                    let guard = locker.lock("bench").await.unwrap();
                    assert!(guard.release().await.unwrap().is_released());
                });
            });
        });
    }
    group.finish();
}

criterion_group!(benches, acquire);
criterion_main!(benches);
