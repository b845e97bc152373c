//! Tests `nodewise simulate` on a dump.

mod common;

use common::{NOW, data, nodewise};
use serde_json::Value;

/// Plays a change of the DaemonSet in a file. Returns the exit code and standard output.
fn simulate(file: &str, more: &[&str]) -> (Option<i32>, String) {
    let file = data(file);
    let args = [&["simulate", "ds/agent", "--dump", &file, "--now", NOW], more].concat();
    let ran = nodewise(&args);
    assert!(ran.stderr.is_empty(), "{ran:?}");
    (ran.code, ran.stdout)
}

#[test]
fn a_new_image_is_played_to_its_end() {
    let (code, text) = simulate("steady.json", &["--image", "registry.example/agent:9"]);
    assert_eq!(code, Some(0), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn failing_pods_get_the_rollout_stuck() {
    let more = [
        "--image",
        "registry.example/agent:9",
        "--ready-after",
        "30s",
        "--fail",
        "50%",
        "--seed",
        "3",
    ];
    let (code, text) = simulate("steady.json", &more);
    assert_eq!(code, Some(3), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn json_has_every_step() {
    let (code, text) = simulate(
        "steady.json",
        &[
            "--image",
            "registry.example/agent:9",
            "--ready-after",
            "30s",
            "-o",
            "json",
        ],
    );
    assert_eq!(code, Some(0), "{text}");
    let played: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(played["end"]["result"], "done");
    assert_eq!(played["assumptions"]["readyAfterSeconds"], 30.0);
    let steps = played["steps"].as_array().expect("an array");
    assert!(
        steps
            .iter()
            .all(|step| step["worstUnavailable"].as_u64() <= step["maxUnavailable"].as_u64())
    );
    let last = steps.last().expect("a step");
    assert_eq!(last["updated"], last["desired"]);
}

#[test]
fn the_chart_has_a_title_and_a_description() {
    let (code, svg) = simulate(
        "steady.json",
        &["--image", "registry.example/agent:9", "-o", "svg"],
    );
    assert_eq!(code, Some(0));
    for expected in [
        "<svg",
        "role=\"img\"",
        "<title id=\"title\">",
        "<desc id=\"desc\">",
        "maxUnavailable",
    ] {
        assert!(svg.contains(expected), "{expected} in {svg}");
    }
}

#[test]
fn a_deployment_is_played_by_its_replica_sets() {
    let file = data("complete-deployment.json");
    let args = [
        "simulate",
        "deploy/web",
        "--dump",
        &file,
        "--now",
        NOW,
        "--gone-after",
        "2s",
    ];
    let ran = nodewise(&[&args[..], &["--image", "registry.example/web:4"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    insta::assert_snapshot!(ran.stdout);
    let ran = nodewise(&[&args[..], &["--image", "registry.example/web:4", "-o", "svg"]].concat());
    for expected in ["maxSurge", "maxUnavailable", "replicas"] {
        assert!(ran.stdout.contains(expected), "{expected} in {}", ran.stdout);
    }
}

#[test]
fn long_plays_leave_out_steps_in_the_middle() {
    let more = ["--image", "registry.example/agent:9", "--max-steps", "3"];
    let (code, text) = simulate("steady.json", &more);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("not done --max-steps is reached after"), "{text}");
    let ran = nodewise(&[
        "simulate",
        "ds/agent",
        "--dump",
        &data("steady.json"),
        "--max-nodes",
        "2",
    ]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stderr
            .contains("the snapshot has 4 nodes, more than the 2 that are played"),
        "{ran:?}"
    );
}

#[test]
fn wrong_targets_say_what_is_right() {
    let file = data("steady.json");
    for (target, more, expected) in [
        ("deploy/web", vec![], "no Deployment web; there is none at all"),
        (
            "ds/agent",
            vec!["--image", "other=a:1"],
            "--image other=a:1: DaemonSet monitoring/agent has no such container; it has agent",
        ),
    ] {
        let ran = nodewise(&[&["simulate", target, "--dump", &file][..], &more[..]].concat());
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains(expected), "{ran:?}");
    }
}
