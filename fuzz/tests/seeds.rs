//! Checks that every seed is committed. Committed seeds may be older than the planner, since every input is valid as a seed.
//!
//! `NODEWISE_REGENERATE=1 cargo test -p nodewise-fuzz --test seeds` generates them again.

use std::{fs, path::PathBuf};

use nodewise_fuzz::{files, seeds, targets};

#[test]
fn every_seed_is_there() {
    for target in targets::ALL {
        let folder = files::corpus(target.name);
        let seeds = seeds::of(target.name);
        if std::env::var_os("NODEWISE_REGENERATE").is_some() {
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder).unwrap();
            for (name, bytes) in &seeds {
                fs::write(folder.join(name), bytes).unwrap();
            }
        }
        let mut expected: Vec<PathBuf> = seeds.iter().map(|(name, _)| folder.join(name)).collect();
        expected.sort();
        let found = files::read(&folder).unwrap().into_iter().map(|(path, _)| path);
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}
