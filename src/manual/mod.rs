//! The manual: what the code alone does not say.
//!
//! - [`hot_path`]: how an operation gets to the sockets and back, what was measured on the way to
//!   it, and how to measure again.
//!
//! Further chapters come with the capabilities that they explain.

pub mod hot_path;
