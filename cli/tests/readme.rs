//! The output that the README shows is what its commands print.

mod common;

use std::{fs, path::Path};

use common::{Ran, command};

/// The README's console blocks that begin with `$ nodewise`: the command line and what is shown below it.
fn shown(readme: &str) -> Vec<(&str, &str)> {
    let blocks = readme.split("```console\n$ nodewise ").skip(1);
    blocks
        .map(|block| {
            let (block, _) = block.split_once("\n```").expect("a block ends");
            block.split_once('\n').expect("a command line and its output")
        })
        .collect()
}

#[test]
fn the_readme_shows_true_output() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let readme = fs::read_to_string(root.join("README.md")).expect("the README is there");
    let shown = shown(&readme);
    assert!(shown.len() >= 2, "it shows plan and explain");
    for (line, output) in shown {
        let args: Vec<&str> = line.split(' ').collect();
        let ran = command(&args)
            .current_dir(&root)
            .output()
            .map(Ran::from)
            .expect("nodewise runs");
        assert_eq!(ran.ok().trim_end(), output.trim_end(), "of: nodewise {line}");
    }
}
