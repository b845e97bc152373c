//! Tests `nodewise explain` with its text and JSON output.

mod common;

use common::{NOW, data, nodewise};
use serde_json::Value;

fn explain(file: &str, more: &[&str]) -> String {
    let file = data(file);
    nodewise(
        &[
            &["explain", "daemonset", "agent", "-f", &file, "--now", NOW],
            more,
        ]
        .concat(),
    )
    .ok()
}

#[test]
fn every_node_of_a_steady_daemon_set() {
    insta::assert_snapshot!(explain("steady.json", &[]));
}

#[test]
fn every_node_of_a_rollout() {
    insta::assert_snapshot!(explain("rollout.json", &[]));
}

/// What holds up pods comes before the nodes, and a blocking node says why.
#[test]
fn causes_come_before_nodes() {
    let text = explain("rollout.json", &[]);
    let cause = text.find("\nBlocked\n").expect("the causes");
    let node = text.find("  blocking").expect("the nodes");
    assert!(cause < node, "{text}");
    let blocking = text.lines().find(|line| line.starts_with("  blocking"));
    let blocking = blocking.expect("a blocking node");
    assert!(blocking.contains("its kubelet has not started it yet"), "{text}");
}

#[test]
fn every_node_of_a_mixed_cluster() {
    insta::assert_snapshot!(explain("mixed.json", &[]));
}

#[test]
fn a_node_that_waits_for_the_budget() {
    let text = explain("rollout.json", &["--node", "node-3"]);
    // The budget and the pod that uses it up.
    assert!(
        text.contains("maxUnavailable") && text.contains("agent-cx21"),
        "{text}"
    );
    insta::assert_snapshot!(text);
}

#[test]
fn a_taint_that_is_not_tolerated() {
    let text = explain("steady.json", &["--node", "node-4"]);
    assert!(text.contains("dedicated=gpu:NoSchedule"), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn an_affinity_term_that_fails() {
    let text = explain("mixed.json", &["--node", "node-3"]);
    assert!(text.contains("zone"), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_node_selector_that_fails() {
    let text = explain("mixed.json", &["--node", "node-4"]);
    assert!(text.contains("disk=ssd") && text.contains("hdd"), "{text}");
}

#[test]
fn json_is_the_protocols_form() {
    let answer: Value = serde_json::from_str(&explain("rollout.json", &["--output", "json"])).unwrap();
    assert_eq!(answer["namespace"], "monitoring");
    assert_eq!(answer["name"], "agent");
    let nodes: Vec<nodewise_proto::v1::NodeExplanation> =
        serde_json::from_value(answer["nodes"].clone()).expect("explanations");
    let names: Vec<&str> = nodes.iter().map(|node| node.node_name.as_str()).collect();
    assert_eq!(names, ["node-1", "node-2", "node-3", "node-4", "node-5"]);
    let one: Value = serde_json::from_str(&explain(
        "rollout.json",
        &["--output", "json", "--node", "node-2"],
    ))
    .unwrap();
    assert_eq!(one["nodes"][0], answer["nodes"][1]);
}

#[test]
fn kubectls_names_for_the_kind_are_known() {
    let expected = explain("steady.json", &[]);
    let file = data("steady.json");
    for target in [
        &["ds", "agent"][..],
        &["daemonsets", "agent"],
        &["daemonset/agent"],
        &["DaemonSet", "agent"],
    ] {
        let args = [
            &["explain"],
            target,
            &["-n", "monitoring", "-f", &file, "--now", NOW],
        ]
        .concat();
        assert_eq!(nodewise(&args).ok(), expected);
    }
}

/// The input has a revision whose data cannot be parsed.
#[test]
fn warnings_are_shown() {
    let text = std::fs::read_to_string(data("steady.json")).expect("a file");
    let mut list: Value = serde_json::from_str(&text).expect("JSON");
    let items = list["items"].as_array_mut().expect("a list");
    let is_revision = |item: &&Value| item["kind"] == "ControllerRevision";
    let mut odd = items.iter().find(is_revision).expect("a revision").clone();
    (odd["metadata"]["name"], odd["metadata"]["uid"]) = ("by-hand".into(), "by-hand".into());
    odd["data"] = "here".into();
    items.push(odd);
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("odd.json");
    std::fs::write(&file, list.to_string().replace("\"here\"", r#"{"a":"\ud800"}"#)).expect("a file");
    let file = file.display().to_string();
    let of = |more: &[&str]| {
        nodewise(&[&["explain", "ds", "agent", "-f", &file, "--now", NOW], more].concat()).ok()
    };
    let warning = "! warning: ControllerRevision by-hand: data: it cannot be read (";
    assert!(of(&[]).contains(warning), "{}", of(&[]));
    assert!(
        !of(&["--node", "node-1"]).contains("warning"),
        "it is not about the node"
    );
    let answer: Value = serde_json::from_str(&of(&["--output", "json"])).expect("JSON");
    assert_eq!(answer["warnings"][0]["name"], "by-hand");
    let plan = nodewise(&["plan", "-f", &file, "--now", NOW]).ok();
    assert!(plan.contains(warning), "{plan}");
}
