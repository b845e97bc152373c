//! Every input that is kept, through its target: the seeds, what was found, and large ones of every kind.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
};

use nodewise_fuzz::{
    files, large,
    targets::{ALL, Target},
};
use rustix::process::{Resource, Rlimit, setrlimit};

/// A bound that does not hold may take anything: it shall end this process and not the machine.
const MEMORY: u64 = 4 << 30;

fn bound_memory() {
    let limit = Rlimit {
        current: Some(MEMORY),
        maximum: Some(MEMORY),
    };
    setrlimit(Resource::As, limit).expect("a limit may be lowered");
}

/// Whether something does not hold for an input.
fn fails(target: &Target, bytes: &[u8]) -> bool {
    catch_unwind(AssertUnwindSafe(|| (target.run)(bytes))).is_err()
}

/// One test, since what one takes would count as the other's: the bounds are of the whole process.
#[test]
fn all_that_is_kept_holds() {
    bound_memory();
    seeds_and_what_was_found();
    large_inputs();
}

fn seeds_and_what_was_found() {
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
