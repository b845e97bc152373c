//! Tests `nodewise overhead` with files.

mod common;

use std::io::Write as _;

use common::{Ran, data, nodewise, nodewise_with_input};
use serde_json::{Value, json};

fn daemon_set(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "kube-system", "uid": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    })
}

fn asking(requests: &Value) -> Value {
    json!({"containers": [{"name": "c", "image": "c:1", "resources": {"requests": requests}}]})
}

/// DaemonSets and a node, as kubectl prints them.
fn cluster() -> String {
    let mut gpu = asking(&json!({"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}));
    gpu["nodeSelector"] = json!({"pool": "gpu"});
    gpu["tolerations"] = json!([{"operator": "Exists"}]);
    let node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "gpu-1", "uid": "n", "labels": {"pool": "gpu", "kubernetes.io/os": "linux"}},
        "spec": {"taints": [{"key": "gpu", "value": "true", "effect": "NoSchedule"}]},
    });
    let items = [
        daemon_set("gpu", &gpu),
        daemon_set("proxy", &asking(&json!({"cpu": "100m", "memory": "128Mi"}))),
        node,
    ];
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

fn run(words: &[&str]) -> Ran {
    nodewise_with_input(&[&["overhead", "-f", "-"], words].concat(), &cluster())
}

#[test]
fn each_daemon_set_has_a_row_and_the_sum_is_last() {
    insta::assert_snapshot!("like_a_node", run(&["--like", "gpu-1"]).ok());
    insta::assert_snapshot!(
        "labels_and_taints",
        run(&["--node-labels", "kubernetes.io/os=linux"]).ok()
    );
    let added = run(&[
        "--like",
        "gpu-1",
        "--node-labels",
        "pool=web",
        "--node-taints",
        "a=b:NoExecute",
    ]);
    insta::assert_snapshot!("like_a_node_with_other_labels", added.ok());
}

#[test]
fn programs_get_every_decision() {
    let json: Value = serde_json::from_str(&run(&["--like", "gpu-1", "-o", "json"]).ok()).expect("JSON");
    let node = &json["nodes"][0];
    assert_eq!(
        node["requests"],
        json!({"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1", "pods": "1"})
    );
    assert_eq!(node["decisions"][1]["rule"], "RULE_TAINT_NO_SCHEDULE");
    assert_eq!(
        json["daemonSets"][1]["requests"],
        json!({"cpu": "100m", "memory": "128Mi"})
    );
    let yaml = run(&["ds/proxy", "--node-labels", "a=b", "-o", "yaml"]).ok();
    assert!(
        yaml.contains("rule: RULE_ELIGIBLE") && !yaml.contains("gpu"),
        "{yaml}"
    );
}

#[test]
fn many_nodes_come_from_a_file() {
    let mut shapes = tempfile::NamedTempFile::new().expect("a file");
    let text = "- name: gpu\n  labels: {pool: gpu}\n  taints: [{key: gpu, effect: NoSchedule}]\n- labels: {pool: web}\n- {}\n";
    shapes.write_all(text.as_bytes()).expect("it is written");
    let path = shapes.path().to_str().expect("UTF-8");
    insta::assert_snapshot!("a_row_for_each_node", run(&["--shapes", path]).ok());
    let wide = run(&["--shapes", path, "-o", "wide"]).ok();
    assert_eq!(wide.matches("DAEMONSET").count(), 3, "{wide}");
}

#[test]
fn a_daemon_set_that_cannot_be_read_is_named_and_the_others_are_answered_for() {
    let odd = daemon_set("odd", &asking(&json!({"cpu": "1x"})));
    let good = daemon_set("good", &asking(&json!({"cpu": "1"})));
    let list = json!({"kind": "List", "items": [odd, good]}).to_string();
    let ran = nodewise_with_input(&["overhead", "-f", "-", "--node-labels", "a=b"], &list);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    insta::assert_snapshot!("an_error", ran.stdout);
}

#[test]
fn wrong_command_lines_say_what_is_right() {
    let (new, missing) = (data("new.json"), "/nowhere/shapes.yaml");
    let table: [(&[&str], &str); 9] = [
        (&[], "--like <NODE>"),
        (
            &["--node-labels", "x"],
            "not a label such as kubernetes.io/os=linux",
        ),
        (&["--node-labels", "=x"], "the key before = is missing"),
        (
            &["--node-taints", "x"],
            "not a taint such as dedicated=gpu:NoSchedule",
        ),
        (
            &["--node-taints", "x:Never"],
            "must be NoSchedule, PreferNoSchedule or NoExecute",
        ),
        (&["--like", "gone"], "no Node gone"),
        (&["--shapes", missing], "/nowhere/shapes.yaml: no such file"),
        (&["--shapes", "x", "--like", "y"], "cannot be used with"),
        (
            &["deploy/web", "--node-labels", "a=b"],
            "deployment: only DaemonSets have an overhead on each node",
        ),
    ];
    for (words, expected) in table {
        let ran = nodewise(&[&["overhead", "-f", &new], words].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{words:?}");
        assert!(ran.stderr.contains(expected), "{words:?}: {}", ran.stderr);
    }
}
