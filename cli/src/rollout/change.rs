//! `nodewise rollout undo|pause|resume|restart`: one patch of the workload.

use anyhow::{Context as _, ensure};
use jiff::{Timestamp, Unit};
use serde_json::{Value, json};

use super::{
    diff,
    proposal::{Proposal, Proposed, named},
    revisions::History,
};
use crate::{
    input::{Cluster, Served},
    kind::Kind,
    text::{PLAIN, Page},
};

/// The annotation by which kubectl restarts a workload.
const RESTARTED: &str = "kubectl.kubernetes.io/restartedAt";

/// Goes back to an earlier revision: by default to the newest one that the workload does not have now.
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
    let patch = json!({ "spec": { "template": template } });
    Ok(Proposed::Change(Proposal::patch(
        workload, page, &command, question, patch,
    )))
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
