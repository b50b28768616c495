//! Programs that end without a word, by `kill -9`: those that wait for them go on.
//!
//! What a killed program held ends with its TTL; where it stood in a queue, others pass its place
//! within two seconds.

mod here;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use support::{Fleet, Reply, eventually, need_process};

use crate::run::{Running, empties, holding, program_on_all};

/// Runs `cat` under `job`, by these options.
fn holds(fleet: &Fleet, options: &[&str]) -> Running {
    holding(program_on_all(fleet, &[&["lock"], options, &["job", "--", "cat"]].concat()))
}

/// Waits for `job`, by these options; tells its slot when it has one, and `runs` for any other
/// lock, and holds it until its stdin ends.
fn waits(fleet: &Fleet, options: &[&str]) -> Running {
    let script = "echo \"${QUORLOCK_SLOT-runs}\"; cat";
    let words = [&["lock", "-w", "1h"], options, &["job", "--", "sh", "-c", script]].concat();
    let mut command: Command = program_on_all(fleet, &words);
    command.stdin(Stdio::piped());
    Running::start(command)
}

/// Returns when so many stand in the queue of this name.
fn queue_has(fleet: &Fleet, queue: &str, waiters: i64) {
    let queue = format!("{{job}}:{queue}");
    eventually("so many to wait", || {
        fleet.command(&["ZCARD", &queue]).iter().map(Reply::int).sum::<i64>() == waiters
    });
}

/// Kills a program, which ends no other way. Returns when.
#[expect(clippy::disallowed_methods, reason = "what a killed process leaves ends in real time")]
fn kill(running: Running) -> Instant {
    running.signal(Signal::KILL);
    let at = Instant::now();
    assert_eq!(running.end().code, 128 + 9);
    at
}

/// Says how long after that another has gone on: `tests/record` has it.
fn tell(what: &str, after: Duration) {
    println!("killed: {what}: the next one runs {} ms later", after.as_millis());
}

/// All of these end well, and nothing is left of any.
fn all_end(fleet: &Fleet, running: impl IntoIterator<Item = Running>) {
    for running in running {
        assert_eq!(running.end().code, 0);
    }
    fleet.iter().for_each(empties);
}

const QUEUE: &str = "quorlock:queue";

#[test]
fn the_slot_of_one_that_was_killed_goes_to_one_that_waits() {
    need_process!();
    let fleet = Fleet::start(3);
    let slots = ["--slots", "2", "--ttl", "1s"];
    let (stays, killed) = (waits(&fleet, &slots), waits(&fleet, &slots));
    let (kept, freed) = (stays.line(), killed.line());
    assert_ne!(kept, freed);
    let next = waits(&fleet, &["--slots", "2"]);
    queue_has(&fleet, "slots:2:quorlock:queue", 1);
    let at = kill(killed);
    assert_eq!(next.line(), freed);
    tell("one of two slots", at.elapsed());
    all_end(&fleet, [stays, next]);
}

#[test]
fn a_writer_goes_on_when_the_last_reader_was_killed() {
    need_process!();
    let fleet = Fleet::start(3);
    let (one, two) =
        (holds(&fleet, &["--shared", "--ttl", "1s"]), holds(&fleet, &["--shared", "--ttl", "1s"]));
    let writer = waits(&fleet, &[]);
    queue_has(&fleet, QUEUE, 1);
    let at = kill(one);
    assert_eq!(two.end().code, 0);
    assert_eq!(writer.line(), "runs");
    tell("the last reader", at.elapsed());
    all_end(&fleet, [writer]);
}

#[test]
fn readers_go_on_when_the_writer_that_they_wait_for_was_killed() {
    need_process!();
    let fleet = Fleet::start(3);
    let writer = holds(&fleet, &["--ttl", "1s"]);
    let readers = [waits(&fleet, &["--shared"]), waits(&fleet, &["--shared"])];
    queue_has(&fleet, QUEUE, 2);
    let at = kill(writer);
    for reader in &readers {
        assert_eq!(reader.line(), "runs");
    }
    tell("a writer before two readers", at.elapsed());
    all_end(&fleet, readers);
}

/// It has shut the gate to those behind it, and no one opens that for it.
#[test]
fn readers_go_on_when_a_writer_that_waits_before_them_was_killed() {
    need_process!();
    let fleet = Fleet::start(3);
    let reads = holds(&fleet, &["--shared"]);
    let writer = waits(&fleet, &[]);
    eventually("the gate is shut", || {
        let shut = fleet.command(&["EXISTS", "{job}:quorlock:gate"]);
        shut.iter().map(Reply::int).sum::<i64>() >= 2
    });
    let behind = [waits(&fleet, &["--shared"]), waits(&fleet, &["--shared"])];
    queue_has(&fleet, QUEUE, 3);
    let at = kill(writer);
    // Beside the one that has it all the time.
    for reader in &behind {
        assert_eq!(reader.line(), "runs");
    }
    tell("a writer that waits before two readers", at.elapsed());
    all_end(&fleet, behind.into_iter().chain([reads]));
}

#[test]
fn those_behind_go_on_when_the_first_in_the_queue_was_killed() {
    need_process!();
    let queues = [
        (&[][..], QUEUE, 1),
        (&["--fair"], QUEUE, 1),
        (&["--fair-strict"], QUEUE, 3),
        (&["--slots", "1"], "slots:1:quorlock:queue", 1),
        (&["--shared"], QUEUE, 1),
    ];
    for (options, queue, places) in queues {
        let fleet = Fleet::start(3);
        // Readers wait for a writer.
        let held = holds(&fleet, if options == ["--shared"] { &[] } else { options });
        let first = waits(&fleet, options);
        queue_has(&fleet, queue, places);
        let second = waits(&fleet, options);
        queue_has(&fleet, queue, 2 * places);
        let at = kill(first);
        assert_eq!(held.end().code, 0);
        let told = if options == ["--slots", "1"] { "0" } else { "runs" };
        assert_eq!(second.line(), told, "{options:?}");
        tell(&format!("the first in the queue, {options:?}"), at.elapsed());
        all_end(&fleet, [second]);
    }
}
