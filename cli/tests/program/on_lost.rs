//! What the command is told when a majority of the nodes forgets the lock, or hangs.

use support::{Fleet, need_server};

use crate::run::{Ended, Running, ends, holding, program_on_all};

/// Short, for a loss is found out at the next extension: at a third of it.
const TTL: &str = "3s";

/// Long enough for a grace in which a shell is heard on a machine that is busy.
const TTL_TO_OBEY: &str = "10s";

/// Tells of TERM and does not obey; its child, whose id it prints, obeys.
const STUBBORN: &str =
    "trap 'echo told' TERM; sleep 600 & echo $!; while :; do sleep 0.01; done 2>/dev/null";

/// As `STUBBORN`, but obeys.
const OBEDIENT: &str =
    "trap 'echo told; exit 0' TERM; sleep 600 & echo $!; while :; do sleep 0.01; done 2>/dev/null";

/// What happens to the lock.
type Harm = fn(&Fleet);

/// It is deleted by force, on every node.
fn deleted(fleet: &Fleet) {
    fleet.command(&["DEL", "job"]);
}

/// Another client has a majority.
fn taken(fleet: &Fleet) {
    for server in [&fleet[0], &fleet[2]] {
        server.command(&["SET", "job", "thief", "PX", "60000"]);
    }
}

/// A majority hangs.
fn hung(fleet: &Fleet) {
    fleet[0].pause();
    fleet[1].pause();
}

/// Runs `script` under a lock with these options, harms the lock once it runs, and returns the id
/// of the script's child, and how it ended.
fn harmed(fleet: &Fleet, options: &[&str], script: &str, harm: Harm) -> (String, Ended) {
    let args = [&["lock"], options, &["job", "--", "sh", "-c", script]].concat();
    let running = Running::start(program_on_all(fleet, &args));
    let pid = running.line();
    harm(fleet);
    (pid, running.end())
}

#[test]
fn a_command_is_told_when_its_lock_is_gone() {
    need_server!();
    for harm in [deleted, taken] {
        let fleet = Fleet::start(3);
        let (child, ended) = harmed(&fleet, &["--ttl", TTL_TO_OBEY], OBEDIENT, harm);
        ended.says(79, "lock \"job\" was lost: a majority of the nodes no longer holds it");
        assert_eq!(ended.stdout, "told\n");
        ends(&child);
    }
}

#[test]
fn one_that_does_not_obey_is_killed_long_before_the_lease_would_have_ended() {
    need_server!();
    let fleet = Fleet::start(3);
    let (child, ended) = harmed(&fleet, &["--json", "--ttl=15s"], STUBBORN, deleted);
    let json = ended.json();
    assert_eq!((ended.code, &*ended.stdout), (79, "told\n"), "{ended:?}");
    assert_eq!((&json["lost"], &json["child_signal"]), (&"gone".into(), &9.into()), "{json}");
    // Found out after a third of it, and killed a tenth behind that. The rest is for a busy
    // machine; the times are exact in the tests of `cli/src/lock/plan.rs`.
    assert!(json["hold_us"].as_u64() < Some(10_000_000), "{json}");
    ends(&child);
}

#[test]
fn a_hung_majority_ends_the_command_before_the_lease() {
    need_server!();
    let fleet = Fleet::start(3);
    let (child, ended) = harmed(&fleet, &["--ttl", TTL_TO_OBEY], OBEDIENT, hung);
    assert_eq!((ended.code, &*ended.stdout), (79, "told\n"), "{ended:?}");
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert!(lines[0].contains("could not be extended, "), "{ended:?}");
    assert!(lines[0].contains(&format!("{} was silent for ", fleet[0].addr())), "{ended:?}");
    assert!(lines[1].contains("lock \"job\" was lost: its time ran out"), "{ended:?}");
    assert_eq!(lines.len(), 2, "{ended:?}");
    ends(&child);
}

#[test]
fn kill_does_not_ask_first() {
    need_server!();
    for (harm, lost) in [(taken as Harm, "gone"), (hung, "expired")] {
        let fleet = Fleet::start(3);
        let (child, ended) =
            harmed(&fleet, &["--json", "--ttl", TTL, "--on-lost=kill"], STUBBORN, harm);
        let json = ended.json();
        assert_eq!((ended.code, &*ended.stdout), (79, ""), "{lost}: {ended:?}");
        assert_eq!((&json["lost"], &json["child_signal"]), (&lost.into(), &9.into()), "{json}");
        ends(&child);
    }
}

#[test]
fn ignore_lets_the_command_end_by_itself() {
    need_server!();
    let causes = [
        (deleted as Harm, "a majority of the nodes no longer holds it"),
        (hung, "its time ran out"),
    ];
    for (harm, why) in causes {
        let fleet = Fleet::start(3);
        let args = ["lock", "--ttl", TTL, "--on-lost", "ignore", "job", "--", "cat"];
        let mut running = holding(program_on_all(&fleet, &args));
        harm(&fleet);
        if why == "its time ran out" {
            running.complains("could not be extended, ");
        }
        running.complains(&format!("lock \"job\" was lost: {why}"));
        // It is past its end, and was sent nothing.
        running.write("still here\n");
        assert_eq!(running.line(), "still here");
        let ended = running.end();
        assert_eq!((ended.code, &*ended.stderr), (79, ""), "{ended:?}");
    }
}

#[test]
fn our_code_outranks_the_commands() {
    need_server!();
    let fleet = Fleet::start(3);
    let script = "trap 'exit 42' TERM; echo $$; while :; do sleep 0.01; done 2>/dev/null";
    let (_, ended) = harmed(&fleet, &["--json", "--ttl", TTL_TO_OBEY], script, taken);
    let json = ended.json();
    assert_eq!((ended.code, &json["exit_code"]), (79, &79.into()), "{json}");
    assert_eq!((&json["child_code"], &json["outcome"]), (&42.into(), &"lost".into()), "{json}");
    assert_eq!(fleet[0].command(&["GET", "job"]).text(), "thief", "it is not ours to delete");
}
