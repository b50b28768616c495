//! Servers that do not take the command now, or not here.

use support::tools::find_server;
use support::{Script, Server};

use crate::states::state::{Node, STATE, Said, State};
use crate::states::tested_node::TestedNode;

/// The slot of the key `k`.
const SLOT: &str = "7629";

/// A Cluster of one node, which owns all slots. A quorum takes none.
const CLUSTER: State = State {
    node: Node::Real(|server| server.cluster().args(["--cluster-require-full-coverage", "no"])),
    prepare: own_all_slots,
    in_quorum: Some(Said::NotSent("cluster node")),
    ..STATE
};

pub(super) const STATES: &[State] = &[
    State {
        name: "a replica",
        enter: |node| node.tell("REPLICAOF 127.0.0.1 1"),
        leave: |node| node.tell("REPLICAOF NO ONE"),
        cut: true,
        says: [Said::NotSent("replica"); 3],
        ..STATE
    },
    State {
        name: "became a replica",
        enter: |node| node.tell("REPLICAOF 127.0.0.1 1"),
        leave: |node| node.tell("REPLICAOF NO ONE"),
        says: [Said::Refused("READONLY"), Said::Failed("READONLY"), Said::Failed("READONLY")],
        vote: Some(Said::Failed("READONLY")),
        ..STATE
    },
    State {
        name: "a replica that lost its master",
        enter: |node| {
            node.tell_all(&["CONFIG SET replica-serve-stale-data no", "REPLICAOF 127.0.0.1 1"]);
        },
        leave: |node| node.tell("REPLICAOF NO ONE"),
        says: [Said::Refused("READONLY"), Said::Refused("MASTERDOWN"), Said::Refused("MASTERDOWN")],
        ..STATE
    },
    State {
        name: "loading",
        node: Node::Real(|server| match may_need_leave_to_debug() {
            true => server.args(["--enable-debug-command", "yes"]),
            false => server,
        }),
        enter: load,
        leave: |node| {
            // The oldest takes no option while it loads; there it goes on for as long as it takes.
            drop(node.ask("CONFIG SET key-load-delay 0"));
            node.await_reply("CONFIG SET key-load-delay 0", "OK");
            node.join();
            (0..40).for_each(|number| node.tell(&format!("DEL f:{number}")));
        },
        says: [Said::Refused("LOADING"); 3],
        vote: Some(Said::Refused("LOADING")),
        ..STATE
    },
    State {
        name: "busy with a script",
        enter: be_busy,
        leave: |node| node.tell("SCRIPT KILL"),
        says: [Said::Refused("BUSY"); 3],
        vote: Some(Said::Refused("BUSY")),
        ..STATE
    },
    State {
        name: "busy when connected to",
        enter: |node| {
            node.cut_clients();
            be_busy(node);
        },
        leave: |node| node.tell("SCRIPT KILL"),
        cut: true,
        says: [Said::NotSent("BUSY"); 3],
        ..STATE
    },
    State {
        name: "out of memory",
        enter: |node| node.tell("CONFIG SET maxmemory 1"),
        leave: |node| node.tell("CONFIG SET maxmemory 0"),
        says: [Said::Refused("OOM"), Said::Granted, Said::Granted],
        vote: Some(Said::Failed("OOM")),
        ..STATE
    },
    State {
        name: "too few replicas",
        enter: |node| node.tell("CONFIG SET min-replicas-to-write 1"),
        leave: |node| node.tell("CONFIG SET min-replicas-to-write 0"),
        says: [Said::Refused("NOREPLICAS"), Said::Failed("NOREPLICAS"), Said::Failed("NOREPLICAS")],
        vote: Some(Said::Failed("NOREPLICAS")),
        ..STATE
    },
    State {
        name: "cannot save",
        enter: |node| {
            // Where the snapshot should be stands a folder.
            let folder = node.ask("CONFIG GET dir").array()[1].text();
            std::fs::create_dir_all(format!("{folder}/dump.rdb")).unwrap();
            node.tell_all(&["CONFIG SET stop-writes-on-bgsave-error yes"]);
            node.ask_words(&["CONFIG", "SET", "save", "3600 1000000"]);
            node.tell("BGSAVE");
            node.await_reply("INFO persistence", "rdb_last_bgsave_status:err");
        },
        leave: |node| node.ask_empty("CONFIG SET save"),
        says: [Said::Refused("MISCONF"), Said::Failed("MISCONF"), Said::Failed("MISCONF")],
        vote: Some(Said::Failed("MISCONF")),
        ..STATE
    },
    State {
        name: "a Cluster's slot is down",
        enter: |node| node.tell(&format!("CLUSTER DELSLOTS {SLOT}")),
        leave: |node| node.tell(&format!("CLUSTER ADDSLOTS {SLOT}")),
        says: [Said::Refused("CLUSTERDOWN"); 3],
        ..CLUSTER
    },
    State {
        name: "a Cluster's slot has moved",
        prepare: |node| {
            own_all_slots(node);
            meet_another(node);
        },
        enter: |node| {
            node.tell("DEL k");
            node.tell(&format!("CLUSTER SETSLOT {SLOT} NODE {}", name_of_other(node)));
        },
        leave: |node| {
            let own = node.ask("CLUSTER MYID").text();
            node.tell(&format!("CLUSTER SETSLOT {SLOT} NODE {own}"));
        },
        says: [Said::Refused("MOVED"); 3],
        ..CLUSTER
    },
    State {
        name: "a Cluster's slot is moving",
        prepare: |node| {
            own_all_slots(node);
            meet_another(node);
        },
        enter: |node| {
            node.tell(&format!("CLUSTER SETSLOT {SLOT} MIGRATING {}", name_of_other(node)));
        },
        leave: |node| node.tell(&format!("CLUSTER SETSLOT {SLOT} STABLE")),
        says: [Said::Refused("ASK"), Said::Granted, Said::Granted],
        ..CLUSTER
    },
    State {
        name: "a Cluster, `Volatile`, no hash tag",
        volatile: true,
        says: [Said::Refused("CROSSSLOT"), Said::Never, Said::Never],
        in_quorum: Some(Said::Never),
        ..CLUSTER
    },
    State {
        name: "`CLIENT PAUSE … WRITE`",
        enter: |node| node.tell("CLIENT PAUSE 60000 WRITE"),
        leave: |node| node.tell("CLIENT UNPAUSE"),
        says: [Said::Silent; 3],
        vote: Some(Said::Silent),
        ..STATE
    },
    State {
        name: "`CLIENT PAUSE … ALL`",
        enter: |node| node.tell("CLIENT PAUSE 1500 ALL"),
        leave: |node| node.tell("PING"),
        says: [Said::Silent; 3],
        ..STATE
    },
    #[cfg(unix)]
    State {
        name: "hung",
        enter: |node| node.server().pause(),
        leave: |node| node.server().resume(),
        says: [Said::Silent; 3],
        ..STATE
    },
    State {
        name: "stopped",
        enter: |node| node.server().stop(),
        leave: |node| {
            node.server().restart();
            node.reconnect();
        },
        cut: true,
        says: [Said::NotSent("refused"); 3],
        ..STATE
    },
    State {
        name: "an error of no known kind",
        node: Node::Scripted(|gate| {
            let odd = gate.clone();
            let answer = move |command: &[Vec<u8>]| match (&command[0][..], odd.is_open()) {
                (_, true) => b"-ODD thing\r\n".to_vec(),
                (b"SET", _) => b"+OK\r\n".to_vec(),
                _ => b":1\r\n".to_vec(),
            };
            [Script::greeting().answer_all(answer.clone()), Script::greeting().answer_all(answer)]
        }),
        says: [Said::Failed("ODD"); 3],
        ..STATE
    },
];

