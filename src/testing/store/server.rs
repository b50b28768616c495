//! Commands about the node.

use std::fmt::Write;

use quorlock_resp::Frame;

use super::Store;
use super::call::{Call, Refusal, Reply, bulk, count, integer, lower, ok};
use super::glob::matches;

/// What a node takes before it has a key.
const MEMORY_BASE: u64 = 1 << 20;

/// The sections of `INFO`, in their order, and whether they are told unasked.
const SECTIONS: [(&str, bool); 8] = [
    ("server", true),
    ("clients", true),
    ("memory", true),
    ("stats", true),
    ("replication", true),
    ("cluster", true),
    ("commandstats", false),
    ("keyspace", true),
];

pub(super) fn info(store: &mut Store, call: &Call<'_>) -> Reply {
    let wanted: Vec<String> = call.arguments().iter().map(|word| lower(word)).collect();
    let all = wanted.iter().any(|name| matches!(&**name, "all" | "everything"));
    let usual = wanted.is_empty() || wanted.iter().any(|name| name == "default");
    let mut text = String::new();
    for (name, unasked) in SECTIONS {
        if all || usual && unasked || wanted.iter().any(|wanted| wanted == name) {
            if !text.is_empty() {
                text.push_str("\r\n");
            }
            store.tell_section(name, &mut text);
        }
    }
    Ok(Frame::Verbatim { format: *b"txt", text: text.into() })
}

pub(super) fn time(_: &mut Store, call: &Call<'_>) -> Reply {
    let (seconds, micros) = (call.now.as_secs(), call.now.subsec_micros());
    Ok(Frame::Array(vec![bulk(seconds.to_string()), bulk(micros.to_string())].into()))
}

pub(super) fn role(store: &mut Store, _: &Call<'_>) -> Reply {
    let parts = match store.setup.is_replica {
        false => vec![bulk("master"), Frame::Integer(0), Frame::Array(Vec::new().into())],
        true => {
            let state = bulk("connect");
            vec![bulk("slave"), bulk("127.0.0.1"), Frame::Integer(0), state, Frame::Integer(-1)]
        }
    };
    Ok(Frame::Array(parts.into()))
}

pub(super) fn dbsize(store: &mut Store, call: &Call<'_>) -> Reply {
    let (database, _) = store.place(call, b"");
    Ok(count(store.keys.keys(database).count()))
}

pub(super) fn keys(store: &mut Store, call: &Call<'_>) -> Reply {
    let (database, _) = store.place(call, b"");
    let keys = store.keys.keys(database).filter(|key| matches(call.argument(0), key));
    let keys: Vec<Frame> = keys.map(|key| Frame::Bulk(key.clone())).collect();
    Ok(Frame::Array(keys.into()))
}

pub(super) fn flushall(store: &mut Store, _: &Call<'_>) -> Reply {
    store.keys.clear(None);
    store.invalidate_all();
    Ok(ok())
}

pub(super) fn flushdb(store: &mut Store, call: &Call<'_>) -> Reply {
    let (database, _) = store.place(call, b"");
    store.keys.clear(Some(database));
    store.invalidate_all();
    Ok(ok())
}

pub(super) fn config(store: &mut Store, call: &Call<'_>) -> Reply {
    match (lower(call.argument(0)).as_str(), call.arguments().get(1..).unwrap_or_default()) {
        ("get", patterns @ [_, ..]) => {
            let known = [
                ("maxmemory", store.memory_max.to_string()),
                ("maxmemory-policy", store.setup.maxmemory_policy.clone()),
                ("port", store.setup.port.to_string()),
                ("save", String::new()),
                ("appendonly", "no".into()),
            ];
            let asked = |name: &str| {
                patterns.iter().any(|pattern| matches(lower(pattern).as_bytes(), name.as_bytes()))
            };
            let found = known.into_iter().filter(|(name, _)| asked(name));
            Ok(Frame::Map(found.map(|(name, value)| (bulk(name), bulk(value))).collect()))
        }
        ("set", [name, value]) => match lower(name).as_str() {
            "maxmemory" => {
                store.memory_max = u64::try_from(integer(value)?).map_err(|_| Refusal::NUMBER)?;
                Ok(ok())
            }
            "maxmemory-policy" => {
                store.setup.maxmemory_policy = lower(value);
                Ok(ok())
            }
            other => Err(Refusal::new(format!(
                "ERR Unknown option or number of arguments for CONFIG SET - '{other}'"
            ))),
        },
        ("resetstat", []) => {
            store.counts.calls.clear();
            store.counts.expired = 0;
            Ok(ok())
        }
        (other, _) => Err(Refusal::new(format!(
            "ERR unknown subcommand or wrong number of arguments for '{other}'. Try CONFIG HELP."
        ))),
    }
}

impl Store {
    pub(super) fn memory_used(&self) -> u64 {
        MEMORY_BASE + self.keys.bytes() as u64
    }

    /// One section of `INFO`.
    fn tell_section(&self, name: &str, text: &mut String) {
        let mut capital = name.to_owned();
        capital[..1].make_ascii_uppercase();
        let mut lines = vec![format!("# {capital}")];
        let mut field = |name: &str, value: &dyn std::fmt::Display| {
            lines.push(format!("{name}:{value}"));
        };
        let (setup, counts) = (&self.setup, &self.counts);
        match name {
            "server" => {
                // The version whose commands it has, for whoever asks for one.
                field("redis_version", &"7.2.4");
                field("server_name", &"quorlock");
                field("redis_mode", &if setup.is_cluster { "cluster" } else { "standalone" });
                // Not this process's: a trace of what was said must be the same in every one.
                field("process_id", &1);
                field("run_id", &setup.run_id);
                field("tcp_port", &setup.port);
            }
            "clients" => field("connected_clients", &self.sessions.len()),
            "memory" => {
                field("used_memory", &self.memory_used());
                field("maxmemory", &self.memory_max);
                field("maxmemory_policy", &setup.maxmemory_policy);
            }
            "stats" => {
                field("total_connections_received", &counts.connections);
                field("total_commands_processed", &counts.calls.values().sum::<u64>());
                field("expired_keys", &counts.expired);
                field("evicted_keys", &0);
            }
            "replication" => {
                field("role", &if setup.is_replica { "slave" } else { "master" });
                field("connected_slaves", &0);
            }
            "cluster" => field("cluster_enabled", &u8::from(setup.is_cluster)),
            "commandstats" => {
                for ((name, subcommand), calls) in &counts.calls {
                    let bar = if subcommand.is_empty() { "" } else { "|" };
                    let name = format!("{name}{bar}{subcommand}");
                    let value = format!("calls={calls},usec=0,usec_per_call=0.00");
                    field(&format!("cmdstat_{name}"), &value);
                }
            }
            _ => {
                for (database, [keys, ends]) in self.keys.counts() {
                    let value = format!("keys={keys},expires={ends},avg_ttl=0");
                    field(&format!("db{database}"), &value);
                }
            }
        }
        for line in lines {
            // Writing to a text cannot fail.
            let _ = write!(text, "{line}\r\n");
        }
    }
}
