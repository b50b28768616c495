//! The manual: what the code alone does not say. In reading order:
//!
//! - [`promises`]: what a lock promises, what it does not, and what each broken assumption costs.
//! - [`when_not_to_lock`]: better tools for some jobs, and what belongs behind every lock.
//! - [`choosing`]: single or quorum, how many nodes, TTL, extension, waiting, durability, driver.
//! - [`combinations`]: what goes with which kind of lock, and what is refused.
//! - [`fencing`]: numbers that rise with every holder, for the store to refuse one who is late.
//! - [`readers`]: many that look at once, and one alone that changes.
//! - [`slots`]: several at once, and no more than there are slots.
//! - [`revocation`]: a holder that is asked to let go of its lock.
//! - [`latches`]: several that wait until all of them are there, once or round by round.
//! - [`recipes`]: a job that one replica runs, a leader, a cache, limits: what each promises.
//! - [`copied_recipes`]: the recipes that everyone copies, and how each breaks.
//! - [`others_failures`]: what went wrong for others, what we do about it, and the test for it.
//! - [`defaults`]: every default, its reason, and what goes wrong with another.
//! - [`server_states`]: what happens to a lock in each state of a server.
//! - [`runbook`]: the first incident: what you see, what to look at, what to do.
//! - [`compatibility`]: the servers it is tested with, the rights a user needs, what managed
//!   services forbid.
//! - [`hot_path`]: how an operation reaches the sockets and returns, what was measured, and how to
//!   measure again.

pub mod choosing;
pub mod combinations;
pub mod compatibility;
pub mod copied_recipes;
pub mod defaults;
pub mod fencing;
pub mod hot_path;
pub mod latches;
pub mod others_failures;
pub mod promises;
pub mod readers;
pub mod recipes;
pub mod revocation;
pub mod runbook;
pub mod server_states;
pub mod slots;
pub mod when_not_to_lock;
