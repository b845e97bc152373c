//! What `deploy/` gives for monitoring: Prometheus' rules and Grafana's dashboard. They are held to the tables of metrics in
//! `docs/operations.md`, which other tests hold equal to what the programs serve, and to a real run.

mod dashboard;
mod documented;
mod labels;
mod live;
mod rules;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

/// A file of the repository.
fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn text(path: &str) -> Result<String> {
    let file = file(path);
    fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))
}
