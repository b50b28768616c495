//! Instructions per operation, counted by callgrind: the same on a quiet machine and a busy one.
//!
//! `cargo run --release -p quorlock-codec-peers --bin instructions` runs itself under `valgrind`
//! for each operation, once with few repetitions and once with many; what they differ by is the
//! operation's own.

use std::env;
use std::hint::black_box;
use std::process::{Command, ExitCode};

use bytes::BytesMut;
use quorlock_codec_peers::peers::all;
use quorlock_codec_peers::workload::{self, Workload};
use quorlock_codec_peers::{check, encode};

/// Operations: a name, and how often it runs at least.
const DECODING: [(&str, u64); 3] =
    [("one +OK", 1000), ("10,000 lock replies", 2), ("3,000 mixed RESP3 replies", 2)];
const ENCODING: [&str; 5] = [
    "quorlock-resp",
    "quorlock-resp, no template",
    "redis 1.8.1",
    "redis-protocol 6.0.0",
    "rustis 0.27.2",
];

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => table(),
        [operation, peer, times] => {
            let (Ok(peer), Ok(times)) = (peer.parse(), times.parse()) else {
                return ExitCode::from(64);
            };
            work(operation, peer, times);
            ExitCode::SUCCESS
        }
        _ => ExitCode::from(64),
    }
}

fn table() -> ExitCode {
    check();
    println!("| operation | decoder or encoder | instructions |\n|---|---|---|");
    for (operation, times) in DECODING {
        for (number, peer) in all().iter().enumerate() {
            let Some(count) = difference(operation, number, times) else {
                return ExitCode::FAILURE;
            };
            println!("| {operation} | {} | {count} |", peer.name());
        }
    }
    for (number, name) in ENCODING.iter().enumerate() {
        let Some(count) = difference("encode", number, 1000) else { return ExitCode::FAILURE };
        println!("| one lock command | {name} | {count} |");
    }
    ExitCode::SUCCESS
}

/// Instructions of one operation.
fn difference(operation: &str, peer: usize, times: u64) -> Option<u64> {
    let few = count(operation, peer, times)?;
    let many = count(operation, peer, times * 3)?;
    Some((many.saturating_sub(few) + times) / (times * 2))
}

/// Instructions of a whole run, from callgrind's last line.
fn count(operation: &str, peer: usize, times: u64) -> Option<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(env::current_exe().ok()?)
        .args([operation, &peer.to_string(), &times.to_string()])
        .output();
    let output = output.map_err(|error| eprintln!("valgrind: {error}")).ok()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let collected = text.lines().find_map(|line| line.split_once("Collected : "));
    if collected.is_none() {
        eprintln!("no count in: {text}");
    }
    collected?.1.trim().parse().ok()
}

fn work(operation: &str, peer: usize, times: u64) {
    if operation == "encode" {
        return encode_by(peer, times);
    }
    let workloads: [Workload; 3] = [workload::ok(), workload::lock_replies(), workload::mixed()];
    let Some(workload) = workloads.iter().find(|workload| workload.name == operation) else {
        return;
    };
    if let Some(peer) = all().get_mut(peer) {
        for _ in 0..times {
            black_box(peer.drain(black_box(workload)));
        }
    }
}

fn encode_by(peer: usize, times: u64) {
    let template = encode::template();
    let mut out = Vec::with_capacity(4096);
    let mut buffer = BytesMut::with_capacity(4096);
    for _ in 0..times {
        out.clear();
        buffer.clear();
        match peer {
            0 => encode::ours(black_box(&template), &mut out),
            1 => encode::ours_plain(&mut out),
            2 => encode::redis(&mut out),
            3 => encode::redis_protocol(&mut buffer),
            _ => encode::rustis(&mut out),
        }
        black_box((out.len(), buffer.len()));
    }
}
