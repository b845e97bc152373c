//! Runs libFuzzer on Report.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nodewise_fuzz::targets::report(data));
