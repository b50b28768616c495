//! What one cycle (acquire, release) costs in instructions of this process, counted by callgrind:
//! the same on a quiet machine and on a busy one, but for how many replies one wait finds. With
//! many callers it is what a reply and a command cost beyond the system calls that they share.
//!
//! `cargo bench -p quorlock --bench instructions` runs itself twice under valgrind against five
//! servers; the difference of the two counts is what so many more cycles cost. (`-p` keeps Cargo
//! from adding the features of tokio that the program needs, which cost 300 instructions a cycle.)
//! It prints a table in Markdown, with the functions that cost most. The counts of the past are in
//! `benches/record/`.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "it ends when it cannot be set up")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use quorlock::Locker;
use support::{Fleet, tools};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

/// Where the cycles run, for the process under valgrind.
const PLACE: &str = "QUORLOCK_COUNT_PLACE";
const CYCLES: &str = "QUORLOCK_COUNT_CYCLES";
const NODES: &str = "QUORLOCK_COUNT_NODES";
const CALLERS: &str = "QUORLOCK_COUNT_CALLERS";

/// The runtimes, and how many callers use the locker at once.
const CASES: [(&str, u32); 4] = [("current", 1), ("multi", 1), ("current", 64), ("multi", 64)];

/// The two counts differ by so many cycles, of all callers together.
const FEW: u32 = 640;
const MANY: u32 = 3_200;

/// How many functions are named.
const NAMED: usize = 25;

fn main() {
    if let Ok(place) = std::env::var(PLACE) {
        return count(&place);
    }
    if let Err(why) = tools::find_server() {
        println!("skipped: {why}");
        return;
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("skipped: valgrind is not installed");
        return;
    }
    let fleet = Fleet::start(5);
    let nodes = fleet.urls().join(",");
    println!("| runtime | callers | instructions per cycle |\n|---|---:|---:|");
    let mut functions = String::new();
    for case in CASES {
        let (few, many) = (profile(case, FEW, &nodes), profile(case, MANY, &nodes));
        let per_cycle = |total: i64| total / i64::from(MANY - FEW);
        let (place, callers) = case;
        println!("| {place} | {callers} | {} |", per_cycle(total(&many) - total(&few)));
        functions += &format!("\nOf these, {place}, {callers} callers:\n\n");
        functions += "| instructions | function |\n|---:|---|\n";
        let mut costs: Vec<_> = many
            .iter()
            .map(|(name, count)| (per_cycle(count - few.get(name).unwrap_or(&0)), name))
            .collect();
        costs.sort_unstable_by(|a, b| b.cmp(a));
        for (cost, name) in costs.iter().take(NAMED) {
            functions += &format!("| {cost} | `{name}` |\n");
        }
    }
    println!("{functions}");
}

/// Runs the cycles: this is what valgrind looks at.
fn count(place: &str) {
    let number = |name| std::env::var(name).unwrap().parse::<u32>().unwrap();
    let (cycles, callers) = (number(CYCLES), number(CALLERS));
    let nodes = std::env::var(NODES).unwrap();
    let runtime = runtime(place);
    runtime.block_on(async move {
        let locker = Locker::quorum(nodes.split(',')).unwrap().build().unwrap();
        locker.ready(std::time::Duration::from_secs(60)).await.unwrap();
        let mut tasks = JoinSet::new();
        for caller in 0..callers {
            let (locker, key) = (locker.clone(), format!("counted-{caller}"));
            tasks.spawn(async move {
                for _ in 0..cycles / callers {
                    let guard = locker.lock(&key).await.unwrap();
                    assert!(guard.release().await.unwrap().is_released());
                }
            });
        }
        tasks.join_all().await;
    });
}

fn runtime(place: &str) -> Runtime {
    let mut builder = match place {
        "multi" => Builder::new_multi_thread(),
        _ => Builder::new_current_thread(),
    };
    builder.worker_threads(2).enable_all().build().unwrap()
}

/// The instructions of each function in a run of so many cycles.
fn profile((place, callers): (&str, u32), cycles: u32, nodes: &str) -> BTreeMap<String, i64> {
    let out = std::env::temp_dir().join(format!("quorlock-count-{}", std::process::id()));
    let ran = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(std::env::current_exe().unwrap())
        .envs([(PLACE, place), (NODES, nodes)])
        .envs([(CYCLES, cycles.to_string()), (CALLERS, callers.to_string())])
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let functions = read(&out);
    std::fs::remove_file(&out).unwrap();
    functions
}

/// The cost of each function by itself, of callgrind's own format: `fn=(number) name` begins a
/// function, a line of a position and a count adds to it, and what follows `calls=` is another's.
fn read(out: &Path) -> BTreeMap<String, i64> {
    let text = std::fs::read_to_string(out).unwrap();
    let (mut names, mut costs) = (BTreeMap::new(), BTreeMap::new());
    let (mut current, mut is_call) = (String::new(), false);
    for line in text.lines() {
        if let Some(function) = line.strip_prefix("fn=") {
            let (number, name) = function.split_once(')').expect("(number) name");
            if !name.is_empty() {
                names.insert(number.to_owned(), name.trim().to_owned());
            }
            current.clone_from(&names[number]);
        } else if let Some(function) = line.strip_prefix("cfn=") {
            if let Some((number, name)) = function.split_once(") ") {
                names.insert(number.to_owned(), name.trim().to_owned());
            }
        } else if line.starts_with("calls=") {
            is_call = true;
        } else if let Some(count) = cost_of(line).filter(|_| !std::mem::take(&mut is_call)) {
            *costs.entry(current.clone()).or_default() += count;
        }
    }
    costs
}

fn cost_of(line: &str) -> Option<i64> {
    let (position, count) = line.split_once(' ')?;
    position
        .starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first))
        .then_some(())?;
    count.parse().ok()
}

fn total(functions: &BTreeMap<String, i64>) -> i64 {
    functions.values().sum()
}
