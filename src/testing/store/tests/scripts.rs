//! The functions that stand in for the locks' scripts, beside the Lua itself.

use std::collections::BTreeSet;

use bytes::Bytes;
use quorlock_resp::Frame;

use super::super::script::{names, script_name};
use super::super::sha1::digest;
use super::super::{Dialect, Setup, Version};
use super::bench::Node;
use super::table::{FILES, SCRIPTS, read};
use super::{RELEASE, World, snippets};
use crate::testing::wire;

/// The servers that differ in their words, with their place in [`snippets::KINDS`]. A node that
/// poses as none speaks as the latest Redis.
fn versions() -> [(Version, usize); 4] {
    let redis = |version| Version::redis(version).unwrap();
    let valkey = Version::valkey("9.1.2").unwrap();
    [(Version::default(), 1), (redis("6.2.14"), 0), (redis("7.0.15"), 1), (valkey, 2)]
}

#[test]
fn every_file_and_every_script_has_its_row() {
    let folders = ["lock", "lease", "link"];
    let folders = folders.map(|room| format!("{}/src/{room}/script", env!("CARGO_MANIFEST_DIR")));
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut files: Vec<String> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    files.sort_unstable();
    assert_eq!(files, FILES.map(|(name, _)| name), "the table has every file");
    let used = |name| SCRIPTS.iter().any(|script| script.files.contains(&name));
    assert!(FILES.iter().all(|(name, _)| used(*name)), "every file is part of a script");
    for script in &SCRIPTS {
        assert_eq!(script_name(script.text().as_bytes()), Some(script.name), "as nodes know it");
    }
    assert_eq!(names().count(), SCRIPTS.len(), "the table has every script");
}

/// An unoptimised build, which needs a minute for all cases, runs one in five of them.
const SHARE: usize = if cfg!(debug_assertions) { 5 } else { 1 };

#[test]
fn the_functions_do_what_the_lua_does() {
    let compare = |(version, _): (Version, usize)| {
        let (mut count, mut differences) = (0, Vec::new());
        for script in &SCRIPTS {
            let nodes = [false, true].map(|runs_lua| Node::new(version, runs_lua, script.text()));
            let cases: Vec<_> = script.cases().into_iter().step_by(SHARE).collect();
            let [ours, theirs] = nodes.map(|node| node.prepare(&cases));
            for (case, (ours, theirs)) in cases.iter().zip(ours.iter().zip(&theirs)) {
                let (ours, theirs) = (ours.run(&case.words), theirs.run(&case.words));
                count += 1;
                if ours != theirs {
                    let what = format!("{version:?}: {}: {}", script.name, case.name);
                    differences.push(format!("{what}\n  {ours:?}\n  {theirs:?}"));
                }
            }
        }
        (count, differences)
    };
    let all = std::thread::scope(|scope| {
        let running = versions().map(|version| scope.spawn(move || compare(version)));
        running.map(|thread| thread.join().unwrap())
    });
    let count: usize = all.iter().map(|(count, _)| count).sum();
    let differences: Vec<String> = all.into_iter().flat_map(|(_, found)| found).collect();
    let shown = differences[..differences.len().min(20)].join("\n");
    assert!(
        differences.is_empty(),
        "{} of {count} differ; the function first:\n{shown}",
        differences.len()
    );
    println!("scripts: the functions and the Lua do the same in {count} runs");
}

/// Among the cases are denied commands, a full memory and keys of other types.
#[test]
fn no_script_makes_a_key_without_an_end() {
    let mut without_end = BTreeSet::new();
    for (version, _) in versions() {
        for script in &SCRIPTS {
            let cases: Vec<_> = script.cases().into_iter().step_by(SHARE).collect();
            let benches = Node::new(version, true, script.text()).prepare(&cases);
            for (case, bench) in cases.iter().zip(benches) {
                let before = bench.without_end();
                let left = bench.run(&case.words).0.left.into_iter();
                let endless =
                    left.filter(|(key, entry)| entry.end.is_none() && !before.contains(key));
                without_end.extend(endless.map(|(key, _)| (script.name, key)));
            }
        }
    }
    // But the epoch, by which a node that has forgotten is told from one that has not.
    let epochs = ["acquire", "initialise"].map(|script| (script, Bytes::from("e")));
    assert_eq!(without_end, BTreeSet::from(epochs));
}

#[test]
fn lua_replies_as_real_servers_do() {
    for (version, kind) in versions() {
        let mut world = World::with(Setup { version, runs_lua: true, ..Setup::default() });
        for snippet in snippets::all() {
            read(snippet.setup).iter().for_each(|words| drop(world.say(words)));
            let reply = world.say(&["EVAL", &snippet.lua, "1", "k1", "a1", "a2"]);
            let mut bytes = Vec::new();
            wire::put(&mut bytes, &reply, Dialect { resp3: false, version });
            let shown = snippets::shown(&bytes, &digest(snippet.lua.as_bytes()));
            assert_eq!(shown, snippet.reply(kind), "{version:?}: {}", snippet.lua);
        }
    }
}

#[test]
fn lua_runs_by_digest_in_any_thread_and_forgets_what_a_script_has_set() {
    let mut world = World::with(Setup { runs_lua: true, ..Setup::default() });
    let loaded = world.say(&["SCRIPT", "LOAD", "return {KEYS[1], ARGV[1]}"]);
    let name = loaded.as_str().unwrap().to_owned();
    world.ok(&["SET", "k", "v", "PX", "50"]);
    let mut world = std::thread::spawn(|| {
        assert_eq!(world.int(&["EVAL", RELEASE, "1", "k", "v"]), 1);
        world
    })
    .join()
    .unwrap();
    let first = world.say(&["EVALSHA", &name, "1", "k", "a"]);
    assert_eq!(first.as_items().unwrap().len(), 2);
    let second = world.say(&["EVALSHA", &name, "0"]);
    assert_eq!(second, Frame::Array(Vec::new().into()), "not the keys of the run before");
    assert!(world.error(&["SCRIPT", "LOAD", "no lua"]).contains("Error compiling script"));
}

/// The memory gives out between the two keys that a new node writes.
#[test]
fn a_script_that_has_written_is_not_stopped_for_want_of_memory() {
    let acquire = SCRIPTS.iter().find(|script| script.name == "acquire").unwrap();
    for runs_lua in [false, true] {
        let mut world = World::with(Setup { runs_lua, ..Setup::default() });
        let info = world.say(&["INFO", "memory"]);
        let used =
            info.as_str().unwrap().lines().find_map(|line| line.strip_prefix("used_memory:"));
        world.ok(&["CONFIG", "SET", "maxmemory", used.unwrap()]);
        let case = |ttl| ["3", "e", "q", "k", "v", ttl, "30000", "abc"];
        let said = [&["EVAL", acquire.text()], &case("10")[..]].concat();
        assert!(world.say(&said).as_items().is_ok(), "it writes both");
        assert_eq!(world.int(&["EXISTS", "e", "q"]), 2);
        assert!(world.error(&["SET", "l", "v"]).starts_with("OOM "));
        assert!(
            world
                .error(&["EVAL", acquire.text(), "3", "f", "r", "k", "v", "1", "1", "x"])
                .starts_with("OOM ")
        );
    }
}
