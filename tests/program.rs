//! The program, from outside: what it prints, how it ends, and what it leaves behind.
//!
//! | file | holds |
//! |---|---|
//! | `program/codes` | an exit code for each cause, and the line that goes with it |
//! | `program/child` | the command: its environment, its streams, signals, our death |
//! | `program/lease` | a lock that is extended while the command runs, and how long |
//! | `program/lost` | a lock that ends before the command does |
//! | `program/on_lost` | what the command is told when the nodes forget, or hang |
//! | `program/full_pipe`, `program/pipe` | a stderr or stdout that takes nothing; such a pipe |
//! | `program/secret` | passwords: taken from the environment, and shown nowhere |
//! | `program/status` | who holds a key |
//! | `program/bench`, `program/schema` | measuring on somebody's nodes; what its JSON has to be |
//! | `program/ping` | how far the nodes are, and what they are |
//! | `program/demo` | five servers, and nothing left of them |
//! | `program/run`, `program/stream` | running the program under a watchdog; what it writes |
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
#[path = "program/full_pipe.rs"]
mod full_pipe;
#[path = "program/lease.rs"]
mod lease;
#[path = "program/lost.rs"]
mod lost;
#[path = "program/on_lost.rs"]
mod on_lost;
#[path = "program/ping.rs"]
mod ping;
#[path = "program/pipe.rs"]
mod pipe;
#[path = "program/release.rs"]
mod release;
#[path = "program/run.rs"]
mod run;
#[path = "program/schema.rs"]
mod schema;
#[path = "program/secret.rs"]
mod secret;
#[path = "program/status.rs"]
mod status;
#[path = "program/stream.rs"]
mod stream;
