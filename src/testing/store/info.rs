//! What a node tells of itself: `INFO`, section by section.

use std::fmt::Display;

use quorlock_resp::Frame;

use super::call::{Call, Reply, lower};
use super::state::Store;

/// A section: its name, whether it is told unasked, and what it tells.
type Section = (&'static str, bool, fn(&Store, &mut Text));

/// The sections, in their order.
static SECTIONS: [Section; 9] = [
    ("Server", true, server),
    ("Clients", true, clients),
    ("Memory", true, memory),
    ("Persistence", true, persistence),
    ("Stats", true, stats),
    ("Replication", true, replication),
    ("Cluster", true, cluster),
    ("Commandstats", false, commandstats),
    ("Keyspace", true, keyspace),
];

/// The lines of a reply.
struct Text(String);

impl Text {
    fn field(&mut self, name: &str, value: impl Display) {
        self.0.push_str(&format!("{name}:{value}\r\n"));
    }
}

pub(super) fn info(store: &mut Store, call: &Call<'_>) -> Reply {
    let wanted: Vec<String> = call.arguments().iter().map(|word| lower(word)).collect();
    let all = wanted.iter().any(|name| matches!(&**name, "all" | "everything"));
    let usual = wanted.is_empty() || wanted.iter().any(|name| name == "default");
    let mut text = Text(String::new());
    for (name, unasked, tell) in SECTIONS {
        let is_wanted = wanted.iter().any(|wanted| wanted.eq_ignore_ascii_case(name));
        if all || usual && unasked || is_wanted {
            if !text.0.is_empty() {
                text.0.push_str("\r\n");
            }
            text.0.push_str(&format!("# {name}\r\n"));
            tell(store, &mut text);
        }
    }
    Ok(Frame::Verbatim { format: *b"txt", text: text.0.into() })
}

fn server(store: &Store, text: &mut Text) {
    let setup = &store.setup;
    let version = setup.version;
    text.field("redis_version", version.redis_text());
    if !version.is_redis() {
        text.field("server_name", version.name());
    }
    if version.is_valkey() {
        text.field("valkey_version", version.text());
    }
    let mode = if version.is_valkey() { "server_mode" } else { "redis_mode" };
    text.field(mode, if setup.is_cluster { "cluster" } else { "standalone" });
    // Not this process's: a trace of what was said must be the same in every one.
    text.field("process_id", 1);
    text.field("run_id", &setup.run_id);
    text.field("tcp_port", setup.port);
}

fn clients(store: &Store, text: &mut Text) {
    text.field("connected_clients", store.sessions.len());
}

fn memory(store: &Store, text: &mut Text) {
    text.field("used_memory", store.memory_used());
    text.field("maxmemory", store.memory_max);
    text.field("maxmemory_policy", &store.setup.maxmemory_policy);
}

fn persistence(store: &Store, text: &mut Text) {
    text.field("loading", 0);
    text.field("rdb_changes_since_last_save", 0);
    text.field("rdb_bgsave_in_progress", 0);
    text.field("rdb_last_bgsave_status", "ok");
    text.field("aof_enabled", u8::from(store.setup.persistence.appendonly));
    text.field("aof_rewrite_in_progress", 0);
    text.field("aof_last_bgrewrite_status", "ok");
    text.field("aof_last_write_status", "ok");
}

fn stats(store: &Store, text: &mut Text) {
    let counts = &store.counts;
    text.field("total_connections_received", counts.connections);
    text.field("total_commands_processed", counts.calls.values().sum::<u64>());
    text.field("expired_keys", counts.expired);
    text.field("evicted_keys", 0);
}

fn replication(store: &Store, text: &mut Text) {
    text.field("role", if store.setup.is_replica { "slave" } else { "master" });
    text.field("connected_slaves", 0);
}

fn cluster(store: &Store, text: &mut Text) {
    text.field("cluster_enabled", u8::from(store.setup.is_cluster));
}

fn commandstats(store: &Store, text: &mut Text) {
    for ((name, subcommand), calls) in &store.counts.calls {
        let bar = if subcommand.is_empty() { "" } else { "|" };
        let value = format!("calls={calls},usec=0,usec_per_call=0.00");
        text.field(&format!("cmdstat_{name}{bar}{subcommand}"), value);
    }
}

fn keyspace(store: &Store, text: &mut Text) {
    for (database, [keys, ends]) in store.keys.counts() {
        text.field(&format!("db{database}"), format!("keys={keys},expires={ends},avg_ttl=0"));
    }
}
