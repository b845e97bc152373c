//! A vector of `proto/testdata/plan_checks.json`.

use nodewise_proto::v1;
use serde_json::Value;

use super::reconciler::Shown;
use super::{Asked, Violation, check, check_live};
use crate::event::{ClusterEvent, DaemonSet, Delta, Pod, Resource, Revision};
use crate::metrics::Metrics;
use crate::reconcile::DEFAULT_BURST;
use crate::state::{Shared, State};

/// Checks the vector's plan for this workload, where the caches show nodes of these names; the error is the violation.
pub(crate) fn answer(vector: &Value, workload: &Value, nodes: &Value) -> Result<(), Violation> {
    let workload = DaemonSet::from_json(workload).expect("a DaemonSet");
    let objects = |field: &str| vector[field].as_array().cloned().unwrap_or_default();
    let state = Shared::new(State::new(4, &v1::PlanOptions::default()));
    let show = |event| _ = state.lock().take_in(event, &Metrics::new());
    show(ClusterEvent::DaemonSets(Delta::Applied(workload.clone())));
    for name in nodes.as_array().expect("nodes") {
        let node = crate::testing::node(name.as_str().expect("a name"));
        show(ClusterEvent::Nodes(Delta::Applied(node)));
    }
    for pod in objects("pods") {
        show(ClusterEvent::Pods(Delta::Applied(
            Pod::from_json(&pod).expect("a pod"),
        )));
    }
    for revision in objects("revisions") {
        let revision = Revision::from_json(&revision).expect("a revision");
        show(ClusterEvent::Revisions(Delta::Applied(revision)));
    }
    let live: Vec<_> = objects("read_live")
        .iter()
        .map(|revision| Revision::from_json(revision).expect("a revision"))
        .collect();
    let scope: Option<v1::Scope> = vector["scope"].as_str().and_then(v1::Scope::from_str_name);
    let burst: Option<u32> = serde_json::from_value(vector["burst"].clone()).expect("a burst");
    let asked = Asked {
        workload: &workload,
        scope: scope.unwrap_or_default(),
        live: &live,
        delete_with_uid: vector["delete_with_uid"] != false,
        decides_after_cut: vector["decides_after_cut"] != false,
        burst: burst.unwrap_or(DEFAULT_BURST) as usize,
    };
    let plan: v1::Plan = serde_json::from_value(vector["plan"].clone()).expect("a plan");
    let shown = Shown {
        state: &state,
        workload: &workload,
    };
    for named in check(&plan, &asked, &shown)? {
        let kind = if named.resource == Resource::Pods {
            "Pod"
        } else {
            "ControllerRevision"
        };
        let object = objects("live")
            .into_iter()
            .find(|object| object["kind"] == kind && object["metadata"]["name"] == *named.reference.name);
        if let Some(object) = object {
            check_live(&named, &asked, object.to_string().as_bytes())?;
        }
    }
    Ok(())
}
