//! Renders one action as a line, and decides which actions form a group.

use anstyle::Style;
use nodewise_proto::v1::{self, action::Kind};

use crate::text::{ADD, CHANGE, REMOVE};

/// The key of a group of actions: kind and reason.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GroupKey {
    kind: u8,
    reason: i32,
    /// The name of a revision, because revisions are never grouped, or the reason of an Event.
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
    /// Verb, noun and details of this action.
    what: String,
}

impl Line {
    pub(super) fn of(action: &v1::Action, old: &v1::DaemonSetStatus) -> Self {
        let line = |marker, verb: &'static str, noun: &'static str, detail: String| {
            let style = match marker {
                "+" => ADD,
                "-" => REMOVE,
                _ => CHANGE,
            };
            let words = [verb, noun, detail.as_str()];
            let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
            Self {
                marker,
                style,
                verb,
                noun,
                what: words.join(" "),
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
            Some(Kind::CreatePod(create)) => line(
                "+",
                "create",
                "pod",
                format!("{} on {}", create.pod_name, create.node_name)
                    .trim()
                    .to_owned(),
            ),
            Some(Kind::DeletePod(delete)) => line(
                "-",
                "delete",
                "pod",
                format!("{} on {}", name_of(delete.pod.as_ref()), delete.node_name),
            ),
            Some(Kind::UpdateStatus(update)) => line("~", "status:", "", status_change(old, update)),
            Some(Kind::EmitEvent(event)) => {
                line("+", "emit", "event", format!("{} {}", event.r#type, event.reason))
            }
        }
    }
}

impl Line {
    pub(super) fn with_reason(&self, action: &v1::Action) -> String {
        match action.reason() {
            // The line already shows the changed numbers.
            v1::Reason::StatusChanged | v1::Reason::GenerationObserved => self.what.clone(),
            _ => format!("{}: {}", self.what, action.message),
        }
    }
}

fn name_of(reference: Option<&v1::ObjectReference>) -> String {
    reference
        .map(|reference| reference.name.clone())
        .unwrap_or_default()
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
