//! Memory: what a peer can make the decoder allocate, and what it can not, counted.

#![expect(unsafe_code, reason = "an allocator that counts can only be written so")]

mod counter;
mod hostile;
mod lane;
#[expect(dead_code, reason = "what a vector means is the other test's business")]
#[path = "../codec/wire.rs"]
mod wire;

#[global_allocator]
static COUNTER: counter::Counting = counter::Counting;
