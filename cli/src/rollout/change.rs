//! `nodewise rollout undo|pause|resume|restart`: one patch of the workload, after a question.

use std::process::ExitCode;

use anyhow::{Context as _, anyhow, ensure};
use jiff::{Timestamp, Unit};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use super::{
    args::{ChangeArgs, UndoArgs},
    ask::confirm,
    diff,
    revisions::{self, History},
};
use crate::{
    input::{Served, connect, one_line},
    kind::Kind,
    print,
    text::{DIM, PLAIN, Page},
};

/// The field manager of the patches.
const MANAGER: &str = "nodewise";
/// The annotation by which kubectl restarts a workload.
const RESTARTED: &str = "kubectl.kubernetes.io/restartedAt";

/// Goes back to an earlier revision.
pub(super) async fn undo(args: &UndoArgs) -> anyhow::Result<ExitCode> {
    let (cluster, target) = revisions::read(&args.change.workload).await?;
    let workload = revisions::workload(&cluster, &target, &args.change.workload)?;
    let history = History::of(&cluster, workload)?;
    let title = workload.title();
    ensure!(
        history.object["spec"]["paused"] != json!(true),
        "{title}: spec.paused is true, so its controller would not go back; run `nodewise rollout resume` first"
    );
    let revision = history.find(args.to_revision)?;
    let number = revision.number;
    let mut page = Page::new(None);
    page.line(
        0,
        PLAIN,
        &format!("{title}: back to revision {number} ({})", revision.name),
    );
    if !diff::render(&mut page, &history.present(), &revision.template)? {
        page.line(0, PLAIN, "Nothing to do.");
        print::text(&page.into_text())?;
        return Ok(ExitCode::SUCCESS);
    }
    let command = format!("kubectl rollout undo {} --to-revision={number}", named(workload));
    page.marked(0, "$", DIM, DIM, &command);
    print::text(&page.into_text())?;
    let mut template = revision.template.clone();
    template["$patch"] = json!("replace");
    let patch = json!({ "spec": { "template": template } });
    apply(
        &args.change,
        workload,
        patch,
        &format!("Go back to revision {number}?"),
    )
    .await
}

/// Pauses or resumes a Deployment.
pub(super) async fn pause(args: &ChangeArgs, paused: bool) -> anyhow::Result<ExitCode> {
    let (cluster, target) = revisions::read(&args.workload).await?;
    let workload = revisions::workload(&cluster, &target, &args.workload)?;
    let title = workload.title();
    ensure!(
        workload.kind == Kind::Deployment,
        "{title}: Kubernetes can pause only Deployments; a {} has no field for it",
        workload.kind.name()
    );
    let object: Value =
        serde_json::from_str(workload.json.get()).context("the Deployment is not valid JSON")?;
    let (verb, done) = if paused {
        ("pause", "paused")
    } else {
        ("resume", "not paused")
    };
    if object["spec"]["paused"].as_bool().unwrap_or_default() == paused {
        print::text(&format!("{title} is {done} already.\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    print::text(&format!("$ kubectl rollout {verb} {}\n", named(workload)))?;
    let patch = json!({ "spec": { "paused": paused } });
    apply(args, workload, patch, &format!("Do you want to {verb} {title}?")).await
}

/// Replaces all pods, as `kubectl rollout restart` does.
pub(super) async fn restart(args: &ChangeArgs) -> anyhow::Result<ExitCode> {
    let (cluster, target) = revisions::read(&args.workload).await?;
    let workload = revisions::workload(&cluster, &target, &args.workload)?;
    let title = workload.title();
    ensure!(
        workload.kind != Kind::ReplicaSet,
        "{title}: a ReplicaSet does not replace its pods; expected a DaemonSet or Deployment"
    );
    let now = Timestamp::now().round(Unit::Second)?.to_string();
    let annotations = json!({ "annotations": { RESTARTED: now } });
    let patch = json!({ "spec": { "template": { "metadata": annotations } } });
    print::text(&format!("$ kubectl rollout restart {}\n", named(workload)))?;
    apply(args, workload, patch, &format!("Replace all pods of {title}?")).await
}

/// `daemonset/agent -n logging`.
fn named(workload: &Served) -> String {
    let kind = workload.kind.name().to_ascii_lowercase();
    format!("{kind}/{} -n {}", workload.name, workload.namespace)
}

/// Asks, and patches the workload. The apiserver refuses the patch if another workload has that name by now.
async fn apply(
    args: &ChangeArgs,
    workload: &Served,
    mut patch: Value,
    question: &str,
) -> anyhow::Result<ExitCode> {
    let title = workload.title();
    let source = &args.workload.source;
    ensure!(
        source.files.is_empty(),
        "{title}: it was read from a file, which cannot be changed; leave out -f to change the cluster"
    );
    if !confirm(args, question)? {
        print::text("Nothing was changed.\n")?;
        return Ok(ExitCode::FAILURE);
    }
    let (client, url) = connect(source.kubeconfig.as_deref(), source.context.as_deref()).await?;
    patch["metadata"]["uid"] = json!(workload.uid);
    let params = PatchParams {
        dry_run: args.dry_run,
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let (api, patch) = (api(client, workload), Patch::Strategic(patch));
    let patched = api.patch(&workload.name, &params, &patch).await;
    let patched = patched.map_err(|error| anyhow!("{url}: {title}: {}", one_line(&error)))?;
    let stored = if args.dry_run {
        "accepted (dry run)"
    } else {
        "changed"
    };
    let generation = patched.metadata.generation.unwrap_or_default();
    print::text(&format!("{title}: {stored}; generation {generation}\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn api(client: Client, workload: &Served) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk("apps", "v1", workload.kind.name());
    let resource = ApiResource::from_gvk_with_plural(&gvk, workload.kind.plural());
    Api::namespaced_with(client, &workload.namespace, &resource)
}
