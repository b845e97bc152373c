//! Kinds that are missing in the input although a workload needs them.

use anyhow::bail;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    input::{Cluster, Served},
    kind::Kind,
    print,
    rollout::quote::word,
};

/// The command that prints the policies of a cluster. It fails where the kind is not installed.
const POLICIES: &str = "kubectl get rolloutpolicies -A -o json";

/// The fields that say that there are other objects.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Object {
    status: Value,
}

fn reported_replicas(workload: &Served) -> i64 {
    let object: Object = serde_json::from_str(workload.json.get()).unwrap_or_default();
    object.status["replicas"].as_i64().unwrap_or_default()
}

/// Refuses a file that has a workload with replicas, but not a single object of the kind that it controls: every plan for it would
/// create all of them once more. An apiserver is asked for both, so what it says is true.
pub(crate) fn refuse(cluster: &Cluster, workload: &Served) -> anyhow::Result<()> {
    let namespace = &workload.namespace;
    let (missing, is_missing) = match workload.kind {
        Kind::Deployment => (
            Kind::ReplicaSet,
            cluster.workloads_in(Kind::ReplicaSet, namespace).next().is_none(),
        ),
        Kind::ReplicaSet => (Kind::Pod, cluster.pods_in(namespace).is_empty()),
        _ => return Ok(()),
    };
    let replicas = reported_replicas(workload);
    if !cluster.is_dump || !is_missing || replicas <= 0 {
        return Ok(());
    }
    bail!(
        "{}: is {replicas}, and there is no {} of namespace {namespace}; expected the output of `{}` ({})",
        workload.origin.at("status.replicas"),
        missing.name(),
        command(workload),
        workload.title()
    )
}

/// The command that reads what the plan for a workload needs.
fn command(workload: &Served) -> String {
    let kinds: Vec<&str> = workload.kind.needs().iter().map(|kind| kind.plural()).collect();
    format!(
        "kubectl get {} -n {} -o yaml",
        kinds.join(","),
        word(&workload.namespace)
    )
}

/// Hints about kinds that are probably missing in the input. The workloads are those that are planned, all of these kinds.
pub(crate) fn notes(
    cluster: &Cluster,
    kinds: &[Kind],
    namespace: Option<&str>,
    workloads: &[&Served],
) -> Vec<String> {
    let source = cluster.source();
    let of_namespace = namespace
        .map(|namespace| format!(" of namespace {namespace}"))
        .unwrap_or_default();
    let mut notes = Vec::new();
    for kind in kinds {
        let mut of_kind = workloads.iter().filter(|workload| workload.kind == *kind);
        if of_kind.next().is_none() {
            notes.push(format!(
                "{source}: no {}{of_namespace}{}",
                kind.name(),
                others(cluster, kinds)
            ));
        }
    }
    if workloads.iter().any(|workload| workload.kind == Kind::DaemonSet) {
        if cluster.nodes.is_empty() {
            notes.push(format!(
                "{source}: no Node; a DaemonSet without nodes runs nowhere"
            ));
        }
        if !cluster.pods.is_empty() && cluster.revisions.is_empty() {
            notes.push(format!(
                "{source}: pods, but no ControllerRevision; without them every pod may look outdated"
            ));
        }
    }
    notes.extend(note_without_policies(cluster, workloads.iter().copied()));
    notes
}

/// Prints the hint of [`note_without_policies`].
pub(crate) fn hint_without_policies<'a>(cluster: &Cluster, workloads: impl Iterator<Item = &'a Served>) {
    if let Some(note) = note_without_policies(cluster, workloads) {
        print::note(&note);
    }
}

/// A hint that a file cannot say whether a DaemonSet has a RolloutPolicy. Without its policy a rollout looks as if nothing held it back.
fn note_without_policies<'a>(
    cluster: &Cluster,
    mut workloads: impl Iterator<Item = &'a Served>,
) -> Option<String> {
    let is_missing = !cluster.knows_policies() && workloads.any(|workload| workload.kind == Kind::DaemonSet);
    is_missing.then(|| {
        format!(
            "{}: no RolloutPolicy, so DaemonSets are taken as having none; if the cluster has that kind, add what `{POLICIES}` prints",
            cluster.source()
        )
    })
}

/// Other kinds of workload that the input has. Of a cluster only the kinds that are planned were read.
fn others(cluster: &Cluster, kinds: &[Kind]) -> String {
    let others: Vec<&str> = [Kind::Deployment, Kind::ReplicaSet, Kind::DaemonSet]
        .into_iter()
        .filter(|kind| !kinds.contains(kind))
        .filter(|kind| !cluster.is_dump || !cluster.workloads(*kind).is_empty())
        .map(Kind::plural)
        .collect();
    match others.as_slice() {
        [] => String::new(),
        others => format!("; name the kind to plan for others: {}", others.join(", ")),
    }
}

/// A hint that pods are missing, without which an explanation of a Deployment says less.
pub(crate) fn note_without_pods(cluster: &Cluster, deployment: &Served) -> Option<String> {
    let is_missing = cluster.is_dump && cluster.pods_in(&deployment.namespace).is_empty();
    (is_missing && reported_replicas(deployment) > 0).then(|| {
        format!(
            "{}: no Pod of namespace {}; only with `{}` it is known why pods are not ready, and which goes first",
            cluster.source(),
            deployment.namespace,
            command(deployment)
        )
    })
}
