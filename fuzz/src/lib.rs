//! Bodies of the fuzz targets, and what feeds them without a fuzzer.
//!
//! A *target* takes any bytes and panics if the codec breaks a promise. `cargo fuzz` runs them
//! with coverage on a nightly toolchain; the program `replay` runs them on any, over the corpus
//! and over input made from it ([`Generator`]).

mod decoding;
#[cfg(feature = "differential")]
mod differential;
mod generator;

pub use decoding::{decode, decode_split, round_trip};
#[cfg(feature = "differential")]
pub use differential::{differences, differential, explanations};
pub use generator::Generator;

/// A target: its name, and its body.
pub type Target = (&'static str, fn(&[u8]));

/// Every target of this build.
pub const TARGETS: &[Target] = &[
    ("decode", decode),
    ("decode_split", decode_split),
    ("round_trip", round_trip),
    #[cfg(feature = "differential")]
    ("differential", differential),
];

/// The committed inputs of all targets. Each target takes any bytes, so they share them.
///
/// # Panics
/// When the corpus can not be read.
#[must_use]
pub fn corpus() -> Vec<Vec<u8>> {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut inputs = Vec::new();
    let mut pending = vec![directory];
    while let Some(directory) = pending.pop() {
        let entries = std::fs::read_dir(&directory)
            .unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                pending.push(path);
            } else if let Ok(input) = std::fs::read(&path) {
                inputs.push(input);
            }
        }
    }
    inputs.sort();
    inputs
}
