//! All decoders and encoders, each workload one group. The first row of each group stands twice,
//! ours against ours: what differs less than those two is no difference.

use std::hint::black_box;
use std::time::Duration;

use bytes::BytesMut;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use quorlock_codec_peers::peers::{OursOneByOne, RustisIndex, all};
use quorlock_codec_peers::{check, encode, workload};

fn decode(criterion: &mut Criterion) {
    check();
    for workload in [workload::ok(), workload::lock_replies(), workload::mixed()] {
        let mut group = criterion.benchmark_group(workload.name);
        group.throughput(Throughput::Bytes(workload.bytes.len() as u64));
        for (number, mut peer) in all().into_iter().chain(all().into_iter().take(1)).enumerate() {
            let again = if number == all().len() { " again (A/A)" } else { "" };
            group.bench_function(format!("{}{again}", peer.name()), |bencher| {
                bencher.iter(|| black_box(peer.drain(black_box(&workload))));
            });
        }
        let (mut ours, mut index) = (OursOneByOne::default(), RustisIndex::new());
        group.bench_function("one by one: quorlock-resp", |bencher| {
            bencher.iter(|| black_box(ours.drain(black_box(&workload))));
        });
        group.bench_function("one by one: rustis 0.27.2, values unread", |bencher| {
            bencher.iter(|| black_box(index.drain(black_box(&workload))));
        });
        group.finish();
    }
}

fn chunked(criterion: &mut Criterion) {
    let large = workload::large();
    for size in [1, 1024, 65_536] {
        let mut group = criterion.benchmark_group(format!("{} by {size}", large.name));
        group.throughput(Throughput::Bytes(large.bytes.len() as u64));
        for (number, mut peer) in all().into_iter().chain(all().into_iter().take(1)).enumerate() {
            let again = if number == all().len() { " again (A/A)" } else { "" };
            group.bench_function(format!("{}{again}", peer.name()), |bencher| {
                bencher.iter(|| black_box(peer.chunked(black_box(&large), size)));
            });
        }
        group.finish();
    }
}

type IntoVector = fn(&mut Vec<u8>);

fn commands(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("one lock command");
    let template = encode::template();
    let mut out = Vec::with_capacity(4096);
    for name in ["quorlock-resp", "quorlock-resp again (A/A)"] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                out.clear();
                encode::ours(black_box(&template), &mut out);
                black_box(out.len())
            });
        });
    }
    let into_vectors: [(&str, IntoVector); 3] = [
        ("quorlock-resp, no template", encode::ours_plain),
        ("redis 1.8.1", encode::redis),
        ("rustis 0.27.2", encode::rustis),
    ];
    for (name, encode) in into_vectors {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                out.clear();
                encode(&mut out);
                black_box(out.len())
            });
        });
    }
    let mut buffer = BytesMut::with_capacity(4096);
    group.bench_function("redis-protocol 6.0.0", |bencher| {
        bencher.iter(|| {
            buffer.clear();
            encode::redis_protocol(&mut buffer);
            black_box(buffer.len())
        });
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1500))
        .sample_size(40);
    targets = decode, chunked, commands
}
criterion_main!(benches);
