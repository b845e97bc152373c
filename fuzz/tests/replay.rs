//! Runs every target over its seeds, its regressions and its large inputs.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
};

use nodewise_fuzz::{
    files, large,
    targets::{ALL, Target},
};
use rustix::process::{Resource, Rlimit, setrlimit};

/// Bytes of address space for this process. A failing target may take any amount of memory, and must not exhaust the machine.
const MEMORY: u64 = 4 << 30;

fn bound_memory() {
    let limit = Rlimit {
        current: Some(MEMORY),
        maximum: Some(MEMORY),
    };
    setrlimit(Resource::As, limit).expect("a limit may be lowered");
}

/// Whether the target fails for an input.
fn fails(target: &Target, bytes: &[u8]) -> bool {
    catch_unwind(AssertUnwindSafe(|| (target.run)(bytes))).is_err()
}

/// One test: memory is measured for the whole process, so tests must not run at the same time.
#[test]
fn all_inputs_pass() {
    bound_memory();
    seeds_and_regressions();
    large_inputs();
}

fn seeds_and_regressions() {
    let mut failed = Vec::new();
    for target in ALL {
        let seeds = files::read(&files::corpus(target.name)).unwrap();
        assert!(!seeds.is_empty(), "{} has no seeds", target.name);
        let found = files::read(&files::regressions(target.name)).unwrap();
        let wrong = seeds
            .into_iter()
            .chain(found)
            .filter(|(_, bytes)| fails(&target, bytes));
        failed.extend(wrong.map(|(path, _)| path));
    }
    assert_eq!(failed, Vec::<PathBuf>::new());
}

fn large_inputs() {
    let mut failed = Vec::new();
    for target in ALL {
        large::each(target.name, large::BYTES, |name, bytes| {
            if fails(&target, &bytes) {
                failed.push(format!("{}: {name}", target.name));
            }
        });
    }
    assert_eq!(failed, Vec::<String>::new());
}
