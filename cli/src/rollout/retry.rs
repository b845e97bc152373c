//! `nodewise rollout retry`: deletes the pods that hold up the rollout. Their controller creates them anew.

use std::process::ExitCode;

use anyhow::{Context as _, anyhow, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    api::{DeleteParams, Preconditions},
};
use nodewise_proto::v1;

use super::{args::ChangeArgs, ask::confirm, revisions};
use crate::{
    input::{connect, one_line},
    print,
    text::{PLAIN, Page, REMOVE, count},
    view,
};

pub(super) async fn run(args: &ChangeArgs) -> anyhow::Result<ExitCode> {
    let (cluster, target) = revisions::read(&args.workload).await?;
    let workload = revisions::workload(&cluster, &target, &args.workload)?;
    let status = view::local_status(&cluster, workload).await?;
    let facts = cluster
        .facts
        .as_ref()
        .context("the cluster was read without facts")?;
    let blocking: Vec<&v1::PodStatus> = pods(&status).filter(|pod| is_blocking(pod)).collect();
    if blocking.is_empty() {
        print::text(&format!("{}: no pod holds up the rollout.\n", workload.title()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut page = Page::new(None);
    for pod in &blocking {
        let problem = pod.problem.as_ref().map_or("", |problem| &problem.message);
        page.marked(2, "-", REMOVE, PLAIN, &format!("pod {}: {problem}", pod.pod_name));
    }
    print::text(&page.into_text())?;
    ensure!(
        args.workload.source.files.is_empty(),
        "{}: it was read from a file, which cannot be changed; leave out -f to change the cluster",
        workload.title()
    );
    if !confirm(args, &format!("Delete {}?", count(blocking.len(), "pod")))? {
        print::text("Nothing was changed.\n")?;
        return Ok(ExitCode::FAILURE);
    }
    let source = &args.workload.source;
    let (client, url) = connect(source.kubeconfig.as_deref(), source.context.as_deref()).await?;
    let api: Api<Pod> = Api::namespaced(client, &workload.namespace);
    for pod in &blocking {
        // A new pod of that name stays.
        let uid = facts
            .uid_of_pod(&workload.namespace, &pod.pod_name)
            .context("the pod has no uid")?;
        let params = DeleteParams {
            dry_run: args.dry_run,
            preconditions: Some(Preconditions {
                uid: Some(uid.to_owned()),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        let deleted = api.delete(&pod.pod_name, &params).await;
        deleted.map_err(|error| anyhow!("{url}: pod {}: {}", pod.pod_name, one_line(&error)))?;
    }
    let stored = if args.dry_run {
        "would be deleted"
    } else {
        "deleted"
    };
    print::text(&format!("{} {stored}\n", count(blocking.len(), "pod")))?;
    Ok(ExitCode::SUCCESS)
}

fn pods(status: &v1::WorkloadStatus) -> impl Iterator<Item = &v1::PodStatus> {
    status
        .nodes
        .iter()
        .flat_map(|node| &node.pods)
        .chain(&status.pods)
}

/// Whether a pod of the current revision cannot become ready until someone acts.
fn is_blocking(pod: &v1::PodStatus) -> bool {
    let is_failing = pod.problem.as_ref().is_some_and(|problem| problem.is_failing);
    pod.updated && is_failing && pod.deleted_at.is_none()
}
