//! What wakes DaemonSets because of RolloutPolicies, and what wakes only those that have one.

use nodewise_projection::RolloutPolicy;

use super::*;

/// A policy of the namespace with these targets.
fn policy(name: &str, version: u32, targets: &Value) -> RolloutPolicy {
    nodewise_runtime::testing::policy(name, &version.to_string(), targets)
}

fn apply_policy(store: &mut Store, name: &str, version: u32, targets: &Value) -> Effects {
    let policy = policy(name, version, targets);
    take(store, ClusterEvent::Policies(Delta::Applied(policy)), MENDED)
}

/// A cluster in which ds1 has a policy.
fn cluster_with_policy() -> Store {
    let mut store = cluster();
    apply_policy(&mut store, "p", 1, &json!({"names": ["ds1"]}));
    store
}

#[test]
fn a_policy_wakes_its_old_and_its_new_targets() {
    let mut store = cluster();
    for (version, targets, expected) in [
        (1, json!({"names": ["ds1"]}), enqueue(&["ds1"])),
        (1, json!({"names": ["ds1"]}), nothing()),
        (2, json!({"names": ["ds1"]}), enqueue(&["ds1"])),
        (
            3,
            json!({"names": ["ds2", "ds3"]}),
            enqueue(&["ds1", "ds2", "ds3"]),
        ),
        (
            4,
            json!({"selector": {"matchLabels": {"none": "has"}}}),
            enqueue(&["ds2", "ds3"]),
        ),
        // L-2
        (5, json!(7), enqueue(&["ds1", "ds2", "ds3"])),
        (6, json!({"names": ["gone"]}), enqueue(&["ds1", "ds2", "ds3"])),
        (7, json!({"names": ["ds2"]}), enqueue(&["ds2"])),
    ] {
        assert_eq!(
            apply_policy(&mut store, "p", version, &targets),
            expected,
            "{version} {targets}"
        );
    }
    // L-3
    let gone = policy("p", 8, &json!({"names": ["ds2"]}));
    let gone = ClusterEvent::Policies(Delta::Deleted(gone));
    assert_eq!(take(&mut store, gone, MENDED), enqueue(&["ds2"]));
    let none = Delta::Listed {
        objects: Vec::new(),
        resource_version: String::new(),
    };
    apply_policy(&mut store, "q", 1, &json!({"names": ["ds3"]}));
    assert_eq!(
        take(&mut store, ClusterEvent::Policies(none), MENDED),
        enqueue(&["ds3"])
    );
}

// Its entry leaves the statuses of the policies that have let it go, with the next plan of one of the others.
#[test]
fn a_daemon_set_that_is_not_selected_any_more_wakes_the_other_targets() {
    let apply = |store: &mut Store, name: &str, version: u32, tier: &str| {
        let object = json!({
            "metadata": {"namespace": "ns", "name": name, "uid": name, "resourceVersion": version.to_string(), "labels": {"tier": tier}},
            "spec": {"selector": {"matchLabels": {"app": name}}, "template": {}},
        });
        let workload = Workload::daemon_set_from_json(&object).expect("a DaemonSet");
        let event = ClusterEvent::Workloads(DAEMON_SETS, Delta::Applied(workload));
        take(store, event, MENDED)
    };
    let mut store = Store::new(&[DAEMON_SETS], 4);
    let of_tier = json!({"selector": {"matchLabels": {"tier": "a"}}});
    apply_policy(&mut store, "p", 1, &of_tier);
    apply_policy(&mut store, "q", 1, &json!({"names": ["ds1", "ds3"]}));
    for name in ["ds1", "ds2", "ds3"] {
        apply(&mut store, name, 1, if name == "ds3" { "b" } else { "a" });
    }
    for (version, tier, expected) in [
        (2, "a", &["ds1"][..]),
        (3, "b", &["ds1", "ds2"]),
        (4, "c", &["ds1"]),
        (5, "a", &["ds1"]),
    ] {
        let effects = apply(&mut store, "ds1", version, tier);
        let woken: std::collections::BTreeSet<_> = effects
            .wakes
            .iter()
            .map(|wake| wake.key.name.to_string())
            .collect();
        assert!(
            woken.iter().map(String::as_str).eq(expected.iter().copied()),
            "{version} {woken:?}"
        );
    }
}

/// A node that is ready or not, since this time.
fn node(status: &str, since: &str, cordoned: bool, maintenance: &str) -> ClusterEvent {
    let object = json!({
        "metadata": {"name": "n1", "uid": "n"},
        "spec": {"unschedulable": cordoned},
        "status": {"conditions": [
            {"type": "Ready", "status": status, "lastTransitionTime": format!("2026-01-01T00:00:{since}Z"),
                "lastHeartbeatTime": format!("2026-01-02T00:00:{since}Z")},
            {"type": "MaintenanceInProgress", "status": maintenance},
        ]},
    });
    ClusterEvent::Nodes(Delta::Applied(Node::from_json(&object).expect("a node")))
}

