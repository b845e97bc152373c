//! The installation commands in the documents work.

use std::{fs, os::unix::fs::symlink};

use anyhow::{Context as _, Result, ensure};
use nodewise_testbed::manifests;
use serde_json::json;

use crate::render;

/// The fenced blocks of a document in this language.
fn blocks<'a>(document: &'a str, language: &str) -> Vec<&'a str> {
    let begin = format!("```{language}\n");
    let rest = document.split(begin.as_str()).skip(1);
    rest.filter_map(|text| Some(text.split_once("```")?.0)).collect()
}

/// The documented command that removes the rights.
pub(crate) fn delete_command() -> Result<Vec<String>> {
    let install = render::text("docs/install.md")?;
    let block = blocks(&install, "sh")
        .into_iter()
        .find(|block| block.contains("resourcequota/"))
        .context("docs/install.md has no command that takes rights away")?;
    let words = block.split_whitespace().filter(|word| *word != "\\");
    Ok(words.map(str::to_owned).collect())
}

/// The kustomization next to a clone, with the patch for a known address of the apiserver.
#[test]
fn the_kustomization_of_the_readme() -> Result<()> {
    let beside = tempfile::tempdir()?;
    symlink(render::file("").canonicalize()?, beside.path().join("nodewise"))?;
    let readme = render::text("deploy/README.md")?;
    let blocks = blocks(&readme, "yaml");
    let of = |beginning: &str| {
        let found = blocks.iter().find(|block| block.starts_with(beginning));
        found.with_context(|| format!("no example begins with {beginning}"))
    };
    let folder = beside.path().join("mine");
    fs::create_dir(&folder)?;
    let text = format!("{}{}", of("resources:")?, of("patches:")?);
    fs::write(folder.join("kustomization.yaml"), text)?;
    let objects = manifests::kustomize(&folder)?;

    let mut count = 0;
    for deployment in render::deployments(&objects) {
        let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
        let image = image.as_str().unwrap_or_default();
        ensure!(image.starts_with("REGISTRY/nodewise-"), "{image}");
        count += 1;
    }
    ensure!(count == 2, "{count} Deployments");
    let policy = objects
        .iter()
        .find(|object| render::name(object) == "NetworkPolicy nodewise-executor")
        .context("the executor's policy")?;
    for rule in policy["spec"]["egress"].as_array().into_iter().flatten() {
        ensure!(!rule["to"].is_null(), "open to all: {rule}");
    }
    let apiserver = json!([{ "ipBlock": { "cidr": "192.0.2.10/32" } }]);
    assert_eq!(policy["spec"]["egress"][1]["to"], apiserver);
    Ok(())
}
