//! Renders one action as a line, and decides which actions form a group.

use anstyle::Style;
use nodewise_proto::v1::{self, action::Kind};

use crate::text::{ADD, CHANGE, REMOVE};

/// The key of a group of actions: kind and reason.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GroupKey {
    kind: u8,
    reason: i32,
    /// The name of a revision or of another object that is never grouped, or the reason of an Event.
    name: String,
}

impl GroupKey {
    pub(super) fn of(action: &v1::Action) -> Self {
        let (kind, name) = match &action.kind {
            None => (0, String::new()),
            Some(Kind::AdoptRevision(adopt)) => (1, name_of(adopt.revision.as_ref())),
            Some(Kind::ReleaseRevision(release)) => (2, name_of(release.revision.as_ref())),
            Some(Kind::CreateRevision(create)) => (3, create.name.clone()),
            Some(Kind::UpdateRevision(update)) => (4, name_of(update.revision.as_ref())),
            Some(Kind::RelabelPod(_)) => (5, String::new()),
            Some(Kind::DeleteRevision(delete)) => (6, name_of(delete.revision.as_ref())),
            Some(Kind::AdoptPod(_)) => (7, String::new()),
            Some(Kind::ReleasePod(_)) => (8, String::new()),
            Some(Kind::EmitEvent(event)) => (9, event.reason.clone()),
            Some(Kind::CreatePod(_)) => (10, String::new()),
            Some(Kind::DeletePod(_)) => (11, String::new()),
            Some(Kind::UpdateStatus(_)) => (12, String::new()),
            Some(Kind::CreateObject(create)) => (13, create.name.clone()),
            Some(Kind::PatchObject(patch)) => (14, name_of(patch.object.as_ref())),
            Some(Kind::DeleteObject(delete)) => (15, name_of(delete.object.as_ref())),
            Some(Kind::EvictPod(_)) => (16, String::new()),
            Some(Kind::Measure(measure)) => (17, measure_of(measure)),
        };
        Self {
            kind,
            reason: action.reason,
            name,
        }
    }
}

/// The text of an action.
pub(super) struct Line {
    pub(super) marker: &'static str,
    pub(super) style: Style,
    pub(super) verb: &'static str,
    pub(super) noun: &'static str,
    /// Which object, and what about it.
    detail: String,
}

/// The check that a measurement is for, with its stage.
fn measure_of(measure: &v1::Measure) -> String {
    measure
        .id
        .as_ref()
        .map(|id| format!("{} of stage {}", id.check, id.stage))
        .unwrap_or_default()
}

impl Line {
    pub(super) fn of(action: &v1::Action, old: &v1::DaemonSetStatus) -> Self {
        let line = |marker, verb: &'static str, noun: &'static str, detail: String| {
            let style = match marker {
                "+" => ADD,
                "-" => REMOVE,
                _ => CHANGE,
            };
            Self {
                marker,
                style,
                verb,
                noun,
                detail,
            }
        };
        match &action.kind {
            None => line("~", "do", "something unknown to this version", String::new()),
            Some(Kind::CreateRevision(create)) => line("+", "create", "revision", create.name.clone()),
            Some(Kind::UpdateRevision(update)) => {
                let name = name_of(update.revision.as_ref());
                match update.revision_number {
                    Some(number) => line("~", "renumber", "revision", format!("{name} to {number}")),
                    None => line("~", "label", "revision", name),
                }
            }
            Some(Kind::DeleteRevision(delete)) => {
                let name = name_of(delete.revision.as_ref());
                line(
                    "-",
                    "delete",
                    "revision",
                    format!("{name} (number {})", delete.revision_number),
                )
            }
            Some(Kind::AdoptRevision(adopt)) => {
                line("~", "adopt", "revision", name_of(adopt.revision.as_ref()))
            }
            Some(Kind::ReleaseRevision(release)) => {
                line("~", "release", "revision", name_of(release.revision.as_ref()))
            }
            Some(Kind::AdoptPod(adopt)) => line("~", "adopt", "pod", name_of(adopt.pod.as_ref())),
            Some(Kind::ReleasePod(release)) => line("~", "release", "pod", name_of(release.pod.as_ref())),
            Some(Kind::RelabelPod(relabel)) => line("~", "relabel", "pod", name_of(relabel.pod.as_ref())),
            Some(Kind::CreatePod(create)) => {
                line("+", "create", "pod", on_node(&create.pod_name, &create.node_name))
            }
            Some(Kind::DeletePod(delete)) => line(
                "-",
                "delete",
                "pod",
                on_node(&name_of(delete.pod.as_ref()), &delete.node_name),
            ),
            Some(Kind::EvictPod(evict)) => line(
                "-",
                "evict",
                "pod",
                on_node(&name_of(evict.pod.as_ref()), &evict.node_name),
            ),
            Some(Kind::Measure(measure)) => line("~", "measure", "check", measure_of(measure)),
            Some(Kind::UpdateStatus(update)) => line("~", "status:", "", status_change(old, update)),
            Some(Kind::EmitEvent(event)) => {
                line("+", "emit", "event", format!("{} {}", event.r#type, event.reason))
            }
            Some(Kind::CreateObject(create)) => {
                line("+", "create", noun(create.resource.as_ref()), create.name.clone())
            }
            // The message has the changes.
            Some(Kind::PatchObject(patch)) if patch.subresource == "status" => {
                line("~", "status:", "", action.message.clone())
            }
            Some(Kind::PatchObject(patch)) => {
                let (verb, detail) = change(patch);
                line("~", verb, noun(patch.resource.as_ref()), detail)
            }
            Some(Kind::DeleteObject(delete)) => line(
                "-",
                "delete",
                noun(delete.resource.as_ref()),
                name_of(delete.object.as_ref()),
            ),
        }
    }
}

impl Line {
    /// `scale ReplicaSet web-5d4f to 5`.
    pub(super) fn what(&self) -> String {
        let words = [self.verb, self.noun, &self.detail].into_iter();
        let words = words.filter(|word| !word.is_empty());
        words.collect::<Vec<_>>().join(" ")
    }

    pub(super) fn with_reason(&self, action: &v1::Action) -> String {
        let what = self.what();
        match action.reason() {
            // The line already shows the changed numbers.
            v1::Reason::StatusChanged | v1::Reason::GenerationObserved => what,
            // The line is the message.
            _ if !action.message.is_empty() && self.detail == action.message => what,
            _ => format!("{what}: {}", self.predicate(&action.message)),
        }
    }

    /// The message without a subject that the line has already: `outdated (slot 1 of 3)`.
    fn predicate<'m>(&self, message: &'m str) -> &'m str {
        let predicate = message
            .strip_prefix(&self.detail)
            .and_then(|rest| rest.strip_prefix(' '));
        predicate.map_or(message, |rest| rest.strip_prefix("is ").unwrap_or(rest))
    }
}

