//! Commands about the node.

use quorlock_resp::Frame;

use super::call::{Call, Refusal, Reply, bulk, count, integer, lower, ok};
use super::glob::matches;
use super::state::Store;

/// What a node takes before it has a key.
const MEMORY_BASE: u64 = 1 << 20;

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

pub(super) fn flushall(store: &mut Store, call: &Call<'_>) -> Reply {
    flush(store, call, None)
}

pub(super) fn flushdb(store: &mut Store, call: &Call<'_>) -> Reply {
    let (database, _) = store.place(call, b"");
    flush(store, call, Some(database))
}

fn flush(store: &mut Store, call: &Call<'_>, database: Option<u32>) -> Reply {
    if call.words.len() > 1 && !matches!(lower(call.argument(0)).as_str(), "async" | "sync") {
        return Err(Refusal::SYNTAX);
    }
    store.keys.clear(database);
    store.invalidate_all();
    if store.setup.version.tells_flush_first() {
        store.pushes_first.append(&mut store.pushes);
    }
    Ok(ok())
}

pub(super) fn config(store: &mut Store, call: &Call<'_>) -> Reply {
    match (lower(call.argument(0)).as_str(), call.arguments().get(1..).unwrap_or_default()) {
        ("get", patterns @ [_, ..]) => {
            let persistence = &store.setup.persistence;
            let known = [
                ("maxmemory", store.memory_max.to_string()),
                ("maxmemory-policy", store.setup.maxmemory_policy.clone()),
                ("port", store.setup.port.to_string()),
                ("save", persistence.save.clone()),
                ("appendonly", if persistence.appendonly { "yes" } else { "no" }.into()),
                ("appendfsync", persistence.appendfsync.clone()),
            ];
            let asked = |name: &str| {
                patterns.iter().any(|pattern| matches(lower(pattern).as_bytes(), name.as_bytes()))
            };
            let found = known.into_iter().filter(|(name, _)| asked(name));
            Ok(Frame::Map(found.map(|(name, value)| (bulk(name), bulk(value))).collect()))
        }
        ("set", [name, value]) => set(store, &lower(name), value),
        ("resetstat", []) => {
            store.counts.calls.clear();
            store.counts.expired = 0;
            Ok(ok())
        }
        _ => Err(Refusal::SYNTAX),
    }
}

fn set(store: &mut Store, name: &str, value: &[u8]) -> Reply {
    let persistence = &mut store.setup.persistence;
    match name {
        "maxmemory" => {
            store.memory_max = u64::try_from(integer(value)?).map_err(|_| Refusal::NUMBER)?;
        }
        "maxmemory-policy" => store.setup.maxmemory_policy = lower(value),
        "appendonly" => persistence.appendonly = lower(value) == "yes",
        "appendfsync" => persistence.appendfsync = lower(value),
        "save" => persistence.save = lower(value),
        other => return Err(store.setup.version.unknown_parameter(other)),
    }
    Ok(ok())
}

impl Store {
    pub(super) fn memory_used(&self) -> u64 {
        MEMORY_BASE + self.keys.bytes() as u64
    }
}
