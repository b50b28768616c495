//! The results as one JSON object, as `schema.json` says.

use super::assertion::Assertion;
use super::figures::{Figures, Metric, Outcome, Row};
use crate::args::BenchArgs;
use crate::json::Object;
use crate::nodes::majority;

/// Grows when a member changes its meaning or goes away; new members do not change it.
const VERSION: u32 = 1;

/// The object, in one line.
pub(crate) fn json(args: &BenchArgs, outcome: &Outcome, assertions: &[Assertion]) -> String {
    let nodes = outcome.nodes.iter().map(|node| Object::new().text("node", &**node));
    let asserted = assertions.iter().map(|assertion| {
        let holds = outcome.rows.iter().all(|row| assertion.holds(&row.ours));
        Object::new().text("assertion", &*assertion.text).number("holds", Some(holds))
    });
    Object::new()
        .number("schema_version", Some(VERSION))
        .text("quorlock_version", env!("CARGO_PKG_VERSION"))
        .array("nodes", nodes)
        .number("needed", Some(majority(outcome.nodes.len())))
        .text("runtime", args.runtime.name())
        .text("loop", if args.rate.is_some() { "open" } else { "closed" })
        .number("rate", args.rate)
        .number("duration_ms", Some(args.duration.as_millis()))
        .text("no_floor", outcome.no_floor.as_deref())
        .array("rows", outcome.rows.iter().map(row))
        .array("assertions", asserted)
        .end()
}

fn row(row: &Row) -> Object {
    let ratios = |floor| {
        Metric::ALL.iter().fold(Object::new(), |object, metric| {
            let ratio = metric.ratio(&row.ours, floor);
            object.number(metric.stem(), ratio.map(|ratio| format!("{ratio:.3}")))
        })
    };
    Object::new()
        .number("callers", Some(row.callers))
        .object("ours", figures(&row.ours))
        .object("floor", row.floor.as_ref().map(figures))
        .object("ratio", row.floor.as_ref().map(ratios))
}

fn figures(figures: &Figures) -> Object {
    let object = Object::new()
        .number("cycles", Some(figures.cycles()))
        .number("errors", Some(figures.errors))
        .text("first_error", figures.trouble.as_ref().map(|trouble| &*trouble.what))
        .number("never_started", Some(figures.missed))
        .number("elapsed_us", Some(figures.elapsed.as_micros()));
    Metric::ALL.iter().fold(object, |object, metric| {
        let value = format!("{:.0}", metric.of(figures));
        object.number(&metric.member(), Some(value))
    })
}
