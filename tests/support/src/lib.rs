//! What the tests and measurements stand on: real servers, a scripted one, and ways to wait.
//!
//! | file | owns |
//! |---|---|
//! | `server` | `Server`: one real Redis or Valkey process on a free port, dead when dropped |
//! | `launch` | how a server's process is started |
//! | `in_process` | a node inside this process in the place of a server's process |
//! | `calls` | how often a server has executed each command |
//! | `fleet` | `Fleet`: several independent servers, and who of them holds which key |
//! | `reach` | the protocol and the transport by which clients reach the servers |
//! | `acl` | the user that may do what the library needs, and nothing more |
//! | `scripted` | `Scripted`: a loopback server that plays a `Script` and records what it hears |
//! | `script`, `greeting` | the steps of a script; the replies to a client's handshake |
//! | `proxy` | `Proxy`: a network between client and server that delivers late, or nothing |
//! | `tls`, `terminator` | certificates; TLS in front of a server, and what goes wrong there |
//! | `cancel` | `poll_times`: poll a future so many times, then drop it |
//! | `wait` | `Watchdog`, `eventually`: waiting for a condition, never for a time |
//! | `tools`, `skip` | finding servers and programs; skipping a test, visibly, without them |
//! | `wire` | a tiny blocking RESP2 client: an opinion on the protocol that is not ours |
//! | `postgres`, `mariadb` | databases; `unprivileged`: as another user where we are root |
//! | `process`, `port` | children that die with us; ports of our own |
//! | `scratch`, `sha1` | directories that are removed; the names of scripts |
//!
//! Nothing here but `in_process` uses the library: a test must not be judged by the code it tests.

#![expect(clippy::expect_used, reason = "a set-up that fails must fail its test on the spot")]

pub mod acl;
pub mod calls;
pub mod cancel;
pub mod fleet;
pub mod greeting;
#[cfg(feature = "in-process")]
pub mod in_process;
mod launch;
#[cfg(unix)]
pub mod mariadb;
pub mod port;
#[cfg(unix)]
pub mod postgres;
pub mod process;
pub mod proxy;
pub mod reach;
pub mod scratch;
pub mod script;
pub mod scripted;
pub mod server;
pub mod sha1;
pub mod skip;
pub mod terminator;
pub mod tls;
pub mod tools;
#[cfg(unix)]
mod unprivileged;
pub mod wait;
pub mod wire;

pub use calls::Calls;
pub use cancel::{PollTimes, poll_times};
pub use fleet::Fleet;
pub use greeting::Greeting;
#[cfg(unix)]
pub use mariadb::Mariadb;
pub use port::Port;
#[cfg(unix)]
pub use postgres::Postgres;
pub use proxy::Proxy;
pub use script::{Gate, Script};
pub use scripted::{Heard, Scripted};
pub use server::Server;
pub use terminator::{Behaviour, Terminator};
pub use tls::{Authority, Identity};
pub use wait::{Watchdog, eventually, eventually_async};
pub use wire::{Client, Reply};
