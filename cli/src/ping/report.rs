//! The nodes as one JSON object, as `schema.json` says.

use quorlock::report::{ClockSkew, Persistence, ServerInfo};

use super::measure::Pings;
use super::node::Node;
use crate::args::PingArgs;
use crate::json::Object;
use crate::nodes::majority;

/// Grows when a member changes its meaning or goes away; new members do not change it.
const VERSION: u32 = 1;

/// The object, in one line.
pub(super) fn json(args: &PingArgs, nodes: &[Node]) -> String {
    let answered = nodes.iter().filter(|node| node.has_answered()).count();
    Object::new()
        .number("schema_version", Some(VERSION))
        .text("quorlock_version", env!("CARGO_PKG_VERSION"))
        .number("answered", Some(answered))
        .number("needed", Some(majority(nodes.len())))
        .number("count", Some(args.count))
        .number("interval_us", Some(args.interval.as_micros()))
        .array("nodes", nodes.iter().map(node))
        .end()
}

fn node(node: &Node) -> Object {
    let fault = node.health.fault().map(ToString::to_string);
    Object::new()
        .text("node", &*node.health.node)
        .text("state", if node.health.is_connected() { "connected" } else { "down" })
        .text("fault", fault.as_deref())
        .object("rtt", node.pings.as_ref().map(rtt))
        .object("server", node.health.server.as_ref().map(server))
        .texts("warnings", node.warnings())
}

fn rtt(pings: &Pings) -> Object {
    Object::new()
        .number("sent", Some(pings.sent))
        .number("answered", Some(pings.answered()))
        .number("p50_ns", pings.quantile(0.5))
        .number("p99_ns", pings.quantile(0.99))
        .number("p99_9_ns", pings.quantile(0.999))
        .number("max_ns", pings.quantile(1.0))
}

fn server(told: &ServerInfo) -> Object {
    Object::new()
        .text("kind", told.kind.as_ref().map(ToString::to_string).as_deref())
        .text("version", told.version.as_deref())
        .text("role", told.role.map(|role| role.to_string()).as_deref())
        .text("mode", told.mode.map(|mode| mode.to_string()).as_deref())
        .text("run_id", told.run_id.as_deref())
        .number("protocol", Some(if told.resp3 { 3 } else { 2 }))
        .object("persistence", persistence(&told.persistence))
        .text("maxmemory_policy", told.maxmemory_policy.as_deref())
        .object("clock", told.clock.map(clock))
}

fn persistence(told: &Persistence) -> Object {
    Object::new()
        .number("appendonly", told.appendonly)
        .text("appendfsync", told.appendfsync.as_deref())
        .text("save", told.save.as_deref())
}

fn clock(skew: ClockSkew) -> Object {
    let sign = if skew.is_ahead || skew.apart.is_zero() { "" } else { "-" };
    Object::new()
        .number("ahead_us", Some(format!("{sign}{}", skew.apart.as_micros())))
        .number("within_us", Some(skew.within.as_micros()))
}
