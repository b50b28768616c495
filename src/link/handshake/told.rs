//! What the replies of a handshake say of the server. Each of them may be missing, an error, or cut
//! short: what is not there is not known.
//!
//! All of it is the server's text, and made safe to print.

use std::time::Duration;

use quorlock_resp::{Frame, Pairs};

use crate::report::{Mode, Role, ServerInfo, ServerKind, printable};

/// The map that `HELLO` answers.
pub(super) fn hello(fields: &Pairs, server: &mut ServerInfo) {
    let text = |name: &[u8]| fields.get(name).and_then(|value| value.as_str().ok());
    server.kind = text(b"server").and_then(kind);
    server.version = text(b"version").and_then(some);
    server.mode = text(b"mode").and_then(mode);
    server.role = text(b"role").and_then(role);
}

/// A section of `INFO`; the time, if it tells that.
pub(super) fn info(frame: &Frame, server: &mut ServerInfo) -> Option<Duration> {
    let info = frame.as_str().ok()?; // the ACL may forbid it
    let field = |name: &str| {
        let mut lines = info.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(found, _)| *found == name).map(|(_, value)| value)
    };
    set(&mut server.run_id, field("run_id").and_then(some));
    set(&mut server.maxmemory_policy, field("maxmemory_policy").and_then(some));
    set(&mut server.persistence.appendonly, field("aof_enabled").and_then(flag));
    set(&mut server.mode, field("server_mode").or_else(|| field("redis_mode")).and_then(mode));
    set(&mut server.role, field("role").and_then(role));
    // Others pose as a Redis for the sake of old clients, and tell their own version beside it.
    for name in ["valkey", "dragonfly"] {
        if let Some(version) = field(&format!("{name}_version")).and_then(some) {
            (server.kind, server.version) = (kind(name), Some(version));
        }
    }
    if server.kind.is_none() {
        server.kind = field("redis_version").and(Some(ServerKind::Redis));
    }
    if server.version.is_none() {
        server.version = field("redis_version").and_then(some);
    }
    field("server_time_usec")?.parse().ok().map(Duration::from_micros)
}

/// The parameters that `CONFIG GET` answers: a map, and in RESP2 names and values in turn.
pub(super) fn config(frame: &Frame, server: &mut ServerInfo) {
    let flat = match frame.as_pairs() {
        Ok(pairs) => pairs.as_frames(),
        Err(_) => frame.as_items().unwrap_or_default(), // the ACL may forbid it
    };
    for pair in flat.chunks_exact(2) {
        let [name, value] = pair else { continue };
        let persistence = &mut server.persistence;
        match (name.as_bytes(), value.as_bytes()) {
            (Ok(b"appendfsync"), Ok(value)) => persistence.appendfsync = Some(printable(value)),
            (Ok(b"save"), Ok(value)) => persistence.save = Some(printable(value)),
            _ => {}
        }
    }
}

/// The seconds and microseconds since 1970 that `TIME` answers.
pub(super) fn time(frame: &Frame) -> Option<Duration> {
    let [seconds, micros] = frame.as_items().ok()? else { return None };
    let seconds = seconds.as_str().ok()?.parse().ok()?;
    let micros: u32 = micros.as_str().ok()?.parse().ok().filter(|micros| *micros < 1_000_000)?;
    Some(Duration::new(seconds, micros * 1_000))
}

fn set<T>(place: &mut Option<T>, found: Option<T>) {
    if found.is_some() {
        *place = found;
    }
}

fn some(text: &str) -> Option<Box<str>> {
    (!text.is_empty()).then(|| printable(text.as_bytes()))
}

fn kind(name: &str) -> Option<ServerKind> {
    match name {
        "" => None,
        "redis" => Some(ServerKind::Redis),
        "valkey" => Some(ServerKind::Valkey),
        other => Some(ServerKind::Other(printable(other.as_bytes()))),
    }
}

fn mode(name: &str) -> Option<Mode> {
    match name {
        "standalone" => Some(Mode::Standalone),
        "cluster" => Some(Mode::Cluster),
        "sentinel" => Some(Mode::Sentinel),
        _ => None,
    }
}

fn role(name: &str) -> Option<Role> {
    match name {
        "master" | "primary" => Some(Role::Master),
        "replica" | "slave" => Some(Role::Replica),
        _ => None,
    }
}

fn flag(value: &str) -> Option<bool> {
    match value {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}
