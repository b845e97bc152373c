//! Every field of a request reaches the planner and changes the plan.

mod support;

use nodewise_proto::{Duration, v1};
use nodewise_server::never;
use serde_json::{Value, json};
use support::{Cluster, Form, NOW, actions, engine, moment, node};

/// (case, change, revisionHistoryLimit, expected actions)
type RevisionRow<'a> = (&'a str, fn(&mut Value), Value, &'a str);
/// (case, change, expected actions, expected counts of current, ready, available and updated)
type PodRow<'a> = (&'a str, fn(&mut v1::Pod), &'a str, [i32; 4]);

fn plan(request: v1::PlanRequest) -> v1::Plan {
    engine().plan(request, &never).unwrap().plan.unwrap()
}

/// The actions of a plan as text: `+` and the index of the node for a created pod, `-` and the index of a deleted pod, and a word
/// for every other action.
fn summary(plan: &v1::Plan) -> String {
    let index = |name: &str| (0..9).find(|index| node(*index).name == name);
    let words = actions(plan).filter_map(|action| {
        Some(match action.kind? {
            v1::action::Kind::CreatePod(create) => format!("+{}", index(&create.node_name)?),
            v1::action::Kind::DeletePod(delete) => {
                format!("-{}", &delete.pod?.name["node-agent-0000".len()..])
            }
            v1::action::Kind::AdoptPod(_) => "adopt".to_owned(),
            v1::action::Kind::ReleasePod(_) => "release".to_owned(),
            v1::action::Kind::CreateRevision(_) => "new".to_owned(),
            v1::action::Kind::UpdateRevision(update) => format!("revision{:?}", update.revision_number),
            v1::action::Kind::DeleteRevision(_) => "forget".to_owned(),
            v1::action::Kind::AdoptRevision(_) => "adopt-revision".to_owned(),
            v1::action::Kind::ReleaseRevision(_) => "release-revision".to_owned(),
            v1::action::Kind::UpdateStatus(_) => return None,
            v1::action::Kind::RelabelPod(_) => "relabel".to_owned(),
            v1::action::Kind::EmitEvent(event) => event.reason,
            other => panic!("no plan for a DaemonSet has this action: {other:?}"),
        })
    });
    words.collect::<Vec<_>>().join(" ")
}

/// On which of three nodes pods start. The first node has this taint, and the pod spec of the template has these members.
fn starts(taint: (&str, &str, &str), members: &Value) -> String {
    let mut cluster = Cluster::empty(3);
    let (key, value, effect) = taint;
    cluster.nodes[0].taints.push(v1::Taint {
        key: key.into(),
        value: value.into(),
        effect: effect.into(),
    });
    let spec = cluster.daemon_set["spec"]["template"]["spec"]
        .as_object_mut()
        .unwrap();
    spec.extend(members.as_object().unwrap().clone());
    summary(&plan(cluster.request(1, Form::Inline))).replace("new ", "")
}

#[test]
fn d_8_where_pods_may_start() {
    let none = ("a", "", "PreferNoSchedule");
    let db = ("dedicated", "db", "NoSchedule");
    let network = ("node.kubernetes.io/network-unavailable", "", "NoSchedule");
    let required = |term: Value| json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": term}}}});
    let zone = "topology.kubernetes.io/zone";
    let tolerate = |toleration: Value| json!({"tolerations": [{"key": "other"}, toleration]});
    #[rustfmt::skip] // one case, one line
    let table = [
        ("D-8: PreferNoSchedule", none, json!({}), "+0 +1 +2"),
        ("D-8: NoSchedule", db, json!({}), "+1 +2"),
        ("D-8: NoExecute", ("a", "", "NoExecute"), json!({}), "+1 +2"),
        ("D-8: nodeName", none, json!({"nodeName": node(1).name}), "+1"),
        ("D-10", none, json!({"nodeSelector": {zone: "eu-central-1b"}}), "+1"),
        ("D-12", none, required(json!([{"matchExpressions": [{"key": zone, "operator": "NotIn", "values": ["eu-central-1b"]}]}])), "+0 +2"),
        ("D-15", none, required(json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node(2).name]}]}])), "+2"),
        ("D-11", none, required(json!([])), "new"),
        ("D-17", db, tolerate(json!({"key": "dedicated", "value": "db", "effect": "NoSchedule"})), "+0 +1 +2"),
        ("D-17: value", db, tolerate(json!({"key": "dedicated", "value": "web"})), "+1 +2"),
        ("D-17: operator", db, tolerate(json!({"key": "dedicated", "operator": "Exists"})), "+0 +1 +2"),
        ("D-17: effect", db, tolerate(json!({"key": "dedicated", "operator": "Exists", "effect": "NoExecute"})), "+1 +2"),
        ("D-17: key", db, tolerate(json!({"key": "dedicate", "operator": "Exists"})), "+1 +2"),
        ("D-18", network, json!({"hostNetwork": true}), "+0 +1 +2"),
        ("D-18", network, json!({"hostNetwork": false}), "+1 +2"),
    ];
    for (what, taint, members, expected) in table {
        assert_eq!(starts(taint, &members), expected, "{what}: {members}");
    }
}

