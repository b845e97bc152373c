//! Tests `nodewise plan` and `nodewise explain` for Deployments and ReplicaSets.

mod common;

use common::{NOW, Ran, data, nodewise, nodewise_with_input};
use serde_json::{Value, json};

/// Two pods of the new ReplicaSet cannot pull their image, and the progress deadline has passed.
const STUCK: &str = "stuck-deployment.json";
const COMPLETE: &str = "complete-deployment.json";

fn run(command: &[&str], file: &str) -> String {
    let file = data(file);
    nodewise(&[command, &["-f", &file, "--now", NOW]].concat()).ok()
}

fn list(file: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(data(file)).expect("a file")).expect("JSON")
}

fn with_input(command: &[&str], list: &Value) -> Ran {
    nodewise_with_input(&[command, &["-f", "-", "--now", NOW]].concat(), &list.to_string())
}

/// The object of this kind and name.
fn object<'a>(list: &'a mut Value, kind: &str, name: &str) -> &'a mut Value {
    let mut items = list["items"].as_array_mut().expect("items").iter_mut();
    let found = items.find(|item| item["kind"] == kind && item["metadata"]["name"] == name);
    found.expect(name)
}

#[test]
fn a_stuck_rollout() {
    let text = run(&["explain", "deployment/web"], STUCK);
    // The cause comes before everything else.
    let head: Vec<&str> = text.lines().take(3).collect();
    assert!(head[1].contains("the deadline was exceeded"), "{text}");
    assert!(
        head[2].contains("web-7d9f-bq5wn") && head[2].contains("ImagePullBackOff"),
        "{text}"
    );
    insta::assert_snapshot!(text);
}

#[test]
fn a_complete_rollout() {
    insta::assert_snapshot!(run(&["explain", "deployment/web"], COMPLETE));
}

#[test]
fn a_replica_set_with_pods_that_are_not_ready() {
    insta::assert_snapshot!(run(&["explain", "rs/web-7d9f"], STUCK));
}

#[test]
fn the_order_in_which_a_replica_set_deletes_pods() {
    insta::assert_snapshot!(run(&["explain", "replicaset", "web-7d9f"], COMPLETE));
}

