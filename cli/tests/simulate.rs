//! Tests `nodewise simulate` on a dump.

mod common;

use common::{NOW, data, nodewise, nodewise_with_input};
use serde_json::Value;

/// Plays a change of the DaemonSet in a file. Returns the exit code and standard output.
fn simulate(file: &str, more: &[&str]) -> (Option<i32>, String) {
    let file = data(file);
    let args = [&["simulate", "ds/agent", "--dump", &file, "--now", NOW], more].concat();
    let ran = nodewise(&args);
    assert!(!ran.stderr.contains("error"), "{ran:?}");
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

/// After an outage of its node a pod became ready days after its creation. That says nothing about a new pod.
#[test]
fn pods_that_became_ready_again_do_not_tell_how_long_that_takes() {
    let dump = std::fs::read_to_string(data("steady.json")).expect("a file");
    let origin = |change: &dyn Fn(usize, &mut Value)| {
        let mut dump: Value = serde_json::from_str(&dump).expect("JSON");
        let items = dump["items"].as_array_mut().expect("items").iter_mut();
        let pods = items.filter(|item| item["kind"] == "Pod");
        for (index, pod) in pods.enumerate() {
            change(index, &mut pod["status"]);
        }
        let args = ["simulate", "ds/agent", "--dump", "-", "--now", NOW, "-o", "json"];
        let args = [&args[..], &["--image", "registry.example/agent:9"]].concat();
        let played = nodewise_with_input(&args, &dump.to_string()).ok();
        let played: Value = serde_json::from_str(&played).expect("JSON");
        let assumed = &played["assumptions"];
        (
            assumed["readyAfterSeconds"].as_f64().expect("a number"),
            assumed["readyAfterOrigin"].as_str().expect("a text").to_owned(),
        )
    };
    let restarted = |status: &mut Value| {
        status["containerStatuses"] = serde_json::json!([{"name": "agent", "restartCount": 1}]);
    };
    let later =
        |status: &mut Value| status["conditions"][0]["lastTransitionTime"] = "2026-01-01T01:50:00Z".into();
    let one_counts = origin(&|index, status| match index {
        0 => restarted(status),
        1 => later(status),
        _ => {}
    });
    assert_eq!(one_counts, (30.0, "as the ready pod did".to_owned()));
    let none = origin(&|index, status| {
        if index == 0 {
            restarted(status);
        } else {
            later(status);
        }
    });
    assert_eq!(
        none,
        (
            10.0,
            "the default, because every ready pod has restarted or has become ready again later".to_owned()
        )
    );
}

#[test]
fn a_chart_replaces_only_a_chart() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("new.yaml");
    let name = file.display().to_string();
    let args = [
        "simulate",
        "ds/agent",
        "--dump",
        &data("steady.json"),
        "--now",
        NOW,
        "--svg",
        &name,
    ];
    let args = [&args[..], &["--image", "registry.example/agent:9"]].concat();
    std::fs::write(&file, "kind: DaemonSet\n").expect("written");
    let refused = nodewise(&args);
    assert_eq!((refused.code, &*refused.stdout), (Some(1), ""), "{refused:?}");
    let expected = format!("error: --svg {name}: the file exists and is not an SVG that begins with <svg");
    assert!(refused.stderr.starts_with(&expected), "{refused:?}");
    assert_eq!(
        std::fs::read_to_string(&file).expect("a file"),
        "kind: DaemonSet\n"
    );
    std::fs::remove_file(&file).expect("removed");
    for _ in 0..2 {
        nodewise(&args).ok();
        assert!(
            std::fs::read_to_string(&file)
                .expect("a file")
                .starts_with("<svg")
        );
    }
}

#[test]
fn all_steps_have_all_names() {
    let mut dump: Value =
        serde_json::from_str(&std::fs::read_to_string(data("new.json")).expect("a file")).expect("JSON");
    let items = dump["items"].as_array_mut().expect("items");
    items.retain(|item| item["kind"] == "DaemonSet");
    items.extend((1..=9).map(|number| {
        let name = format!("node-{number}");
        serde_json::json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": name}})
    }));
    let args = ["simulate", "ds/agent", "--dump", "-", "--now", NOW];
    let some = nodewise_with_input(&args, &dump.to_string()).ok();
    assert!(
        some.contains("node-5, 4 more") && !some.contains("node-9"),
        "{some}"
    );
    let all = nodewise_with_input(&[&args[..], &["--all-steps"]].concat(), &dump.to_string()).ok();
    assert!(all.contains("node-5, node-6, node-7, node-8, node-9"), "{all}");
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
