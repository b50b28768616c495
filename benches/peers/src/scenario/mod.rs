//! What is measured.
//!
//! | file | scenario |
//! |---|---|
//! | `closed` | all contestants on five nodes, and on one, in a closed loop |
//! | `open` | cycles begin at a rate, and latency counts from the intended start |
//! | `delay`, `proxy` | nodes at different distances |
//! | `hung` | two of five nodes do not answer |
//! | `foreign` | a lock whose holder hands nothing over |
//! | `growth`, `chart` | more nodes, more callers, both transports |
//! | `crowd` | a lock that many processes want all the time |
//! | `handover` | a lock that another process waits for |
//! | `native` | the server's own compare-and-delete beside the script |
//! | `line` | a lock that many tasks of one process want |
//! | `tls` | TCP, Unix sockets and TLS beside each other |
//!
//! Each gives its part of the record, and its figures to the results.

mod chart;
mod closed;
mod crowd;
mod delay;
mod foreign;
mod growth;
mod handover;
mod hung;
mod line;
mod native;
mod open;
mod proxy;
mod tls;

use crate::args::{Args, Scenario};
use crate::contest::Failure;
use crate::results::Results;

/// What a scenario adds to the record.
#[derive(Debug, Default)]
pub(crate) struct Part {
    pub(crate) text: String,
    /// A drawing, for a file of its own.
    pub(crate) svg: Option<String>,
}

impl From<String> for Part {
    fn from(text: String) -> Self {
        Self { text, svg: None }
    }
}

/// Measures one.
pub(crate) fn run(scenario: Scenario, args: &Args, results: &mut Results) -> Result<Part, Failure> {
    Ok(match scenario {
        Scenario::Peers => closed::peers(args, results)?.into(),
        Scenario::One => closed::one(args, results)?.into(),
        Scenario::Open => open::run(args, results)?.into(),
        Scenario::Delay => delay::run(args, results)?.into(),
        Scenario::Hung => hung::run(args, results)?.into(),
        Scenario::Growth => growth::run(args, results)?,
        Scenario::Tls => tls::run(args, results)?.into(),
        Scenario::Crowd => crowd::run(args, results)?.into(),
        Scenario::Native => native::run(args, results)?.into(),
        Scenario::Line => line::run(args, results)?.into(),
        Scenario::Foreign => foreign::run(args, results)?.into(),
        Scenario::HandOver => handover::run(args, results)?.into(),
    })
}
