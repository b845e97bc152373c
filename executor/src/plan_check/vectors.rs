//! Runs a vector of `proto/testdata/plan_checks.json`.

use std::sync::Arc;

use nodewise_projection::{Node, Pod, Revision, RolloutPolicy, Workload};
use nodewise_proto::v1;
use nodewise_runtime::{Delta, Resource};
use serde_json::{Value, json};

use super::reconciler::WorkloadCaches;
use super::{RequestContext, Violation, check, rules};
use crate::daemon_set::{DAEMON_SETS, DaemonSets};
use crate::metrics::Metrics;
use crate::state::{Shared, State};
use nodewise_runtime::event::ClusterEvent;

/// Checks the vector's plan. Members that the vector does not have come from the first vector. Returns the ids of the
/// actions that are left out; the error is the violation.
pub(crate) fn answer(vector: &Value, first: &Value) -> Result<Vec<u32>, Violation> {
    let of = |field| vector.get(field).unwrap_or(&first[field]);
    let workload = of("workload");
    let workload = Workload::daemon_set_from_json(workload).expect("a DaemonSet");
    let objects = |field: &str| vector[field].as_array().cloned().unwrap_or_default();
    let (state, as_of) = caches(vector, first, &workload);
    let live: Vec<_> = objects("read_live")
        .iter()
        .map(|revision| Revision::from_json(revision).expect("a revision"))
        .collect();
    let policies = of("policies").as_array().cloned().unwrap_or_default();
    let policies = policies
        .iter()
        .map(|policy| RolloutPolicy::from_json(policy).expect("a policy"));
    let policies: Vec<_> = policies.map(Arc::new).collect();
    let scope: Option<v1::Scope> = vector["scope"].as_str().and_then(v1::Scope::from_str_name);
    let burst: Option<u32> = serde_json::from_value(vector["burst"].clone()).expect("a burst");
    let sent = vector
        .get("sent")
        .map(|sent| serde_json::from_value(sent.clone()).expect("a state"));
    let sent: v1::ReconcileState = sent.unwrap_or_default();
    let rules = rules(workload.key.kind);
    let request = RequestContext {
        workload: &workload,
        resource: DAEMON_SETS,
        controls: DAEMON_SETS,
        rules,
        scope: scope.unwrap_or_default(),
        live: &live,
        policies: &policies,
        as_of,
        sent: &sent,
        delete_with_uid: vector["delete_with_uid"] != false,
        decides_after_cut: vector["decides_after_cut"] != false,
        burst: burst.unwrap_or(rules.burst) as usize,
    };
    let plan: v1::Plan = serde_json::from_value(vector["plan"].clone()).expect("a plan");
    let shown = WorkloadCaches {
        state: &state,
        workload: &workload,
    };
    let mut checked = check(&plan, &request, &shown)?;
    for named in std::mem::take(&mut checked.unseen) {
        let kind = if named.resource == Resource::PODS {
            "Pod"
        } else {
            "ControllerRevision"
        };
        let object = objects("live")
            .into_iter()
            .find(|object| object["kind"] == kind && object["metadata"]["name"] == *named.reference.name);
        if let Some(object) = object {
            checked.read(&named, &request, &shown, object.to_string().as_bytes())?;
        }
    }
    Ok(checked.left_out(&plan).into_keys().collect())
}

/// The caches of the vector, and the number of the last cache change that its snapshot contains.
fn caches(vector: &Value, first: &Value, workload: &Workload) -> (Shared, u64) {
    let of = |field| vector.get(field).unwrap_or(&first[field]);
    let state = Shared::new(State::of::<DaemonSets>(4, &v1::PlanOptions::default()));
    let show = |event| _ = state.lock().handle_event(event, &Metrics::new());
    let show_objects = |are_changed: bool| {
        for resource in ["pods", "revisions"] {
            let objects = of(resource).as_array().cloned().unwrap_or_default();
            let is_due = |object: &&Value| {
                let changed = vector["changed"][resource].as_array();
                let name = &object["metadata"]["name"];
                changed.is_some_and(|names| names.contains(name)) == are_changed
            };
            for object in objects.iter().filter(is_due) {
                show(applied(resource, object));
            }
        }
    };
    show(ClusterEvent::Workloads(
        DAEMON_SETS,
        Delta::Applied(workload.clone()),
    ));
    for name in of("nodes").as_array().expect("nodes") {
        let node = crate::testing::node(name.as_str().expect("a name"));
        show(ClusterEvent::Nodes(Delta::Applied(node)));
    }
    show_objects(false);
    // Objects that are removed below.
    let removed = vector["removed"].as_array().cloned().unwrap_or_default();
    let removed: Vec<_> = removed
        .iter()
        .map(|one| one.as_str().expect("a resource"))
        .collect();
    let namespace = &*workload.key.namespace;
    let gone =
        json!({"metadata": {"namespace": namespace, "name": "gone", "uid": "gone", "resourceVersion": "1"}});
    for resource in &removed {
        show(applied(resource, &gone));
    }
    let as_of = state.lock().store.last_change();
    show_objects(true);
    for resource in &removed {
        show(deleted(applied(resource, &gone)));
    }
    (state, as_of)
}

fn applied(resource: &str, object: &Value) -> ClusterEvent {
    match resource {
        "nodes" => ClusterEvent::Nodes(Delta::Applied(Node::from_json(object).expect("a node"))),
        "pods" => ClusterEvent::Pods(Delta::Applied(Pod::from_json(object).expect("a pod"))),
        _ => ClusterEvent::Revisions(Delta::Applied(Revision::from_json(object).expect("a revision"))),
    }
}

fn deleted(applied: ClusterEvent) -> ClusterEvent {
    match applied {
        ClusterEvent::Nodes(Delta::Applied(node)) => ClusterEvent::Nodes(Delta::Deleted(node)),
        ClusterEvent::Pods(Delta::Applied(pod)) => ClusterEvent::Pods(Delta::Deleted(pod)),
        ClusterEvent::Revisions(Delta::Applied(revision)) => {
            ClusterEvent::Revisions(Delta::Deleted(revision))
        }
        other => other,
    }
}
