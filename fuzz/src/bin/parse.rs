//! Runs libFuzzer on the request parser.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nodewise_fuzz::targets::parse(data));
