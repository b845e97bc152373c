//! What the next plan does, in a few sentences.

use std::collections::BTreeMap;

use nodewise_proto::v1::{self, action};

/// The most sentences.
const MAX: usize = 8;

/// One sentence for each group of equal actions. Writes of the status and Events are left out: nobody waits for them.
pub(crate) fn of(plan: &v1::Plan) -> Vec<String> {
    let mut pods: BTreeMap<&str, usize> = BTreeMap::new();
    let mut others = Vec::new();
    for action in plan.actions() {
        match &action.kind {
            None | Some(action::Kind::UpdateStatus(_) | action::Kind::EmitEvent(_)) => {}
            Some(action::Kind::CreatePod(_)) => *pods.entry("create").or_default() += 1,
            Some(action::Kind::DeletePod(_)) => *pods.entry("delete").or_default() += 1,
            Some(action::Kind::EvictPod(_)) => *pods.entry("evict").or_default() += 1,
            Some(action::Kind::AdoptPod(_)) => *pods.entry("adopt").or_default() += 1,
            Some(action::Kind::ReleasePod(_)) => *pods.entry("release").or_default() += 1,
            Some(action::Kind::RelabelPod(_)) => *pods.entry("relabel").or_default() += 1,
            Some(action::Kind::CreateObject(object)) if is_pod(object.resource.as_ref()) => {
                *pods.entry("create").or_default() += 1;
            }
            Some(action::Kind::DeleteObject(object)) if is_pod(object.resource.as_ref()) => {
                *pods.entry("delete").or_default() += 1;
            }
            Some(action::Kind::PatchObject(object)) if object.subresource == "status" => {}
            Some(_) => others.push(action.message.clone()),
        }
    }
    let pods = pods.into_iter().map(|(verb, count)| match count {
        1 => format!("{verb} 1 pod"),
        count => format!("{verb} {count} pods"),
    });
    pods.chain(others).take(MAX).collect()
}

fn is_pod(resource: Option<&v1::GroupVersionResource>) -> bool {
    resource.is_some_and(|resource| resource.resource == "pods")
}