/// A script that runs until it is killed, on a server that says so after 5 ms.
fn be_busy(node: &TestedNode) {
    node.tell("CONFIG SET lua-time-limit 5");
    node.begin(&["EVAL", "while true do end", "0"]);
    node.await_reply("GET any", "BUSY");
}

/// Redis 7 and Valkey must be asked for `DEBUG`; Redis 6 knows no such option.
fn may_need_leave_to_debug() -> bool {
    let program = find_server().expect("the test has looked for it");
    let said = std::process::Command::new(program).arg("--version").output().unwrap().stdout;
    !String::from_utf8_lossy(&said).contains("Redis server v=6.")
}

/// Loads what it has anew, slowly: 40 keys of 1 MB take 50 ms each.
fn load(node: &TestedNode) {
    node.tell_all(&[
        "CONFIG SET rdbcompression no",
        "DEBUG POPULATE 40 f 1000000",
        "CONFIG SET key-load-delay 50000",
    ]);
    // The oldest only looks at its clients after each 2 MB.
    drop(node.ask("CONFIG SET loading-process-events-interval-bytes 1024"));
    node.begin(&["DEBUG", "RELOAD"]);
    node.await_reply("GET any", "LOADING");
}

fn own_all_slots(node: &TestedNode) {
    let slots = (0..16_384).map(|slot| slot.to_string());
    let words: Vec<_> = ["CLUSTER".into(), "ADDSLOTS".into()].into_iter().chain(slots).collect();
    node.ask_words(&words);
    assert_eq!(node.ask("CLUSTER KEYSLOT k").int().to_string(), SLOT);
    node.await_reply("CLUSTER INFO", "cluster_state:ok");
}

fn meet_another(node: &TestedNode) {
    let other = Server::builder().cluster().start();
    node.tell(&format!("CLUSTER MEET 127.0.0.1 {}", other.port()));
    let name = other.command(&["CLUSTER", "MYID"]).text();
    *node.other.lock().unwrap() = Some(other);
    node.await_reply("CLUSTER NODES", &name);
}

fn name_of_other(node: &TestedNode) -> String {
    let other = node.other.lock().unwrap();
    other.as_ref().unwrap().command(&["CLUSTER", "MYID"]).text()
}
