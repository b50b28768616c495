//! Prints a record of the codec's speed beside its peers', to be kept under `benches/record`.
//!
//! `cargo run --release -p quorlock-codec-peers --bin record -- 2026-11-21`; with `--no-valgrind`
//! as a second argument it leaves the instruction counts out.

use std::env;
use std::fs;
use std::hint::black_box;
use std::process::{Command, ExitCode};

use bytes::BytesMut;
use quorlock_codec_peers::interleave::{self, Contestant};
use quorlock_codec_peers::peers::{OursOneByOne, RustisIndex, all};
use quorlock_codec_peers::workload::{self, Workload};
use quorlock_codec_peers::{callgrind, check, encode};

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    if callgrind::worker(&args) {
        return ExitCode::SUCCESS;
    }
    let Some(date) = args.first() else {
        eprintln!("usage: record DATE [--no-valgrind]");
        return ExitCode::from(64);
    };
    check();
    head(date);
    for workload in [workload::ok(), workload::lock_replies(), workload::mixed()] {
        decode(&workload);
    }
    for size in [1, 1024, 65_536] {
        chunked(size);
    }
    commands();
    if args.get(1).map(String::as_str) == Some("--no-valgrind") {
        return ExitCode::SUCCESS;
    }
    match callgrind::table() {
        Ok(table) => println!("## Instructions (callgrind)\n\n{table}"),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn head(date: &str) {
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        processor.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cores = processor.lines().filter(|line| line.starts_with("processor")).count();
    let system = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let rustc = Command::new("rustc").arg("--version").output().map(|output| output.stdout);
    println!("# The codec beside its peers, {date}\n");
    println!("```\ncargo run --release -p quorlock-codec-peers --bin record -- {date}\n```\n");
    println!(
        "{} × {}, Linux {}, load {} when it began; {}; release profile of the workspace.\n",
        cores,
        model.map_or("unknown processor", |(_, model)| model),
        system.trim(),
        load.split(' ').next().unwrap_or_default(),
        String::from_utf8_lossy(&rustc.unwrap_or_default()).trim(),
    );
    println!(
        "All in one process, interleaved in 31 rounds, processor time; every peer's values were \
         compared with ours before. `ratio` is time relative to ours in the same round: the \
         median, and its 95 % bootstrap interval. The row *again* is ours against ours: a ratio \
         whose interval overlaps that row's is no difference.\n"
    );
}

fn print(title: &str, unit: &str, rows: &[interleave::Row]) {
    println!("## {title}\n\n| by | {unit} | ratio |\n|---|---:|---|");
    for row in rows {
        let (ratio, low, high) = row.ratio;
        let time = row.nanoseconds;
        let time =
            if time < 1e4 { format!("{time:.1} ns") } else { format!("{:.1} µs", time / 1e3) };
        println!("| {} | {time} | {ratio:.2} ({low:.2} to {high:.2}) |", row.name);
    }
    println!();
}

fn decode(workload: &Workload) {
    let names = [0, 0, 1, 2, 3];
    let mut contestants: Vec<Contestant<'_>> = names
        .iter()
        .enumerate()
        .filter_map(|(number, &peer)| {
            let mut peer = all().into_iter().nth(peer)?;
            let again = if number == 1 { ", again" } else { "" };
            let name = format!("{}{again}", peer.name());
            Some(Contestant { name, run: Box::new(move || peer.drain(workload)) })
        })
        .collect();
    print(workload.name, "time", &interleave::run(&mut contestants));
    let (mut ours, mut index) = (OursOneByOne::default(), RustisIndex::new());
    let mut contestants = [
        Contestant {
            name: "quorlock-resp".to_owned(),
            run: Box::new(move || ours.drain(workload)),
        },
        Contestant {
            name: "rustis 0.27.2, values left unread (less work)".to_owned(),
            run: Box::new(move || index.drain(workload)),
        },
    ];
    let title = format!("{}, each reply given by itself", workload.name);
    print(&title, "time", &interleave::run(&mut contestants));
}

fn chunked(size: usize) {
    let large = workload::large();
    let mut contestants: Vec<Contestant<'_>> = [0, 0, 1, 2, 3]
        .iter()
        .enumerate()
        .filter_map(|(number, &peer)| {
            let mut peer = all().into_iter().nth(peer)?;
            let again = if number == 1 { ", again" } else { "" };
            let name = format!("{}{again}", peer.name());
            let large = &large;
            let run = move || peer.chunked(large, size);
            Some(Contestant { name, run: Box::new(run) })
        })
        .collect();
    print(
        &format!("{} in chunks of {size}", large.name),
        "time",
        &interleave::run(&mut contestants),
    );
}

type Encode = Box<dyn FnMut(&mut Vec<u8>)>;

fn commands() {
    let template = encode::template();
    let into = |name: &str, mut encode: Encode| {
        let mut out = Vec::with_capacity(4096);
        let run = move || {
            out.clear();
            encode(&mut out);
            out.len()
        };
        Contestant { name: name.to_owned(), run: Box::new(run) }
    };
    let filled = || {
        let template = template.clone();
        Box::new(move |out: &mut Vec<u8>| encode::ours(black_box(&template), out))
    };
    let mut buffer = BytesMut::with_capacity(4096);
    let mut contestants = [
        into("quorlock-resp", filled()),
        into("quorlock-resp, again", filled()),
        into("quorlock-resp, no template", Box::new(encode::ours_plain)),
        into("redis 1.8.1", Box::new(encode::redis)),
        Contestant {
            name: "redis-protocol 6.0.0".to_owned(),
            run: Box::new(move || {
                buffer.clear();
                encode::redis_protocol(&mut buffer);
                buffer.len()
            }),
        },
        into("rustis 0.27.2", Box::new(encode::rustis)),
    ];
    print("One lock command", "time", &interleave::run(&mut contestants));
}