/// A paused rollout, a quota, and a pod that does not stop.
#[test]
fn other_reasons_why_a_rollout_is_not_complete() {
    let mut paused = list(STUCK);
    object(&mut paused, "Deployment", "web")["spec"]["paused"] = true.into();
    let text = with_input(&["explain", "deploy/web"], &paused).ok();
    assert!(
        text.contains("\n  Paused: nothing is rolled out while spec.paused is true."),
        "{text}"
    );

    let mut quota = list(STUCK);
    let said = "pods \"web-7d9f-x\" is forbidden: exceeded quota: compute";
    object(&mut quota, "ReplicaSet", "web-7d9f")["status"]["conditions"] =
        json!([{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": said}]);
    let text = with_input(&["explain", "deploy/web"], &quota).ok();
    assert_eq!(
        text.lines().nth(2),
        Some(&*format!("  ✗ web-7d9f: {said}")),
        "{text}"
    );
    assert_eq!(text.matches(said).count(), 1, "{text}");

    let mut late = list(COMPLETE);
    let pod = object(&mut late, "Pod", "web-7d9f-z9d2k");
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T01:59:00Z".into();
    pod["metadata"]["finalizers"] = json!(["example.com/drain"]);
    let text = with_input(&["explain", "rs/web-7d9f"], &late).ok();
    let expected = "✗ web-7d9f-z9d2k: is being deleted, and should have been gone at 2026-01-01T01:59:00Z; it has finalizers";
    assert!(text.contains(expected), "{text}");

    let mut young = list(COMPLETE);
    let set = object(&mut young, "ReplicaSet", "web-7d9f");
    set["spec"]["minReadySeconds"] = 3_600.into();
    set["status"]["availableReplicas"] = 1.into();
    let text = with_input(&["explain", "deploy/web"], &young).ok();
    assert!(
        text.contains("✗ web-7d9f: 2 of the ready pods are not available yet: minReadySeconds is 3600"),
        "{text}"
    );
}

// A controller that cannot create the ReplicaSet does not write status.observedGeneration.
#[test]
fn a_replica_set_that_cannot_be_created() {
    let mut refused = list(STUCK);
    let said = "Failed to create new replica set \"web-7d9f\": exceeded quota: q";
    let deployment = object(&mut refused, "Deployment", "web");
    deployment["status"]["observedGeneration"] = json!(2);
    deployment["status"]["conditions"][1]["reason"] = json!("ReplicaSetCreateError");
    deployment["status"]["conditions"][1]["message"] = json!(said);
    let items = refused["items"].as_array_mut().expect("items");
    items.retain(|item| {
        !item["metadata"]["name"]
            .as_str()
            .expect("a name")
            .starts_with("web-7d9f")
    });
    let text = with_input(&["explain", "deploy/web"], &refused).ok();
    assert_eq!(text.lines().nth(2), Some(&*format!("  ✗ {said}")), "{text}");
    assert!(!text.contains("no controller has acted"), "{text}");
}

#[test]
fn explanations_as_json() {
    let answer: Value =
        serde_json::from_str(&run(&["explain", "deploy/web", "-o", "json"], STUCK)).expect("JSON");
    assert_eq!(
        (&answer["kind"], &answer["name"]),
        (&json!("Deployment"), &json!("web"))
    );
    let explanation: nodewise_proto::v1::WorkloadExplanation =
        serde_json::from_value(answer["workload"].clone()).expect("an explanation");
    let names: Vec<&str> = explanation
        .replica_sets
        .iter()
        .map(|set| set.name.as_str())
        .collect();
    assert_eq!(names, ["web-7d9f", "web-5c6b", "web-4a3c"]);
    let cause = &answer["causes"][0];
    assert_eq!(cause["pods"], json!(["web-7d9f-bq5wn", "web-7d9f-tt6rs"]));
    assert_eq!(cause["replicaSet"], "web-7d9f");
    let set = &answer["replicaSets"][0];
    assert_eq!(set["images"], json!(["web=registry.example/web:3"]));
    assert_eq!(set["workload"]["pods"][0]["deletionOrder"], 1);
}

#[test]
fn plans_for_each_kind() {
    insta::assert_snapshot!(
        "plan_of_a_stuck_deployment",
        run(&["plan", "deployment/web"], STUCK)
    );
    let mut scaled = list(COMPLETE);
    object(&mut scaled, "Deployment", "web")["spec"]["replicas"] = 5.into();
    let set = object(&mut scaled, "ReplicaSet", "web-7d9f");
    set["spec"]["replicas"] = 1.into();
    insta::assert_snapshot!(
        "plan_of_several_kinds",
        with_input(&["plan", "deploy,rs"], &scaled).ok()
    );
}

#[test]
fn plans_as_json_name_the_kind() {
    let plans: Value =
        serde_json::from_str(&run(&["plan", "rs/web-5c6b", "deploy/web", "-o", "json"], STUCK))
            .expect("JSON");
    let kinds: Vec<&Value> = plans
        .as_array()
        .expect("plans")
        .iter()
        .map(|plan| &plan["kind"])
        .collect();
    assert_eq!(kinds, ["ReplicaSet", "Deployment"]);
}

/// Without a kind only DaemonSets are planned.
#[test]
fn a_note_names_the_other_kinds() {
    let ran = nodewise(&["plan", "-f", &data(STUCK), "--now", NOW]);
    let expected = "no DaemonSet; name the kind to plan for others: deployments, replicasets\n";
    assert!(ran.stderr.ends_with(expected), "{ran:?}");
    assert_eq!(ran.ok(), "No changes: nothing to do for 0 DaemonSets.\n");
}

/// What is wrong, where, and what would be right.
#[test]
fn input_that_lacks_something() {
    let without = |kind: &str, file: &str| {
        let mut list = list(file);
        let items = list["items"].as_array_mut().expect("items");
        items.retain(|item| item["kind"] != kind);
        list
    };
    let read = "expected the output of `kubectl get";
    for (command, input, expected) in [
        (
            &["explain", "deploy/web"][..],
            without("ReplicaSet", STUCK),
            format!(
                "standard input: items[0].status.replicas: is 5, and there is no ReplicaSet of namespace shop; {read} \
                 deployments,replicasets,pods -n shop -o yaml` (Deployment shop/web)"
            ),
        ),
        (
            &["plan", "rs/web-5c6b"],
            without("Pod", STUCK),
            format!(
                "standard input: items[2].status.replicas: is 3, and there is no Pod of namespace shop; {read} \
                 replicasets,pods -n shop -o yaml` (ReplicaSet shop/web-5c6b)"
            ),
        ),
        (
            &["explain", "deploy/web"],
            without("Deployment", STUCK),
            "standard input: no Deployment web; there is none at all".to_owned(),
        ),
        (
            &["explain", "deploy/api"],
            list(STUCK),
            "standard input: no Deployment api; there is shop/web".to_owned(),
        ),
        (
            &["explain", "statefulset/db"],
            list(STUCK),
            "statefulset: not a kind that Nodewise plans for; it plans for deployment, replicaset and daemonset"
                .to_owned(),
        ),
        (
            &["explain", "deploy/web", "--node", "node-1"],
            list(STUCK),
            "--node is for DaemonSets; a Deployment is explained as a whole".to_owned(),
        ),
    ] {
        let ran = with_input(command, &input);
        assert_eq!(ran.stderr, format!("error: {expected}\n"));
        assert_eq!((ran.code, &*ran.stdout), (Some(1), ""));
    }
    // Without pods, a Deployment is explained from its ReplicaSets.
    let ran = with_input(&["explain", "deploy/web"], &without("Pod", STUCK));
    assert!(
        ran.stderr
            .starts_with("note: standard input: no Pod of namespace shop;"),
        "{ran:?}"
    );
    assert!(ran.ok().contains("waits until 2 pods of web-7d9f are available"));
}

/// The planner checks the objects. Its errors are shown with the position in the input.
#[test]
fn objects_with_a_wrong_field() {
    for (kind, name, field, value, expected) in [
        (
            "Deployment",
            "web",
            "spec",
            json!(null),
            "items[0].spec: is required (Deployment shop/web)",
        ),
        (
            "ReplicaSet",
            "web-5c6b",
            "metadata",
            json!({"name": "web-5c6b", "namespace": "shop"}),
            "items[2].metadata.uid: is required (Deployment shop/web)",
        ),
    ] {
        let mut input = list(STUCK);
        object(&mut input, kind, name)[field] = value;
        let ran = with_input(&["plan", "deploy/web"], &input);
        assert_eq!(ran.stderr, format!("error: standard input: {expected}\n"));
    }
    let mut input = list(STUCK);
    object(&mut input, "ReplicaSet", "web-5c6b")["spec"]["template"]["metadata"]["labels"] =
        json!({"app": "other"});
    let ran = with_input(&["plan", "deploy/web"], &input);
    assert!(
        ran.stderr.contains("items[2].spec.selector: ") && ran.stderr.contains("(ReplicaSet shop/web-5c6b)"),
        "{ran:?}"
    );
    let ran = nodewise(&["plan", "-f", &data(STUCK), "deployment/web"]);
    assert_eq!(
        ran.stderr,
        "error: deployment/web: no such file; name workloads before -f\n"
    );
}
