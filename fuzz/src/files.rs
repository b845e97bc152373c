//! Where the inputs are.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The folder of this crate.
fn home() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The committed seeds of a target, which `tests/seeds.rs` makes from the inputs of the other crates' tests.
#[must_use]
pub fn corpus(target: &str) -> PathBuf {
    home().join("corpus").join(target)
}

/// The committed inputs of a target on which something did not hold once.
#[must_use]
pub fn regressions(target: &str) -> PathBuf {
    home().join("regressions").join(target)
}

/// The files of a folder in the order of their names; none when there is no such folder.
pub fn read(folder: &Path) -> io::Result<Vec<(PathBuf, Vec<u8>)>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()?;
    paths.sort();
    paths
        .into_iter()
        .map(|path| fs::read(&path).map(|bytes| (path, bytes)))
        .collect()
}
