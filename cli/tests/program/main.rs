//! The program, from outside: what it prints, how it ends, and what it leaves behind.
//!
//! | file | holds |
//! |---|---|
//! | `codes` | an exit code for each cause, and the line that goes with it |
//! | `child` | the command: its environment, its streams, signals, our death |
//! | `keys` | several keys, all or none |
//! | `lease` | a lock that is extended while the command runs, and how long |
//! | `lost` | a lock that ends before the command does |
//! | `on_lost` | what the command is told when the nodes forget, or hang |
//! | `full_pipe`, `pipe` | a stderr or stdout that takes nothing; such a pipe |
//! | `secret` | passwords: taken from the environment, and shown nowhere |
//! | `shared`, `slots` | a lock that several share; a key of which several have a slot each |
//! | `once` | a command that one of several machines runs |
//! | `elect` | a command that runs on one of several machines |
//! | `recipe` | commands that need not run each time: cached, idempotent, limited |
//! | `fair` | commands that run in the order in which they came |
//! | `killed` | programs that end by `kill -9`, and those that wait for them |
//! | `status` | who holds a key |
//! | `revoke` | a holder that is asked to let go of its lock |
//! | `release` | a lock that is ended by its token, or by force |
//! | `bench`, `schema` | measuring on a user's nodes; what its JSON has to be |
//! | `ping` | how far the nodes are, and what they are |
//! | `tls` | a command under a lock over TLS |
//! | `demo` | five servers, and nothing left of them |
//! | `run`, `stream` | running the program under a watchdog; what it writes |
#![cfg(unix)]

mod bench;
mod child;
mod codes;
mod demo;
mod elect;
mod fair;
mod full_pipe;
mod keys;
mod killed;
mod lease;
mod lost;
mod on_lost;
mod once;
mod ping;
mod pipe;
mod recipe;
mod release;
mod revoke;
mod run;
mod schema;
mod secret;
mod shared;
mod slots;
mod status;
mod stream;
#[cfg(feature = "tls-rustls")]
mod tls;
