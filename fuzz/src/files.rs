//! The folders of the inputs.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The folder of this crate.
fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The committed seeds of a target, which `tests/seeds.rs` generates.
#[must_use]
pub fn corpus(target: &str) -> PathBuf {
    crate_folder().join("corpus").join(target)
}

/// The committed inputs of a target that failed once.
#[must_use]
pub fn regressions(target: &str) -> PathBuf {
    crate_folder().join("regressions").join(target)
}

/// The files of a folder, sorted by name; none if the folder does not exist.
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