#[test]
fn d_17_the_feature_gate() {
    for (feature_gates, expected) in [
        (vec![], "+1"),
        (
            vec![v1::FeatureGate::TaintTolerationComparisonOperators.into()],
            "+0 +1",
        ),
    ] {
        let mut cluster = Cluster::empty(2);
        cluster.nodes[0].taints.push(v1::Taint {
            key: "a".into(),
            value: "2".into(),
            effect: "NoSchedule".into(),
        });
        cluster.daemon_set["spec"]["template"]["spec"]["tolerations"] =
            json!([{"key": "a", "operator": "Gt", "value": "1"}]);
        let request = v1::PlanRequest {
            options: Some(v1::PlanOptions {
                feature_gates,
                ..Default::default()
            }),
            ..cluster.request(1, Form::Inline)
        };
        assert_eq!(summary(&plan(request)).replace("new ", ""), expected, "D-17");
    }
}

#[test]
fn d_40_the_strategy() {
    let rolling = |limits: Value| json!({"type": "RollingUpdate", "rollingUpdate": limits});
    // (case, strategy, maxUnavailable and maxSurge on three nodes, part of the error)
    let table = [
        (
            "D-40: percent",
            rolling(json!({"maxUnavailable": "50%", "maxSurge": 0})),
            (2, 0),
            "",
        ),
        (
            "D-40",
            rolling(json!({"maxUnavailable": 0, "maxSurge": "50%"})),
            (0, 2),
            "",
        ),
        ("D-40", rolling(json!({"maxUnavailable": 3})), (3, 0), ""),
        (
            "D-40: both zero",
            rolling(json!({"maxUnavailable": 0, "maxSurge": 0})),
            (1, 0),
            "",
        ),
        ("D-40", json!({"type": "RollingUpdate"}), (1, 0), ""),
        (
            "D-40: no percentage",
            rolling(json!({"maxUnavailable": "5"})),
            (0, 0),
            "maxUnavailable is \"5\"",
        ),
        (
            "D-40",
            rolling(json!({"maxSurge": 1})),
            (0, 0),
            "maxUnavailable is missing",
        ),
        ("D-50", json!({"type": "OnDelete"}), (0, 0), ""),
        (
            "D-50",
            json!({"type": "Sideways", "rollingUpdate": {"maxUnavailable": 2}}),
            (0, 0),
            "",
        ),
        // The defaults of the apiserver (D-114).
        ("D-114", Value::Null, (1, 0), ""),
        (
            "D-114",
            json!({"rollingUpdate": {"maxUnavailable": 2}}),
            (2, 0),
            "",
        ),
    ];
    for (what, strategy, limits, error) in table {
        let mut cluster = Cluster::settled(3);
        cluster.daemon_set["spec"]["updateStrategy"] = strategy.clone();
        let plan = plan(cluster.request(1, Form::Inline));
        let rollout = plan.rollout.unwrap();
        assert_eq!(
            (rollout.max_unavailable, rollout.max_surge),
            limits,
            "{what}: {strategy}"
        );
        assert_eq!(plan.error.is_empty(), error.is_empty(), "{what}: {}", plan.error);
        assert!(plan.error.contains(error), "{what}: {}", plan.error);
    }
}

