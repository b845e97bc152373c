//! Runs libFuzzer on the reader of the CLI's files.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nodewise_fuzz::targets::file(data));
