//! One node, without its network: keys, sessions, and the answers to commands.
//!
//! A [`Store`] knows no stream and no clock. The caller tells it of connections, hands it whole
//! commands with the time at which they are executed, and delivers the [`Effects`]: replies,
//! pushes, and connections to end. The same calls give the same effects, byte by byte.
//!
//! | file | job |
//! |---|---|
//! | `state` | what a node keeps, and what time does to it |
//! | `call` | one command under way: its words, its reply or refusal |
//! | `commands`, `execute` | the table of all commands; executing one that may be said |
//! | `connection`, `server`, `info` | commands about a connection, and about the node |
//! | `strings`, `expiry`, `sorted_sets` | commands about keys |
//! | `script` | the locks' own scripts, each a function that does what its Lua does |
//! | `lua` | tests only: any script, run by Lua itself |
//! | `tracking` | who is told that a key has changed |
//! | `pubsub` | who is told what is published on a channel |
//! | `keyspace` | keys with their ends |
//! | `sorted_set`, `score` | members in the order of their scores; scores as words and numbers |
//! | `user`, `acl` | users with their rights; commands about them |
//! | `version`, `wording` | which server the node poses as: what it knows, how it refuses |
//! | `glob`, `sha1` | patterns; the names of scripts |
//!
//! What it knows of Redis and Valkey is what a lock needs of them, and answers as they do. It is no
//! cache: no eviction, no persistence, no replication, no patterns of channels, and no Lua but ours
//! (but in our own tests).

mod acl;
mod call;
mod commands;
mod connection;
mod execute;
mod expiry;
mod glob;
mod info;
mod keyspace;
#[cfg(test)]
mod lua;
mod pubsub;
mod score;
mod script;
mod server;
mod sha1;
mod sorted_set;
mod sorted_sets;
mod state;
mod strings;
#[cfg(test)]
mod tests;
mod tracking;
mod user;
mod version;
mod wording;

pub(crate) use call::SessionId;
pub(crate) use commands::names as command_names;
#[cfg(test)]
pub(crate) use lua::runs as lua_runs;
pub(crate) use score::text as double_text;
#[cfg(test)]
pub(crate) use script::LATEST;
pub(crate) use script::{names as script_names, script_name};
#[cfg(test)]
pub(crate) use sha1::digest;
pub(crate) use state::{Effects, Persistence, Setup, Store};
pub(crate) use user::User;
pub(crate) use version::{Dialect, Version};