// L-20 to L-23. Without a policy, the readiness of a node wakes nobody.
#[test]
fn the_state_of_a_node_wakes_only_what_has_a_policy() {
    for (mut store, woken) in [(cluster(), nothing()), (cluster_with_policy(), enqueue(&["ds1"]))] {
        take(&mut store, node("True", "00", false, "False"), MENDED);
        for (case, event, expected) in [
            ("a heartbeat", node("True", "00", false, "False"), nothing()),
            ("not ready", node("False", "01", false, "False"), woken.clone()),
            (
                "again, since later",
                node("False", "02", false, "False"),
                woken.clone(),
            ),
            ("cordoned", node("False", "02", true, "False"), woken.clone()),
            ("maintenance", node("False", "02", true, "True"), woken.clone()),
            (
                "unknown maintenance",
                node("False", "02", true, "Unknown"),
                woken.clone(),
            ),
        ] {
            assert_eq!(take(&mut store, event, MENDED), expected, "{case}");
        }
    }
}

// L-25: a pod that restarts too often has failed.
#[test]
fn a_restart_wakes_only_what_has_a_policy() {
    let pod = |version, owner: &str, restarts: u32| {
        let mut object = on(object("p", version, "x", owner), "n1");
        object["status"] = json!({"containerStatuses": [{"name": "c", "restartCount": restarts}]});
        object
    };
    let mut store = cluster_with_policy();
    apply_pod(&mut store, &pod(1, DS2, 0));
    assert_eq!(apply_pod(&mut store, &pod(2, DS2, 1)), nothing());
    assert_eq!(
        apply_pod(&mut store, &ready(pod(3, DS2, 1), "False")),
        enqueue(&["ds2"])
    );
    let mut store = cluster_with_policy();
    apply_pod(&mut store, &pod(1, DS1, 0));
    assert_eq!(apply_pod(&mut store, &pod(2, DS1, 1)), enqueue(&["ds1"]));
    assert_eq!(
        apply_pod(&mut store, &unheeded(pod(3, DS1, 1))),
        nothing(),
        "no further restart"
    );
}

#[test]
fn the_snapshot_has_the_policies() {
    let mut store = cluster_with_policy();
    let policies = |store: &mut Store, name: &str| {
        let workload = Arc::clone(store.workload(&key(name)).expect("it"));
        let v1::workload::Kind::DaemonSet(daemon_set) = DaemonSets::message(store, &workload, &[]) else {
            panic!("no DaemonSet");
        };
        daemon_set.rollout_policies
    };
    let sent = policies(&mut store, "ds1");
    assert_eq!(sent.len(), 1);
    let object: Value = serde_json::from_slice(&sent[0].object).expect("JSON");
    assert_eq!(object["kind"], "RolloutPolicy");
    assert_eq!(object["spec"]["targets"], json!({"names": ["ds1"]}));
    assert_eq!(policies(&mut store, "ds2"), []);
}

// L-1: a policy that does not count is sent without its stages, and the service can read its spec: it is no policy that is invalid.
#[test]
fn of_a_policy_that_does_not_count_the_service_gets_what_it_can_read() {
    let mut store = cluster_with_policy();
    let object = json!({
        "metadata": {"namespace": "ns", "name": "z", "uid": "z", "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"targets": {"selector": {}}, "stages": [{"name": "canary", "replicas": 1}]},
    });
    let second = RolloutPolicy::from_json(&object).expect("a policy");
    take(&mut store, ClusterEvent::Policies(Delta::Applied(second)), MENDED);
    let spec = |store: &mut Store, name: &str, policy: usize| {
        let workload = Arc::clone(store.workload(&key(name)).expect("it"));
        let v1::workload::Kind::DaemonSet(daemon_set) = DaemonSets::message(store, &workload, &[]) else {
            panic!("no DaemonSet");
        };
        let object = &daemon_set.rollout_policies[policy].object;
        let object: Value = serde_json::from_slice(object).expect("JSON");
        let spec: nodewise_api::RolloutPolicySpec =
            serde_json::from_value(object["spec"].clone()).expect("a spec");
        spec
    };
    let sent = spec(&mut store, "ds1", 1);
    assert!(sent.stages.is_empty() && sent.targets.selector.is_some());
    assert_eq!(sent.paused, Some(true), "it would hold");
    let counts = spec(&mut store, "ds2", 0);
    assert_eq!((counts.stages.len(), counts.paused), (1, None), "where it counts");
}
