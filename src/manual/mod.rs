//! The manual: what the code alone does not say. In reading order:
//!
//! - [`promises`]: what a lock promises and what not, what each assumption's breach costs.
//! - [`when_not_to_lock`]: what does the job better, and what belongs behind every lock.
//! - [`choosing`]: single or quorum, how many nodes, TTL, extension, waiting, durability, driver.
//! - [`copied_recipes`]: the recipes that everyone copies, and how each breaks.
//! - [`others_failures`]: what went wrong for others, what we do about it, and the test for it.
//! - [`defaults`]: every default, its reason, and what goes wrong with another.
//! - [`server_states`]: what becomes of a lock while a server is in this state or that.
//! - [`runbook`]: the first incident: what you see, what to look at, what to do.
//! - [`compatibility`]: what it was tried with, which rights a user needs, what managed services
//!   forbid.
//! - [`hot_path`]: how an operation gets to the sockets and back, what was measured on the way to
//!   it, and how to measure again.

pub mod choosing;
pub mod compatibility;
pub mod copied_recipes;
pub mod defaults;
pub mod hot_path;
pub mod others_failures;
pub mod promises;
pub mod runbook;
pub mod server_states;
pub mod when_not_to_lock;
