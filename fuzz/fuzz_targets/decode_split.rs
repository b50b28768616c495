//! The target `decode_split` for `cargo fuzz`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quorlock_fuzz::decode_split(data));
