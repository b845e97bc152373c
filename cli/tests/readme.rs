//! Tests that the commands in the README print the output that it shows, and that all commands that read a cluster read its policies.

mod common;

use std::{fs, path::Path};

use common::{Ran, command, nodewise};

/// The README's console blocks that begin with `$ nodewise`: the command line and its output.
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
fn the_output_in_the_readme_is_correct() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let readme = fs::read_to_string(root.join("README.md")).expect("the README is there");
    let shown = shown(&readme);
    assert!(!shown.is_empty(), "it shows explain");
    for (line, output) in shown {
        let args: Vec<&str> = line.split(' ').collect();
        let ran = command(&args)
            .current_dir(&root)
            .output()
            .map(Ran::from)
            .expect("nodewise runs");
        // `rollout status` exits with 3 if the rollout is stuck. 1 is an error.
        assert_ne!(ran.code, Some(1), "of: nodewise {line}: {ran:?}");
        assert_eq!(ran.stdout.trim_end(), output.trim_end(), "of: nodewise {line}");
    }
}

/// The picture of the terminal in the README.
const PICTURE: &str = "docs/images/plan.svg";

/// `NODEWISE_REGENERATE=1 cargo test -p nodewise --test readme` draws it again.
#[test]
fn the_picture_in_the_readme_is_what_plan_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let readme = fs::read_to_string(root.join("README.md")).expect("the README is there");
    assert!(readme.contains(PICTURE), "the README shows {PICTURE}");
    let line = "plan -f cli/tests/data/mixed.json --now 2026-01-01T02:00:00Z";
    let args: Vec<&str> = line.split(' ').collect();
    let ran = command(&args)
        .env("CLICOLOR_FORCE", "1")
        .current_dir(&root)
        .output()
        .map(Ran::from)
        .expect("nodewise runs");
    let drawn = anstyle_svg::Term::new()
        .palette(anstyle_svg::WIN10_CONSOLE)
        .render_svg(&format!("$ nodewise {line}\n{}", ran.ok()));
    let path = root.join(PICTURE);
    if std::env::var_os("NODEWISE_REGENERATE").is_some() {
        fs::write(&path, &drawn).expect("the picture is written");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(committed, drawn, "NODEWISE_REGENERATE=1 draws {PICTURE} again");
}

/// What a command that reads DaemonSets from a cluster begins with.
const READS: &str = "daemonsets,controllerrevisions,pods,nodes -A -o json";

#[test]
fn every_command_that_reads_a_cluster_reads_its_policies() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let documents = ["README.md", "docs/what-if.md", "docs/dashboard.md"];
    let documents = documents.map(|path| fs::read_to_string(root.join(path)).expect("a document"));
    let helps =
        ["plan", "status", "simulate", "dashboard"].map(|command| nodewise(&[command, "--help"]).ok());
    for text in documents.iter().chain(&helps) {
        // Help is wrapped.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let commands = text.split(READS).skip(1);
        // Within a sentence it is quoted, and the sentence says the rest.
        let commands: Vec<&str> = commands.filter(|rest| !rest.starts_with('`')).collect();
        assert!(!commands.is_empty(), "there is one in: {text}");
        for rest in commands {
            assert!(
                rest.starts_with("; kubectl get rolloutpolicies -A -o json) "),
                "not a command of its own, which may fail: {READS}{rest}"
            );
        }
        assert!(
            text.contains("kubectl get rolloutpolicies -A -o json`") || !text.contains(&format!("{READS}`")),
            "{text}"
        );
    }
}

/// Commands within sentences. Their flags must exist, and their subcommands.
#[test]
fn the_command_line_knows_the_commands_of_the_documents() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for document in ["docs/rollouts.md", "docs/what-if.md", "docs/operations.md"] {
        let text = fs::read_to_string(root.join(document)).expect("a document");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let commands = text.split("`nodewise ").skip(1);
        let commands = commands.filter_map(|rest| Some(rest.split_once('`')?.0));
        // `pause|resume` stands for several commands.
        let commands: Vec<&str> = commands.filter(|command| !command.contains('|')).collect();
        assert!(commands.len() > 3, "{document} names commands");
        for command in commands {
            let mut words: Vec<&str> = command.split(' ').collect();
            words.push("--help");
            let ran = nodewise(&words);
            assert_eq!(ran.code, Some(0), "{document}: nodewise {command}: {ran:?}");
        }
    }
}
