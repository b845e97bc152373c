//! Tests `nodewise status` and `nodewise rollout status` with files.

mod common;

use common::{NOW, Ran, data, nodewise};
use serde_json::Value;

const STUCK: &str = "stuck-deployment.json";

fn run(words: &[&str], file: &str) -> Ran {
    let file = data(file);
    nodewise(&[words, &["-f", &file, "--now", NOW]].concat())
}

#[test]
fn one_row_for_each_workload_with_the_worst_first() {
    insta::assert_snapshot!(run(&["status", "ds,deploy", "-o", "wide"], STUCK).ok());
    insta::assert_snapshot!("a_daemon_set_in_a_row", run(&["status"], "rollout.json").ok());
}

#[test]
fn the_rollout_of_a_daemon_set() {
    let output = run(&["rollout", "status", "ds/agent"], "rollout.json");
    insta::assert_snapshot!(output.stdout);
}

#[test]
fn the_rollout_of_a_stuck_deployment_has_its_cause_and_what_helps() {
    let output = run(&["rollout", "status", "deploy/web"], STUCK);
    assert_eq!(output.code, Some(3));
    insta::assert_snapshot!(output.stdout);
}

#[test]
fn wide_has_each_node_or_pod_with_its_reason() {
    let nodes = run(&["rollout", "status", "ds/agent", "-o", "wide"], "rollout.json");
    insta::assert_snapshot!(nodes.stdout);
    let pods = run(&["rollout", "status", "deploy/web", "-o", "wide"], STUCK);
    insta::assert_snapshot!("the_pods_of_a_deployment", pods.stdout);
}

#[test]
fn the_exit_code_says_how_the_rollout_is() {
    for (file, target, code) in [
        ("steady.json", "ds/agent", 0),
        ("complete-deployment.json", "deploy/web", 0),
        ("rollout.json", "ds/agent", 2),
        (STUCK, "deploy/web", 3),
    ] {
        let output = run(&["rollout", "status", target], file);
        assert_eq!(output.code, Some(code), "{file}: {}", output.stdout);
    }
    assert_eq!(
        run(&["rollout", "status", "ds/none"], "steady.json").code,
        Some(1)
    );
}

#[test]
fn programs_get_the_message_as_json_and_yaml() {
    let json = run(&["rollout", "status", "deploy/web", "-o", "json"], STUCK).stdout;
    let status: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(status["state"], "ROLLOUT_STATE_STUCK");
    assert!(status["counts"]["blocked"].as_u64() > Some(0), "{status}");
    let yaml = run(&["rollout", "status", "deploy/web", "-o", "yaml"], STUCK).stdout;
    assert!(yaml.contains("state: ROLLOUT_STATE_STUCK"), "{yaml}");
    let all: Value =
        serde_json::from_str(&run(&["status", "-o", "json"], "rollout.json").ok()).expect("JSON");
    assert_eq!(all[0]["name"], "agent");
}

#[test]
fn a_file_cannot_be_watched() {
    for words in [
        &["rollout", "status", "ds/agent", "--watch"][..],
        &["status", "--watch"],
    ] {
        let output = run(words, "rollout.json");
        assert_eq!(output.code, Some(1));
        assert!(output.stderr.contains("cannot be used with"), "{}", output.stderr);
    }
}

/// 0 is no limit, as with kubectl.
#[test]
fn the_time_limit_is_that_of_a_watch() {
    for words in [&["rollout", "status", "ds/agent"][..], &["status"]] {
        let without = nodewise(&[words, &["--timeout", "5s"]].concat());
        assert_eq!(without.code, Some(1), "{without:?}");
        assert!(without.stderr.contains("--watch"), "{without:?}");
        let help = nodewise(&[words, &["--help"]].concat()).ok();
        for part in ["--timeout <DURATION>", "--server-timeout <DURATION>", "for ever"] {
            assert!(help.contains(part), "no {part} in {help}");
        }
        let missing = [
            "--watch",
            "--timeout",
            "0",
            "--kubeconfig",
            "/nonexistent/kubeconfig",
        ];
        let ran = nodewise(&[words, &missing].concat());
        assert!(ran.stderr.contains("kubeconfig"), "{ran:?}");
        let wrong = nodewise(&[words, &["--watch", "--timeout", "never"]].concat());
        assert!(
            wrong.stderr.contains("not a duration such as 30s or 2m"),
            "{wrong:?}"
        );
    }
}

// The apiserver keeps the names of all writers of the status. Those of the last ten minutes work on it now.
#[test]
fn a_second_controller_is_a_warning_in_every_view() {
    let warning = "kube-controller-manager (3s ago) and nodewise-executor (9s ago) write its status: if both are controllers, each \
                   undoes what the other one does; stop one of them";
    let now: jiff::Timestamp = NOW.parse().expect("a time");
    let entry = |manager: &str, seconds: i64| {
        let time = now - jiff::SignedDuration::from_secs(seconds);
        serde_json::json!({"manager": manager, "operation": "Update", "subresource": "status", "time": time.to_string()})
    };
    for (file, kind, target) in [
        ("rollout.json", "DaemonSet", "ds/agent"),
        (STUCK, "Deployment", "deploy/web"),
    ] {
        for (other, is_told) in [(3, true), (900, false)] {
            let text = std::fs::read_to_string(data(file)).expect("the file");
            let mut dump: Value = serde_json::from_str(&text).expect("JSON");
            for item in dump["items"].as_array_mut().expect("a list") {
                if item["kind"] == kind {
                    item["metadata"]["managedFields"] = serde_json::json!([
                        entry("kube-controller-manager", other),
                        entry("nodewise-executor", 9)
                    ]);
                }
            }
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("dump.json");
            std::fs::write(&path, dump.to_string()).expect("written");
            let path = path.to_str().expect("UTF-8");
            for words in [
                &["status"][..],
                &["rollout", "status", target],
                &["explain", target],
            ] {
                let output = nodewise(&[words, &["-f", path, "--now", NOW]].concat()).stdout;
                let unwrapped = output.split_whitespace().collect::<Vec<_>>().join(" ");
                assert_eq!(unwrapped.contains(warning), is_told, "{words:?}: {output}");
            }
        }
    }
}