#[test]
fn d_1_the_rest_of_the_workload() {
    let change = |pointer: &str, value: Value| {
        let mut cluster = Cluster::settled(2);
        let (parent, member) = pointer.rsplit_once('/').unwrap();
        cluster.daemon_set.pointer_mut(parent).unwrap()[member] = value;
        plan(cluster.request(1, Form::Inline))
    };
    assert_eq!(
        change("/metadata/resourceVersion", json!("7")).verdict(),
        v1::Verdict::Noop,
        "the resource version is not compared"
    );
    // D-89: each of the eight.
    let counts = [
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
    ];
    for count in counts {
        let plan = change(&format!("/status/{count}"), json!(7));
        let reasons: Vec<_> = actions(&plan).map(|action| action.reason()).collect();
        assert_eq!(reasons, [v1::Reason::StatusChanged], "D-89: {count}");
    }
    let plan = change("/status/observedGeneration", json!(0));
    let reasons: Vec<_> = actions(&plan).map(|action| action.reason()).collect();
    assert_eq!(reasons, [v1::Reason::GenerationObserved], "D-89");
    let observed = |plan: v1::Plan| plan.daemon_set_status.unwrap().observed_generation;
    assert_eq!(observed(change("/metadata/generation", json!(5))), 5, "D-90");
    let available = |plan: v1::Plan| plan.daemon_set_status.unwrap().number_available;
    assert_eq!(
        available(change("/spec/minReadySeconds", json!(3_600))),
        2,
        "D-86"
    );
    assert_eq!(
        available(change("/spec/minReadySeconds", json!(3_601))),
        0,
        "D-86"
    );
    let gone = change("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"));
    assert_eq!(
        (gone.verdict(), gone.daemon_set_status),
        (v1::Verdict::Noop, None),
        "D-71"
    );
    assert_eq!(
        summary(&change("/spec/selector", json!({}))),
        "SelectingAll",
        "D-71"
    );
    let released = "release-revision new release release +0 +1";
    assert_eq!(summary(&change("/spec/selector", Value::Null)), released, "D-22");
    let not = json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["node-agent"]}]});
    assert_eq!(summary(&change("/spec/selector", not)), released, "D-22");
    // D-118: the pods have the first template generation, so only their hash is outdated.
    assert_eq!(summary(&change("/spec/template/spec/x", json!(1))), "new", "D-59");
    let manifest = |plan: &v1::Plan| {
        let manifest = actions(plan).find_map(|action| match action.kind {
            Some(v1::action::Kind::CreateRevision(create)) => Some(create.manifest),
            _ => None,
        });
        serde_json::from_slice::<Value>(&manifest.expect("a revision is created")).unwrap()
    };
    let mut cluster = Cluster::empty(0);
    cluster.daemon_set["metadata"]["annotations"]["note"] = json!("x");
    let first = manifest(&plan_of(&cluster));
    assert_eq!(first["metadata"]["annotations"]["note"], "x", "D-60");
    cluster.daemon_set["status"] = json!({"collisionCount": 1});
    let second = manifest(&plan_of(&cluster));
    assert_ne!(first["metadata"]["name"], second["metadata"]["name"], "D-61");
}

fn plan_of(cluster: &Cluster) -> v1::Plan {
    plan(cluster.request(1, Form::Inline))
}