/// `web-1 on node-1`. A part that is not known is left out.
fn on_node(pod: &str, node: &str) -> String {
    match (pod, node) {
        (pod, "") => pod.to_owned(),
        (pod, node) => format!("{pod} on {node}").trim().to_owned(),
    }
}

fn name_of(reference: Option<&v1::ObjectReference>) -> String {
    reference
        .map(|reference| reference.name.clone())
        .unwrap_or_default()
}

/// The kind of the objects of a resource.
fn noun(resource: Option<&v1::GroupVersionResource>) -> &'static str {
    match resource.map(|resource| resource.resource.as_str()) {
        Some("replicasets") => "ReplicaSet",
        Some("deployments") => "Deployment",
        _ => "object",
    }
}

/// What a patch does: the verb, and the object with the change.
fn change(patch: &v1::PatchObject) -> (&'static str, String) {
    let name = name_of(patch.object.as_ref());
    match patch.claim() {
        v1::Claim::Adopt => return ("adopt", name),
        v1::Claim::Release => return ("release", name),
        v1::Claim::Unspecified => {}
    }
    let content: serde_json::Value = serde_json::from_slice(&patch.patch).unwrap_or_default();
    match content["spec"]["replicas"].as_i64() {
        Some(replicas) => ("scale", format!("{name} to {replicas}")),
        None if content["spec"]["template"].is_object() => ("roll back", name),
        None => ("update", name),
    }
}

/// `desired 0 → 300, ready 0 → 12`.
fn status_change(old: &v1::DaemonSetStatus, update: &v1::UpdateStatus) -> String {
    let mut changes = Vec::new();
    if let Some(new) = &update.status {
        let fields: [(&str, i64, i64); 8] = [
            (
                "desired",
                old.desired_number_scheduled.into(),
                new.desired_number_scheduled.into(),
            ),
            (
                "current",
                old.current_number_scheduled.into(),
                new.current_number_scheduled.into(),
            ),
            (
                "misscheduled",
                old.number_misscheduled.into(),
                new.number_misscheduled.into(),
            ),
            (
                "updated",
                old.updated_number_scheduled.into(),
                new.updated_number_scheduled.into(),
            ),
            ("ready", old.number_ready.into(), new.number_ready.into()),
            (
                "available",
                old.number_available.into(),
                new.number_available.into(),
            ),
            (
                "unavailable",
                old.number_unavailable.into(),
                new.number_unavailable.into(),
            ),
            (
                "observed generation",
                old.observed_generation,
                new.observed_generation,
            ),
        ];
        changes.extend(
            fields
                .into_iter()
                .filter(|(_, old, new)| old != new)
                .map(|(name, old, new)| format!("{name} {old} → {new}")),
        );
    }
    if let Some(count) = update.collision_count {
        changes.push(format!(
            "collision count {} → {count}",
            update.expected_collision_count.unwrap_or_default()
        ));
    }
    if changes.is_empty() {
        "as it is".to_owned()
    } else {
        changes.join(", ")
    }
}
