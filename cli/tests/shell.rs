//! Completions and manual pages, and `check` without a cluster.

mod common;

use std::process::{Command, Stdio};

use common::{command, nodewise};

/// The subcommands that a user can complete.
const SUBCOMMANDS: [&str; 6] = ["plan", "explain", "demo", "check", "completion", "man"];

#[test]
fn each_shell_gets_completions_of_all_subcommands() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = nodewise(&["completion", shell]).ok();
        for subcommand in SUBCOMMANDS {
            assert!(script.contains(subcommand), "{shell}: no {subcommand}");
        }
        assert!(script.contains("kubeconfig"), "{shell}: no flags");
    }
    let ran = nodewise(&["completion", "tcsh"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("powershell"), "{ran:?}");
}

/// bash itself completes a subcommand and a flag.
#[test]
fn bash_completes() {
    let script = nodewise(&["completion", "bash"]).ok();
    for (words, expected) in [
        ("nodewise che", "check"),
        ("nodewise check --kubec", "--kubeconfig"),
    ] {
        let words: Vec<_> = words.split(' ').collect();
        let (last, before) = (words[words.len() - 1], words[words.len() - 2]);
        let run = format!(
            "{script}\nCOMP_WORDS=({}); COMP_CWORD={}; _nodewise nodewise '{last}' '{before}'; echo \"${{COMPREPLY[@]}}\"",
            words.join(" "),
            words.len() - 1
        );
        let output = Command::new("bash")
            .args(["--norc", "-c", &run])
            .stdin(Stdio::null())
            .output();
        let output = output.expect("bash starts");
        assert_eq!(
            String::from_utf8_lossy(&output.stdout).trim(),
            expected,
            "{output:?}"
        );
    }
}

#[test]
fn manual_pages_are_written_for_all_subcommands() {
    let page = nodewise(&["man"]).ok();
    assert!(
        page.contains(".TH nodewise 1") && page.contains("check"),
        "{page}"
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("man1");
    nodewise(&["man", &path.display().to_string()]).ok();
    for name in ["nodewise".to_owned()]
        .into_iter()
        .chain(SUBCOMMANDS.map(|one| format!("nodewise-{one}")))
    {
        let page = std::fs::read_to_string(path.join(format!("{name}.1"))).expect(&name);
        assert!(page.contains(".SH NAME"), "{name}: {page}");
    }
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let ran = nodewise(&["man", &file.display().to_string()]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("cannot create"), "{ran:?}");
}

/// 2 means that a check failed, so a cluster that cannot be asked is 1.
#[test]
fn check_without_a_cluster_is_no_failed_check() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config");
    let text = r#"{"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}], "users": [{"name": "c", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}]}"#;
    std::fs::write(&config, text).unwrap();
    let ran: common::Ran = command(&["check"])
        .env("KUBECONFIG", &config)
        .output()
        .unwrap()
        .into();
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.starts_with("error: http://127.0.0.1:1: "), "{ran:?}");
    for (args, complaint) in [
        (&["check", "--mode", "own"][..], "--pre"),
        (&["check", "--pre", "--mode", "rule"], "there is no mode `rule`"),
        (
            &["check", "--pre", "--controllers", "job"],
            "there is no controller `job`",
        ),
    ] {
        let ran = nodewise(args);
        assert_eq!(ran.code, Some(1), "{args:?}");
        assert!(ran.stderr.contains(complaint), "{ran:?}");
    }
}