#[test]
fn d_4_revisions() {
    let change = |change: fn(&mut Value), limit: Value| {
        let mut cluster = Cluster::settled(1);
        let mut other = cluster.revisions[0].clone();
        other["metadata"]["name"] = json!("other");
        other["metadata"]["uid"] = json!("revision-uid-2");
        other["metadata"]["labels"]["controller-revision-hash"] = json!("other");
        other["data"] = json!({"spec": {}});
        other["revision"] = json!(0);
        change(&mut other);
        cluster.revisions.push(other);
        cluster.daemon_set["spec"]["revisionHistoryLimit"] = limit;
        summary(&plan_of(&cluster))
    };
    #[rustfmt::skip] // one case, one line
    let table: [RevisionRow<'_>; 9] = [
        ("D-63", |_| {}, json!(1), ""),
        ("D-63", |_| {}, json!(0), "forget"),
        ("Q-15", |_| {}, Value::Null, ""),
        ("D-54", |other| other["revision"] = json!(4), json!(1), "revisionSome(5)"),
        ("D-52", |other| other["metadata"]["labels"] = json!({"app": "node-agent"}), json!(1), "revisionNone"),
        ("D-51", |other| other["metadata"]["ownerReferences"][0]["controller"] = json!(false), json!(1), "adopt-revision"),
        ("D-23: being deleted", |other| {
            other["metadata"]["ownerReferences"] = json!([]);
            other["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }, json!(0), ""),
        ("D-23: another's", |other| other["metadata"]["ownerReferences"][0]["uid"] = json!("x"), json!(0), ""),
        ("D-23: not selected", |other| other["metadata"]["labels"]["app"] = json!("x"), json!(0), "release-revision"),
    ];
    for (what, edit, limit, expected) in table {
        assert_eq!(change(edit, limit), expected, "{what}");
    }
    // of two revisions with the same number the younger one is kept, and pods are relabelled for it (D-56).
    let mut cluster = Cluster::settled(1);
    let mut twin = cluster.revisions[0].clone();
    twin["metadata"]["name"] = json!("a-twin");
    twin["metadata"]["uid"] = json!("revision-uid-2");
    twin["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    twin["metadata"]["labels"]["controller-revision-hash"] = json!("twin");
    cluster.revisions.push(twin);
    assert_eq!(summary(&plan_of(&cluster)), "relabel forget", "Q-1, D-56");
    // D-62
    let mut request = Cluster::settled(1).request(1, Form::Inline);
    let revision = &mut request.snapshot.as_mut().unwrap().revisions[0];
    let mut object: Value = serde_json::from_slice(&revision.object).unwrap();
    object["data"] = json!({});
    revision.object = object.to_string().into();
    revision.read_after_name_collision = true;
    let plan = plan(request);
    assert!(!plan.error.is_empty());
    let raised = actions(&plan).find_map(|action| match action.kind {
        Some(v1::action::Kind::UpdateStatus(update)) => {
            Some((update.collision_count, update.expected_collision_count))
        }
        _ => None,
    });
    assert_eq!(raised, Some((Some(1), None)), "D-62");
}

#[test]
fn d_3_pods() {
    let changed = |change: fn(&mut v1::Pod)| {
        let mut cluster = Cluster::settled(2);
        change(&mut cluster.pods[0]);
        let plan = plan_of(&cluster);
        let status = plan.daemon_set_status.unwrap();
        (
            summary(&plan),
            [
                status.current_number_scheduled,
                status.number_ready,
                status.number_available,
                status.updated_number_scheduled,
            ],
        )
    };
    #[rustfmt::skip] // one case, one line
    let table: [PodRow<'_>; 13] = [
        ("D-31", |_| {}, "", [2, 2, 2, 2]),
        ("D-86", |pod| pod.ready = v1::ConditionStatus::False.into(), "", [2, 1, 1, 2]),
        ("D-86: unknown is not ready", |pod| pod.ready = v1::ConditionStatus::Unknown.into(), "", [2, 1, 1, 2]),
        ("D-95", |pod| pod.phase = v1::PodPhase::Failed.into(), "FailedDaemonPod -0", [2, 2, 2, 2]),
        ("D-96", |pod| pod.phase = v1::PodPhase::Succeeded.into(), "SucceededDaemonPod -0", [2, 2, 2, 2]),
        ("D-30", |pod| pod.phase = v1::PodPhase::Unknown.into(), "", [2, 2, 2, 2]),
        ("D-26", |pod| (pod.phase, pod.deletion_time) = (v1::PodPhase::Failed.into(), moment(NOW)), "+0", [1, 1, 1, 1]),
        ("D-23: orphan", |pod| pod.controller = None, "adopt", [2, 2, 2, 2]),
        ("D-23: another's", |pod| pod.controller.as_mut().unwrap().uid = "x".into(), "+0", [1, 1, 1, 1]),
        ("D-23", |pod| pod.labels[0].value = "x".into(), "release +0", [1, 1, 1, 1]),
        ("D-24", |pod| pod.target_node_name = std::mem::take(&mut pod.node_name), "", [2, 2, 2, 2]),
        ("D-25", |pod| pod.node_name.clear(), "+0", [1, 1, 1, 1]),
        // Neither the hash nor the template generation is current.
        ("D-86", |pod| pod.labels.truncate(1), "-0", [2, 2, 2, 1]),
    ];
    for (what, change, expected, counts) in table {
        assert_eq!(changed(change), (expected.to_owned(), counts), "{what}");
    }
    // D-36: only the pod that is not bound is deleted.
    for (bound, expected) in [(true, ""), (false, "-1")] {
        let mut cluster = Cluster::settled(2);
        cluster.nodes.pop();
        let pod = &mut cluster.pods[1];
        if !bound {
            pod.target_node_name = std::mem::take(&mut pod.node_name);
        }
        assert_eq!(summary(&plan_of(&cluster)), expected, "D-36");
    }
    // D-38: the older one stays.
    for (created, deleted) in [(NOW - 9_000, "-0"), (NOW, "-1")] {
        let mut cluster = Cluster::settled(2);
        cluster.nodes.pop();
        cluster.pods[1].node_name.clone_from(&cluster.nodes[0].name);
        cluster.pods[1].creation_time = moment(created);
        assert_eq!(summary(&plan_of(&cluster)), deleted, "D-38");
    }
}

#[test]
fn the_state_between_plans() {
    let mut cluster = Cluster::settled(2);
    cluster.pods[0].phase = v1::PodPhase::Failed.into();
    cluster.pods.pop();
    let asked = |change: &dyn Fn(&mut v1::Snapshot)| {
        let mut request = cluster.request(1, Form::Inline);
        change(request.snapshot.as_mut().unwrap());
        plan(request)
    };
    let usual = asked(&|_| {});
    assert_eq!(summary(&usual), "FailedDaemonPod +1 -0");
    // D-95, D-98
    let waiting = |observed_generation, last| {
        asked(&move |snapshot| {
            let entry = v1::FailedPodBackoff {
                observed_generation,
                node_name: node(0).name,
                delay: Some(Duration { seconds: 8, nanos: 0 }),
                last: moment(last),
            };
            snapshot.state = Some(v1::ReconcileState {
                failed_pod_backoffs: vec![entry],
                ..Default::default()
            });
        })
    };
    let waits = waiting(1, NOW - 5);
    assert_eq!(summary(&waits), "+1", "D-95");
    assert_eq!(
        waits.requeue_after,
        Some(Duration { seconds: 3, nanos: 0 }),
        "Q-18"
    );
    assert_eq!(summary(&waiting(1, NOW - 8)), summary(&usual), "D-95");
    assert_eq!(summary(&waiting(0, NOW - 5)), summary(&usual), "D-98");
    // D-72
    for (set_at, creates, verdict) in [
        (NOW - 300, true, v1::Verdict::StatusOnly),
        (NOW - 300, false, v1::Verdict::StatusOnly),
        (NOW - 301, true, v1::Verdict::Apply),
    ] {
        let plan = asked(&move |snapshot| {
            let mut expectations = v1::Expectations {
                set_at: moment(set_at),
                ..Default::default()
            };
            if creates {
                expectations.creates.push(v1::ExpectedCreate {
                    node_name: node(1).name,
                    ..Default::default()
                });
            } else {
                expectations.delete_uids.push("x".into());
            }
            snapshot.state = Some(v1::ReconcileState {
                expectations: Some(expectations),
                ..Default::default()
            });
        });
        assert_eq!(plan.verdict(), verdict, "D-72");
    }
    // D-110
    for (written, verdict) in [("10", v1::Verdict::Stale), ("9", v1::Verdict::Apply)] {
        let plan = asked(&move |snapshot| {
            snapshot.own_writes.push(v1::OwnWrite {
                resource: "pods".into(),
                written_resource_version: written.into(),
                observed_resource_version: "9".into(),
            });
        });
        assert_eq!(plan.verdict(), verdict, "D-110");
    }
    let named = |plan: &v1::Plan| {
        actions(plan).find_map(|action| match action.kind {
            Some(v1::action::Kind::CreatePod(create)) => Some(create.pod_name),
            _ => None,
        })
    };
    let collided = asked(&|snapshot| {
        let collision = v1::PodNameCollision {
            node_name: node(1).name,
            count: 1,
            refused_count: 0,
        };
        snapshot.state = Some(v1::ReconcileState {
            pod_name_collisions: vec![collision.clone()],
            ..Default::default()
        });
    });
    assert_ne!(named(&collided), named(&usual));
    let held = collided.state.unwrap().pod_name_collisions;
    assert_eq!(held.iter().map(|held| held.count).collect::<Vec<_>>(), [1]);

    let mut begun = usual.state.clone().unwrap().slow_start.expect("pods are created");
    assert_eq!((begun.size, begun.last), (1, moment(NOW)));
    begun.size = 2;
    let going_on = asked(&|snapshot| {
        snapshot.state = Some(v1::ReconcileState {
            slow_start: Some(begun.clone()),
            ..Default::default()
        });
    });
    assert_eq!(going_on.state.unwrap().slow_start, Some(begun));
}
