//! For tests: the objects of a small cluster, a kind of workload, and plans.

use nodewise_projection::{
    Key, Node, Pod, ProjectError, Revision, RolloutPolicy, Workload, buckets::Placement,
};
use nodewise_proto::v1;
use nodewise_proto::workload::{DAEMON_SET, HASH_LABEL};
use serde_json::{Value, json};

use crate::delta::Delta;
use crate::effects::{Effects, Rules};
use crate::event::ClusterEvent;
use crate::kind::Kind;
use crate::resource::Resource;
use crate::store::{Store, Transition};

/// A kind for tests: DaemonSets, on which no change has an effect.
#[derive(Debug)]
pub enum DaemonSets {}

impl Kind for DaemonSets {
    type Controls = Self;

    const RESOURCE: Resource = DAEMON_SETS;
    const READS: &'static [Resource] = &Resource::INPUTS;
    const PODS: Option<Placement> = Some(Placement::Node);
    const COUNTS_DELETIONS: bool = true;
    const EVENT_SOURCE: &'static str = "daemonset-controller";
    const QUEUE: &'static str = "daemonset";

    fn read(json: &str) -> Result<Workload, ProjectError> {
        Workload::daemon_set_from_text(json)
    }

    fn message(_: &mut Store, workload: &Workload, _: &[Workload]) -> v1::workload::Kind {
        v1::workload::Kind::DaemonSet(v1::DaemonSet {
            object: workload.object.clone(),
            ..v1::DaemonSet::default()
        })
    }

    fn effects(_: &Store, _: &Transition, _: Rules) -> Effects {
        Effects::default()
    }
}

/// apps/v1 daemonsets.
pub const DAEMON_SETS: Resource = Resource {
    plural: "daemonsets",
    kind: DAEMON_SET,
    page_size: 250,
    ..Resource::REVISIONS
};

/// Returns a plan with one batch of these actions, numbered from 1.
#[must_use]
pub fn with_actions(phase: v1::PhaseKind, actions: Vec<v1::action::Kind>) -> v1::Plan {
    let actions = (1..).zip(actions).map(|(id, kind)| v1::Action {
        id,
        kind: Some(kind),
        ..Default::default()
    });
    v1::Plan {
        verdict: v1::Verdict::Apply.into(),
        plan_id: "p".into(),
        phases: vec![v1::Phase {
            kind: phase.into(),
            batches: vec![v1::Batch {
                actions: actions.collect(),
                confirm_workload: false,
            }],
            ..Default::default()
        }],
        state: Some(v1::ReconcileState::default()),
        ..Default::default()
    }
}

/// The key of the workload of these tests.
#[must_use]
pub fn key() -> Key {
    Key::new(DAEMON_SET, "ns", "foo")
}

/// The workload, with this uid and resourceVersion.
///
/// # Panics
/// Never.
#[must_use]
pub fn daemon_set(uid: &str, version: &str) -> Workload {
    let object = json!({
        "metadata": {"namespace": "ns", "name": "foo", "uid": uid, "resourceVersion": version},
        "spec": {"selector": {"matchLabels": {"app": "foo"}}},
    });
    Workload::daemon_set_from_json(&object).expect("a DaemonSet")
}

/// A pod of the workload.
///
/// # Panics
/// Never.
#[must_use]
pub fn pod(name: &str, version: &str) -> Pod {
    let object = json!({
        "metadata": {
            "namespace": "ns", "name": name, "uid": format!("uid-{name}"), "resourceVersion": version,
            "labels": {"app": "foo"},
            "ownerReferences": [{"kind": "DaemonSet", "name": "foo", "uid": "u1", "controller": true}],
        },
        "spec": {"nodeName": "n1"},
    });
    Pod::from_json(&object).expect("a pod")
}

/// A node of this name.
///
/// # Panics
/// Never.
#[must_use]
pub fn node(name: &str) -> Node {
    let object = json!({"metadata": {"name": name, "uid": name, "resourceVersion": "10"}});
    Node::from_json(&object).expect("a node")
}

/// A complete list at version 10.
#[must_use]
pub fn listed<T>(objects: Vec<T>) -> Delta<T> {
    Delta::Listed {
        objects,
        resource_version: "10".into(),
    }
}

/// The hash label of the pods that scripted plans create.
pub const HASH: &str = "h1";

/// The revision of the workload with that hash label.
///
/// # Panics
/// Never.
#[must_use]
pub fn current_revision() -> Revision {
    let object = json!({
        "metadata": {
            "namespace": "ns", "name": "foo-current", "uid": "current", "resourceVersion": "10",
            "labels": {"app": "foo", HASH_LABEL: HASH}, "ownerReferences": [owner()],
        },
        "revision": 1,
    });
    Revision::from_json(&object).expect("a revision")
}

/// The first lists of a cluster with the workload, its revision and three nodes, all at version 10.
#[must_use]
pub fn first_lists() -> Vec<ClusterEvent> {
    vec![
        ClusterEvent::Nodes(listed(["n1", "n2", "n3"].map(node).into())),
        ClusterEvent::Pods(listed::<Pod>(Vec::new())),
        ClusterEvent::Workloads(DAEMON_SETS, listed(vec![daemon_set("u1", "10")])),
        ClusterEvent::Revisions(listed(vec![current_revision()])),
        ClusterEvent::Policies(listed(Vec::new())),
    ]
}

/// A policy of the namespace of the workload, with these targets.
///
/// # Panics
/// Never.
#[must_use]
pub fn policy(name: &str, version: &str, targets: &Value) -> RolloutPolicy {
    let object = json!({
        "apiVersion": "nodewise.dev/v1alpha1", "kind": "RolloutPolicy",
        "metadata": {"namespace": "ns", "name": name, "uid": format!("uid-{name}"), "resourceVersion": version},
        "spec": {"targets": targets},
    });
    RolloutPolicy::from_json(&object).expect("a policy")
}

/// The owner reference of objects that the workload controls.
#[must_use]
pub fn owner() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "foo", "uid": "u1",
        "controller": true, "blockOwnerDeletion": true,
    })
}
