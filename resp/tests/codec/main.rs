//! The codec against its vectors, against all short strings, against chance, and against a server.

#![expect(clippy::expect_used, reason = "a test's helpers fail the test they help")]

mod exhaustive;
mod face;
mod feed;
#[cfg(feature = "tokio-util")]
mod framed;
mod linear;
mod notation;
mod property;
#[cfg(unix)]
mod server;
mod vectors;
mod wire;
