//! Tests the commands that show and change revisions, with files: nothing can be written to them.

mod common;

use common::{Ran, data, nodewise};
use serde_json::Value;

const STUCK: &str = "stuck-deployment.json";

fn run(words: &[&str], file: &str) -> Ran {
    let file = data(file);
    nodewise(&[&["rollout"], words, &["-f", &file]].concat())
}

#[test]
fn the_history_has_templates_and_marks_the_present_one() {
    insta::assert_snapshot!(run(&["history", "deploy/web"], STUCK).ok());
    insta::assert_snapshot!(
        "of_a_daemon_set",
        run(&["history", "ds/agent"], "rollout.json").ok()
    );
    let json = run(&["history", "deploy/web", "-o", "json"], STUCK).ok();
    let revisions: Value = serde_json::from_str(&json).expect("JSON");
    let current: Vec<_> = revisions
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| &one["isCurrent"])
        .collect();
    assert_eq!(current, [false, false, true]);
}

#[test]
fn a_diff_has_the_lines_that_differ() {
    let ran = run(&["diff", "deploy/web"], STUCK);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    insta::assert_snapshot!(ran.stdout);
    let same = run(&["diff", "deploy/web", "--revision", "3"], STUCK).ok();
    assert!(same.contains("no difference"), "{same}");
}

#[test]
fn undo_shows_what_would_change_before_it_refuses_a_file() {
    let ran = run(&["undo", "deploy/web", "--yes"], STUCK);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for part in [
        "back to revision 2",
        "registry.example/web:2",
        "kubectl rollout undo deployment/web -n shop --to-revision=2",
    ] {
        assert!(ran.stdout.contains(part), "no {part:?} in {}", ran.stdout);
    }
    assert!(ran.stderr.contains("it was read from a file"), "{}", ran.stderr);
}

#[test]
fn undo_of_a_deployment_restores_its_annotations() {
    let text = std::fs::read_to_string(data(STUCK)).expect("the file");
    let mut dump: Value = serde_json::from_str(&text).expect("JSON");
    for item in dump["items"].as_array_mut().expect("a list") {
        let cause = "kubernetes.io/change-cause";
        if item["kind"] == "Deployment" {
            item["metadata"]["annotations"][cause] = "image 3".into();
            item["metadata"]["annotations"]["team"] = "shop".into();
        } else if item["metadata"]["name"] == "web-5c6b" {
            item["metadata"]["annotations"][cause] = "image 2".into();
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("dump.json");
    std::fs::write(&path, dump.to_string()).expect("written");
    let path = path.to_str().expect("UTF-8");
    let shown = nodewise(&["rollout", "undo", "deploy/web", "--yes", "-f", path]).stdout;
    for line in [
        "- annotation kubernetes.io/change-cause: image 3",
        "+ annotation kubernetes.io/change-cause: image 2",
        "- annotation team: shop",
    ] {
        assert!(shown.lines().any(|one| one == line), "no {line:?} in {shown}");
    }
    assert!(!shown.contains("deployment.kubernetes.io/"), "{shown}");
}

#[test]
fn wrong_uses_say_what_is_right() {
    for (words, file, expected) in [
        (
            &["undo", "deploy/web", "--to-revision", "9"][..],
            STUCK,
            "no revision 9; it has 1, 2, 3",
        ),
        (
            &["pause", "ds/agent"],
            "rollout.json",
            "Kubernetes can pause only Deployments",
        ),
        (
            &["history", "rs/web-7d9f"],
            STUCK,
            "a ReplicaSet has one template and no revisions",
        ),
        (
            &["restart", "rs/web-7d9f"],
            STUCK,
            "a ReplicaSet does not replace its pods",
        ),
        (&["resume", "deploy/none"], STUCK, "no Deployment none"),
    ] {
        let ran = run(words, file);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains(expected), "no {expected:?} in {}", ran.stderr);
    }
}

#[test]
fn retry_names_the_pods_and_their_problems() {
    let ran = run(&["retry", "deploy/web", "--yes"], STUCK);
    assert!(
        ran.stdout
            .contains("pod web-7d9f-bq5wn: container web: ImagePullBackOff"),
        "{ran:?}"
    );
    assert!(ran.stderr.contains("it was read from a file"), "{}", ran.stderr);
    let none = run(&["retry", "ds/agent"], "steady.json").ok();
    assert!(none.contains("no pod holds up the rollout"), "{none}");
}
