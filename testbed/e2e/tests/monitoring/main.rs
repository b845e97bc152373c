//! Tests of Prometheus' rules and Grafana's dashboard in `deploy/`. They are checked against the tables of metrics in
//! `docs/operations.md`, and in a real run. Other tests check these tables against the programs.

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

/// The path of a file in the repository.
fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn text(path: &str) -> Result<String> {
    let file = file(path);
    fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))
}
