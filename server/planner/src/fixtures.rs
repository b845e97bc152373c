//! Builders of test objects for the unit tests.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    core::{
        json::Json,
        snapshot::{
            Bucket, ControllerRef, Labels, Node, Nodes, Options, Pod, PodPhase, Revision, Selector, Snapshot,
            State, Taint, TaintEffect, Target,
        },
        status::DaemonSetStatus,
    },
    daemonset::{
        manifest::HASH_LABEL,
        workload::{DaemonSet, RollingUpdate, RolloutInputs, Scheduling, UpdateStrategy},
    },
};

/// DaemonSet `foo`, which selects `app=foo`.
pub(crate) fn daemon_set() -> DaemonSet {
    DaemonSet {
        name: "foo".to_owned(),
        namespace: "default".to_owned(),
        uid: "foo-uid".to_owned(),
        resource_version: "1".to_owned(),
        generation: 1,
        deleting: false,
        annotations: vec![],
        selector: Some(Selector {
            match_labels: Some(pairs(&[("app", "foo")])),
            match_expressions: None,
        }),
        template: json!({
            "metadata": {"labels": {"app": "foo"}},
            "spec": {"containers": [{"name": "c", "image": "img:1", "resources": {}}]},
        })
        .into(),
        scheduling: Scheduling::default(),
        strategy: UpdateStrategy::RollingUpdate(Some(RollingUpdate::default())),
        min_ready_seconds: 0,
        revision_history_limit: Some(10),
        status: DaemonSetStatus::default(),
        collision_count: None,
        rollout: RolloutInputs::default(),
    }
}

/// Edits a JSON text through a [`Value`].
pub(crate) fn edit(json: &mut Json, change: impl FnOnce(&mut Value)) {
    let mut value = json.to_value();
    change(&mut value);
    *json = value.into();
}

/// The controller reference of the objects that a workload owns.
pub(crate) fn controller(ds: &DaemonSet) -> ControllerRef {
    ControllerRef {
        kind: "DaemonSet".to_owned(),
        name: ds.name.clone(),
        uid: ds.uid.clone(),
    }
}

/// A node with labels and with taints written `key=value:Effect`.
pub(crate) fn node(name: &str, labels: &[(&str, &str)], taints: &[&str]) -> Node {
    Node {
        name: name.to_owned(),
        labels: self::labels(labels),
        taints: taints.iter().map(|taint| self::taint(taint)).collect(),
        unschedulable: false,
        ready: Some(true),
        ready_since: None,
        in_maintenance: false,
    }
}

/// A table of these nodes, in this order.
pub(crate) fn table(nodes: &[Node]) -> Nodes {
    Nodes::in_order(nodes.to_vec())
}

fn taint(text: &str) -> Taint {
    let (rest, effect) = text.split_once(':').expect("a taint is written key=value:Effect");
    let (key, value) = rest.split_once('=').unwrap_or((rest, ""));
    let effect = match effect {
        "NoSchedule" => TaintEffect::NoSchedule,
        "NoExecute" => TaintEffect::NoExecute,
        _ => TaintEffect::Other,
    };
    Taint {
        key: key.to_owned(),
        value: value.to_owned(),
        effect,
    }
}

/// Labels from borrowed pairs.
pub(crate) fn labels(entries: &[(&str, &str)]) -> Labels {
    Labels::new(pairs(entries))
}

/// Owned copies of pairs.
pub(crate) fn pairs(entries: &[(&str, &str)]) -> Vec<(String, String)> {
    entries
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

/// Owned copies of strings.
pub(crate) fn strings(values: &[&str]) -> Vec<String> {
    values.iter().map(|value| (*value).to_owned()).collect()
}

/// A snapshot without nodes and pods, with default options.
pub(crate) fn snapshot(daemon_set: DaemonSet, revisions: Vec<Revision>) -> Snapshot<DaemonSet> {
    Snapshot {
        now: Timestamp::UNIX_EPOCH,
        workload: daemon_set,
        revisions,
        buckets: vec![],
        state: State::default(),
        own_writes: vec![],
        options: Options::default(),
    }
}

/// One bucket with all nodes and pods.
pub(crate) fn bucket(nodes: Vec<Node>, pods: Vec<Pod>) -> Bucket {
    Bucket::divide(nodes, pods, 1, |_| 0).remove(0)
}

/// A ready, running pod of a workload on a node. Its uid is its name with `-uid`.
pub(crate) fn pod(ds: &DaemonSet, name: &str, node: &str, hash: &str) -> Pod {
    Pod {
        name: name.to_owned(),
        uid: format!("{name}-uid"),
        labels: labels(&[("app", "foo"), (HASH_LABEL, hash)]),
        controller: Some(controller(ds).into()),
        target: Target::Bound(node.to_owned()),
        phase: PodPhase::Running,
        ready: true,
        ready_since: Some(Timestamp::UNIX_EPOCH),
        created: Some(Timestamp::UNIX_EPOCH),
        deleting: false,
        has_finalizers: false,
        deletion_cost: 0,
        restarts: 0,
        sidecar_restarts: 0,
    }
}
