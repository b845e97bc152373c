//! Tests `nodewise explain pod/NAME` and `node/NAME`.

mod common;

use common::{NOW, data, nodewise, nodewise_with_input};
use serde_json::Value;

fn explain(file: &str, what: &str, more: &[&str]) -> String {
    let file = data(file);
    nodewise(&[&["explain", what, "-f", &file, "--now", NOW], more].concat()).ok()
}

fn json(file: &str, what: &str) -> Value {
    serde_json::from_str(&explain(file, what, &["-o", "json"])).expect("JSON")
}

#[test]
fn a_pod_that_holds_up_a_deployment() {
    let text = explain("stuck-deployment.json", "pod/web-7d9f-bq5wn", &[]);
    // The pod's own problem comes before its workload.
    let problem = text.find("ImagePullBackOff").expect("the problem");
    let workload = text
        .find("controlled by ReplicaSet shop/web-7d9f")
        .expect("the workload");
    assert!(problem < workload, "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_pod_of_a_daemon_set() {
    insta::assert_snapshot!(explain("rollout.json", "pod/agent-cx21", &[]));
    let answer = json("rollout.json", "po/agent-cx21");
    assert_eq!(answer["workload"]["kind"], "DaemonSet");
    assert_eq!(answer["node"]["nodeName"], "node-1");
    assert_eq!(answer["pod"]["podName"], "agent-cx21");
}

#[test]
fn a_pod_that_is_ready_says_whether_it_is_available_and_of_the_present_template() {
    let text = explain("rollout.json", "pod/agent-dx22", &[]);
    assert!(text.contains("\n  ✓ available\n"), "{text}");
    for (file, pod, available, updated) in [
        ("rollout.json", "pod/agent-dx22", true, false),
        ("rollout.json", "pod/agent-cx21", false, true),
        ("complete-deployment.json", "pod/web-7d9f-bq5wn", true, true),
        ("stuck-deployment.json", "pod/web-5c6b-2xk7p", true, false),
        ("stuck-deployment.json", "pod/web-7d9f-bq5wn", false, true),
    ] {
        let answer = json(file, pod);
        // The protocol's JSON leaves out what is false.
        let is = |field: &str| answer["pod"][field] == true;
        assert_eq!(
            (is("available"), is("updated")),
            (available, updated),
            "{pod}: {answer}"
        );
    }

    let list = std::fs::read_to_string(data("complete-deployment.json")).expect("a file");
    let mut list: Value = serde_json::from_str(&list).expect("JSON");
    for item in list["items"].as_array_mut().expect("items") {
        if item["kind"] == "ReplicaSet" {
            item["spec"]["minReadySeconds"] = 3_600.into();
        }
    }
    let args = ["explain", "pod/web-7d9f-bq5wn", "-f", "-", "--now", NOW];
    let text = nodewise_with_input(&args, &list.to_string()).ok();
    assert!(text.contains("\n  ✓ ready, not yet available\n"), "{text}");
}

#[test]
fn a_node_and_everything_on_it() {
    insta::assert_snapshot!(explain("mixed.json", "node/node-3", &[]));
    insta::assert_snapshot!(explain("stuck-deployment.json", "no/node-2", &[]));
    let answer = json("rollout.json", "node/node-1");
    assert_eq!(answer["daemonSets"][0]["name"], "agent");
    assert_eq!(
        answer["daemonSets"][0]["status"]["pods"][0]["podName"],
        "agent-cx21"
    );
}

#[test]
fn what_does_not_exist_is_named() {
    let file = data("rollout.json");
    for (what, more, expected) in [
        ("pod/nothing", &[][..], "no Pod nothing"),
        (
            "pod/agent-cx21",
            &["-n", "shop"],
            "no Pod agent-cx21 in namespace shop",
        ),
        ("node/nothing", &[], "no Node nothing, and no pod for it"),
        ("node/node-1", &["--node", "node-1"], "--node is for DaemonSets"),
        ("pod/", &[], "pod/: the name of the pod is missing"),
    ] {
        let error = nodewise(&[&["explain", what, "-f", &file], more].concat());
        assert_eq!(error.code, Some(1), "{error:?}");
        let error = error.stderr;
        assert!(error.contains(expected), "{what}: {error}");
    }
}
