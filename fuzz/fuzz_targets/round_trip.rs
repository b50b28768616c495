//! The target `round_trip` for `cargo fuzz`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quorlock_fuzz::round_trip(data));
