//! Runs libFuzzer on Plan. Most mutations change fields of a request; the others change bytes.

#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use nodewise_fuzz::{mutate, targets};

fuzz_target!(|data: &[u8]| targets::plan(data));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    match mutate::request(&data[..size], seed) {
        Some(changed) if changed.len() <= max_size => {
            data[..changed.len()].copy_from_slice(&changed);
            changed.len()
        }
        _ => fuzzer_mutate(data, size, max_size),
    }
});
