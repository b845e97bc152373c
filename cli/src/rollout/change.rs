//! `nodewise rollout undo|pause|resume|restart`: one patch of the workload.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use jiff::{Timestamp, Unit};
use serde_json::{Value, json};

use super::{
    diff,
    proposal::{Proposal, Proposed, named},
    revisions::{History, annotations},
};
use crate::{
    input::{Cluster, Served},
    kind::Kind,
    text::{ADD, PLAIN, Page, REMOVE},
};

/// The annotation by which kubectl restarts a workload.
const RESTARTED: &str = "kubectl.kubernetes.io/restartedAt";

/// The annotations that a Deployment and its ReplicaSets do not exchange, as in kubectl and in the Deployment controller.
const NOT_EXCHANGED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "deployment.kubernetes.io/revision",
    "deployment.kubernetes.io/revision-history",
    "deployment.kubernetes.io/desired-replicas",
    "deployment.kubernetes.io/max-replicas",
    "deprecated.deployment.rollback.to",
];

/// Goes back to an earlier revision, as `kubectl rollout undo` does: by default to the newest one that the workload does not have now.
pub(super) fn undo(
    cluster: &Cluster,
    workload: &Served,
    to_revision: Option<i64>,
) -> anyhow::Result<Proposed> {
    let history = History::of(cluster, workload)?;
    let title = workload.title();
    ensure!(
        history.object["spec"]["paused"] != json!(true),
        "{title}: spec.paused is true, so its controller would not go back; run `nodewise rollout resume` first"
    );
    let revision = history.find(to_revision)?;
    let number = revision.number;
    let mut page = Page::new(None);
    page.line(
        0,
        PLAIN,
        &format!("{title}: back to revision {number} ({})", revision.name),
    );
    if !diff::render(&mut page, &history.present(), &revision.template)? {
        return Ok(Proposed::Nothing(format!(
            "{title} has the template of revision {number} already."
        )));
    }
    let command = format!("kubectl rollout undo {} --to-revision={number}", named(workload));
    let question = format!("Go back to revision {number}?");
    let mut template = revision.template.clone();
    template["$patch"] = json!("replace");
    let mut patch = json!({ "spec": { "template": template } });
    if workload.kind == Kind::Deployment {
        let present = annotations(&history.object);
        let changes = annotation_changes(&present, &revision.annotations);
        render_annotations(&mut page, &present, &changes);
        if !changes.is_empty() {
            patch["metadata"]["annotations"] = json!(changes);
        }
    }
    Ok(Proposed::Change(Proposal::patch(
        workload, page, &command, question, patch,
    )))
}

/// What gives a Deployment the annotations of an old ReplicaSet. Those that they do not exchange stay. `None`: the annotation is removed.
fn annotation_changes<'a>(
    present: &'a BTreeMap<String, String>,
    wanted: &'a BTreeMap<String, String>,
) -> BTreeMap<&'a str, Option<&'a str>> {
    let removed = present.keys().map(|key| (key.as_str(), None));
    let restored = wanted
        .iter()
        .map(|(key, value)| (key.as_str(), Some(value.as_str())));
    let mut changes: BTreeMap<_, _> = removed.chain(restored).collect();
    changes
        .retain(|key, value| !NOT_EXCHANGED.contains(key) && present.get(*key).map(String::as_str) != *value);
    changes
}

fn render_annotations(
    page: &mut Page,
    present: &BTreeMap<String, String>,
    changes: &BTreeMap<&str, Option<&str>>,
) {
    for (key, value) in changes {
        if let Some(old) = present.get(*key) {
            page.row(&[(REMOVE, &format!("- annotation {key}: {old}"))]);
        }
        if let Some(new) = value {
            page.row(&[(ADD, &format!("+ annotation {key}: {new}"))]);
        }
    }
}

/// Whether a Deployment is paused. An error for the other kinds.
pub(super) fn is_paused(workload: &Served) -> anyhow::Result<bool> {
    ensure!(
        workload.kind == Kind::Deployment,
        "{}: Kubernetes can pause only Deployments; a {} has no field for it",
        workload.title(),
        workload.kind.name()
    );
    let object: Value =
        serde_json::from_str(workload.json.get()).context("the Deployment is not valid JSON")?;
    Ok(object["spec"]["paused"].as_bool().unwrap_or_default())
}

/// Pauses or resumes a Deployment.
pub(super) fn pause(workload: &Served, paused: bool) -> anyhow::Result<Proposed> {
    let title = workload.title();
    let (verb, done) = if paused {
        ("pause", "paused")
    } else {
        ("resume", "not paused")
    };
    if is_paused(workload)? == paused {
        return Ok(Proposed::Nothing(format!("{title} is {done} already.")));
    }
    let command = format!("kubectl rollout {verb} {}", named(workload));
    let question = format!("Do you want to {verb} {title}?");
    let patch = json!({ "spec": { "paused": paused } });
    Ok(Proposed::Change(Proposal::patch(
        workload,
        Page::new(None),
        &command,
        question,
        patch,
    )))
}

/// Replaces all pods, as `kubectl rollout restart` does.
pub(super) fn restart(workload: &Served) -> anyhow::Result<Proposed> {
    let title = workload.title();
    ensure!(
        workload.kind != Kind::ReplicaSet,
        "{title}: a ReplicaSet does not replace its pods; expected a DaemonSet or Deployment"
    );
    let now = Timestamp::now().round(Unit::Second)?.to_string();
    let annotations = json!({ "annotations": { RESTARTED: now } });
    let patch = json!({ "spec": { "template": { "metadata": annotations } } });
    let command = format!("kubectl rollout restart {}", named(workload));
    let question = format!("Replace all pods of {title}?");
    Ok(Proposed::Change(Proposal::patch(
        workload,
        Page::new(None),
        &command,
        question,
        patch,
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let pairs = pairs.iter();
        pairs
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn an_undo_restores_the_annotations_that_are_exchanged() {
        let present = map(&[
            ("kubernetes.io/change-cause", "three"),
            ("deployment.kubernetes.io/revision", "3"),
            ("kubectl.kubernetes.io/last-applied-configuration", "{}"),
            ("team", "web"),
            ("same", "1"),
        ]);
        let wanted = map(&[
            ("kubernetes.io/change-cause", "two"),
            ("deployment.kubernetes.io/revision", "2"),
            ("deployment.kubernetes.io/desired-replicas", "4"),
            ("owner", "shop"),
            ("same", "1"),
        ]);
        let changes = annotation_changes(&present, &wanted);
        let expected = [
            ("kubernetes.io/change-cause", Some("two")),
            ("owner", Some("shop")),
            ("team", None),
        ];
        assert_eq!(changes, BTreeMap::from(expected));
        assert_eq!(
            json!(changes),
            json!({"kubernetes.io/change-cause": "two", "owner": "shop", "team": null})
        );
        assert!(annotation_changes(&present, &present).is_empty());
    }
}
