//! The target `differential` for `cargo fuzz`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quorlock_fuzz::differential(data));
