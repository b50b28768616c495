//! One link: a command's round trip, and many commands behind each other, through `Client`.
//!
//! What the fan-out to several nodes adds is in `acquire`. It needs a server (see `tests/servers`)
//! and says so where there is none.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up ends on the spot")]

use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use quorlock::Client;
use support::{Server, tools};
use tokio::runtime::Builder;

/// Commands of one pipeline.
const MANY: usize = 1_000;

fn link(criterion: &mut Criterion) {
    if let Err(why) = tools::find_server() {
        println!("skipped: {why}");
        return;
    }
    let server = Server::start();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let client = Client::new(server.url()).unwrap();
    runtime.block_on(client.command(["PING"])).unwrap();

    let mut group = criterion.benchmark_group("one_link");
    group.sample_size(30).measurement_time(Duration::from_secs(3));
    group.bench_function("round_trip", |bencher| {
        bencher.iter(|| runtime.block_on(client.command(["PING"])).unwrap());
    });
    group.throughput(Throughput::Elements(MANY as u64));
    group.bench_function(format!("pipeline_of_{MANY}"), |bencher| {
        bencher.iter(|| {
            let mut pipeline = client.pipeline();
            for _ in 0..MANY {
                pipeline.command(["PING"]);
            }
            let replies = runtime.block_on(pipeline.run()).unwrap();
            assert_eq!(replies.len(), MANY);
        });
    });
    group.finish();
}

criterion_group!(benches, link);
criterion_main!(benches);
