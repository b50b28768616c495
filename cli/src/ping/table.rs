//! The nodes as a table. It has colours, which `output` removes if stdout is no terminal, or under
//! `NO_COLOR`.

use std::fmt::{self, Write};

use anstyle::{AnsiColor, Style};
use quorlock::report::ServerInfo;

use super::measure::Pings;
use super::node::{Node, why};
use crate::args::PingArgs;
use crate::nodes::majority;
use crate::words::{self, Humane, counted, grouped};

const STRONG: Style = Style::new().bold();
const DOWN: Style = AnsiColor::Red.on_default();
const WARNING: Style = AnsiColor::Yellow.on_default();

const FIGURE_WIDTH: usize = 11;

/// The round trips that are shown, by their names.
const SHOWN: [(&str, f64); 4] = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];

/// A table of round trips, what each node is, and what is wrong with it.
pub(super) fn text(args: &PingArgs, nodes: &[Node]) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = show(&mut text, args, nodes);
    text
}

fn show(out: &mut impl Write, args: &PingArgs, nodes: &[Node]) -> fmt::Result {
    let (count, needed) = (counted(nodes.len(), "node"), majority(nodes.len()));
    let (pings, apart) = (grouped(args.count), Humane(args.interval));
    writeln!(out, "{count}, {needed} needed; {pings} pings to each, {apart} apart\n")?;
    let names = nodes.iter().map(|node| node.health.node.chars().count());
    let width = names.max().unwrap_or(0).max("node".len());
    write!(out, "{STRONG}{:width$}", "node")?;
    for (name, _) in SHOWN {
        write!(out, "{:>FIGURE_WIDTH$}", format!("{name} µs"))?;
    }
    writeln!(out, "{:>FIGURE_WIDTH$}{STRONG:#}", "lost")?;
    for node in nodes {
        write!(out, "{:width$}", node.health.node)?;
        match &node.pings {
            Some(pings) if node.has_answered() => figures(out, pings)?,
            _ => writeln!(out, "  {DOWN}{}{DOWN:#}", why(node))?,
        }
    }
    for node in nodes {
        if let Some(server) = &node.health.server {
            describe(out, &node.health.node, width, server)?;
        }
    }
    let forgets = words::forgets(nodes.iter().map(|node| &node.health));
    let evicts = nodes.iter().filter_map(Node::evicts);
    let far = words::far_clocks(nodes.iter().map(|node| &node.health));
    let warnings: Vec<String> = forgets.into_iter().chain(evicts).chain(far).collect();
    if !warnings.is_empty() {
        writeln!(out)?;
    }
    for warning in warnings {
        writeln!(out, "{WARNING}warning:{WARNING:#} {warning}")?;
    }
    Ok(())
}

fn figures(out: &mut impl Write, pings: &Pings) -> fmt::Result {
    for (_, share) in SHOWN {
        let tenths = pings.quantile(share).unwrap_or(0).div_ceil(100);
        let micros = format!("{}.{}", grouped(tenths / 10), tenths % 10);
        write!(out, "{micros:>FIGURE_WIDTH$}")?;
    }
    writeln!(out, "{:>FIGURE_WIDTH$}", grouped(pings.lost()))
}

fn describe(out: &mut impl Write, name: &str, width: usize, server: &ServerInfo) -> fmt::Result {
    let protocol = if server.resp3 { "RESP3" } else { "RESP2" };
    writeln!(out, "\n{STRONG}{name:width$}{STRONG:#}  {server}, {protocol}")?;
    let untold = "not told".to_owned();
    let policy = server.maxmemory_policy.as_ref().map(ToString::to_string);
    let clock = server.clock.map(|clock| clock.to_string());
    let lines = [
        ("persistence", server.persistence.to_string()),
        ("maxmemory-policy", policy.unwrap_or_else(|| untold.clone())),
        ("clock", clock.unwrap_or(untold)),
    ];
    for (what, value) in lines {
        writeln!(out, "{:width$}  {what:18}{value}", "")?;
    }
    Ok(())
}
