//! The program, from outside: what it prints, how it ends, and what it leaves behind.
//!
//! | file | holds |
//! |---|---|
//! | `program/codes` | an exit code for each cause, and the line that goes with it |
//! | `program/child` | the command: its environment, its streams, signals, our death |
//! | `program/lost` | a lock that ends before the command does |
//! | `program/secret` | passwords: taken from the environment, and shown nowhere |
//! | `program/status` | who holds a key |
//! | `program/bench`, `program/schema` | measuring on somebody's nodes; what its JSON has to be |
//! | `program/demo` | five servers, and nothing left of them |
//! | `program/run` | running the program under a watchdog |
#![cfg(all(feature = "cli", unix))]

mod support;

#[path = "program/bench.rs"]
mod bench;
#[path = "program/child.rs"]
mod child;
#[path = "program/codes.rs"]
mod codes;
#[path = "program/demo.rs"]
mod demo;
#[path = "program/lost.rs"]
mod lost;
#[path = "program/run.rs"]
mod run;
#[path = "program/schema.rs"]
mod schema;
#[path = "program/secret.rs"]
mod secret;
#[path = "program/status.rs"]
mod status;
