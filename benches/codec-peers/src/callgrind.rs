//! Instructions per operation, counted by callgrind: the same on a quiet machine and a busy one.
//!
//! The program runs itself under `valgrind` for each operation, once with few repetitions and
//! once with many; what they differ by is the operation's own.

use std::env;
use std::hint::black_box;
use std::process::Command;

use crate::encode;
use crate::peers::all;
use crate::workload::{self, Workload};
use bytes::BytesMut;

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

/// The whole table, or what failed.
///
/// # Errors
/// When `valgrind` can not be run, or does not count.
pub fn table() -> Result<String, String> {
    let mut table = "| operation | by | instructions |\n|---|---|---:|\n".to_owned();
    for (operation, times) in DECODING {
        for (number, peer) in all().iter().enumerate() {
            let count = difference(operation, number, times)?;
            table.push_str(&format!("| {operation} | {} | {count} |\n", peer.name()));
        }
    }
    for (number, name) in ENCODING.iter().enumerate() {
        let count = difference("encode", number, 1000)?;
        table.push_str(&format!("| one lock command | {name} | {count} |\n"));
    }
    Ok(table)
}

/// Instructions of one operation.
fn difference(operation: &str, peer: usize, times: u64) -> Result<u64, String> {
    let few = count(operation, peer, times)?;
    let many = count(operation, peer, times * 3)?;
    Ok((many.saturating_sub(few) + times) / (times * 2))
}

/// Instructions of a whole run, from callgrind's last line.
fn count(operation: &str, peer: usize, times: u64) -> Result<u64, String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program);
    command.args([operation, &peer.to_string(), &times.to_string()]);
    let output = command.output().map_err(|error| format!("valgrind: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let collected = text.lines().find_map(|line| line.split_once("Collected : "));
    let count = collected.and_then(|(_, count)| count.trim().parse().ok());
    count.ok_or_else(|| format!("no count in: {text}"))
}

/// Runs one operation so many times, if `args` ask for it: what [`table`] starts this program for.
pub fn worker(args: &[String]) -> bool {
    let [operation, peer, times] = args else { return false };
    let (Ok(peer), Ok(times)) = (peer.parse(), times.parse()) else { return false };
    work(operation, peer, times);
    true
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
