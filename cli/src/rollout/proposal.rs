//! A change of the cluster that someone has to agree to. The commands ask for it in a line, the live view in a window.

use std::process::ExitCode;

use anyhow::{anyhow, bail, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions},
    core::GroupVersionKind,
};
use nodewise_proto::v1;
use nodewise_telemetry::printable;
use serde_json::{Value, json};

use super::{args::ChangeArgs, ask::confirm, quote::word};
use crate::{
    input::{Served, connect, one_line},
    kind::Kind,
    print,
    text::{DIM, Page, count},
};

/// The field manager of the patches.
const MANAGER: &str = "nodewise";

/// What a command or a key would do.
pub(super) enum Proposed {
    Change(Proposal),
    /// One sentence: why there is nothing to do.
    Nothing(String),
}

/// One change of a workload or of its pods.
pub(super) struct Proposal {
    kind: Kind,
    namespace: String,
    name: String,
    /// What changes, with styles. Its last line is kubectl's command.
    pub(super) text: String,
    pub(super) question: String,
    /// The digest that it approves: it must not be written once the rollout waits for another one.
    pub(super) approves: Option<String>,
    writes: Writes,
}

enum Writes {
    /// A patch of the workload or of its policy.
    Patch(Value),
    /// A patch of the status of the policy.
    PatchStatus(Value),
    /// Pods to delete.
    Delete(Vec<PodName>),
}

/// A pod with its uid, so that a new pod of that name stays.
pub(super) struct PodName {
    pub(super) name: String,
    pub(super) uid: String,
}

/// `daemonset/agent -n logging`.
pub(super) fn named(workload: &Served) -> String {
    let kind = workload.kind.name().to_ascii_lowercase();
    format!("{kind}/{} -n {}", word(&workload.name), word(&workload.namespace))
}

impl Proposal {
    /// A patch of a workload. `page` says what changes, `command` is what does the same with kubectl.
    pub(super) fn patch(
        workload: &Served,
        page: Page,
        command: &str,
        question: String,
        mut patch: Value,
    ) -> Self {
        // The apiserver refuses the patch if another workload has that name by now.
        patch["metadata"]["uid"] = json!(workload.uid);
        Self::new(workload, page, command, question, Writes::Patch(patch))
    }

    /// A patch of the policy in charge of a workload. `page` says what changes, `command` is what does the same with kubectl.
    pub(super) fn patch_policy(
        workload: &Served,
        policy: &v1::PolicyRollout,
        page: Page,
        command: &str,
        question: String,
        mut patch: Value,
    ) -> Self {
        patch["metadata"]["uid"] = json!(policy.uid);
        let of_workload = Self::new(workload, page, command, question, Writes::Patch(patch));
        Self {
            kind: Kind::RolloutPolicy,
            name: policy.name.clone(),
            ..of_workload
        }
    }

    /// The same patch, of the status. Without the right to it the policy can still be changed.
    pub(super) fn of_status(self) -> Self {
        let writes = match self.writes {
            Writes::Patch(patch) => Writes::PatchStatus(patch),
            other => other,
        };
        Self { writes, ..self }
    }

    /// Deletes of pods of a workload.
    pub(super) fn delete(workload: &Served, page: Page, pods: Vec<PodName>) -> Self {
        let names: Vec<String> = pods.iter().map(|pod| word(&pod.name)).collect();
        let command = format!(
            "kubectl delete pod -n {} {}",
            word(&workload.namespace),
            names.join(" ")
        );
        let question = format!("Delete {}?", count(pods.len(), "pod"));
        Self::new(workload, page, &command, question, Writes::Delete(pods))
    }

    fn new(workload: &Served, mut page: Page, command: &str, question: String, writes: Writes) -> Self {
        page.marked(0, "$", DIM, DIM, command);
        Self {
            kind: workload.kind,
            namespace: workload.namespace.clone(),
            name: workload.name.clone(),
            text: page.into_text(),
            question,
            approves: None,
            writes,
        }
    }

    /// Writes to the cluster, and says what was written.
    ///
    /// # Errors
    /// The apiserver refuses a write. The writes before it are done.
    pub(super) async fn carry_out(
        &self,
        client: &Client,
        url: &str,
        dry_run: bool,
    ) -> anyhow::Result<String> {
        match &self.writes {
            Writes::Patch(patch) => self.apply(patch, false, client, url, dry_run).await,
            Writes::PatchStatus(patch) => self.apply(patch, true, client, url, dry_run).await,
            Writes::Delete(pods) => self.delete_all(pods, client, url, dry_run).await,
        }
    }

    async fn apply(
        &self,
        patch: &Value,
        of_status: bool,
        client: &Client,
        url: &str,
        dry_run: bool,
    ) -> anyhow::Result<String> {
        let params = PatchParams {
            dry_run,
            field_manager: Some(MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let (group, version) = self.kind.api_version().split_once('/').unwrap_or_default();
        let gvk = GroupVersionKind::gvk(group, version, self.kind.name());
        let resource = ApiResource::from_gvk_with_plural(&gvk, self.kind.plural());
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &self.namespace, &resource);
        let title = format!("{} {}/{}", self.kind.name(), self.namespace, self.name);
        // The apiserver knows the strategy of its own kinds only.
        let patch = if self.kind.is_workload() {
            Patch::Strategic(patch)
        } else {
            Patch::Merge(patch)
        };
        let patched = if of_status {
            api.patch_status(&self.name, &params, &patch).await
        } else {
            api.patch(&self.name, &params, &patch).await
        };
        let patched = patched.map_err(|error| anyhow!("{url}: {title}: {}", one_line(&error)))?;
        let stored = if dry_run { "accepted (dry run)" } else { "changed" };
        let generation = patched.metadata.generation.unwrap_or_default();
        Ok(format!("{title}: {stored}; generation {generation}"))
    }

    async fn delete_all(
        &self,
        pods: &[PodName],
        client: &Client,
        url: &str,
        dry_run: bool,
    ) -> anyhow::Result<String> {
        let api: Api<Pod> = Api::namespaced(client.clone(), &self.namespace);
        let mut gone = 0;
        for pod in pods {
            let params = DeleteParams {
                dry_run,
                preconditions: Some(Preconditions {
                    uid: Some(pod.uid.clone()),
                    resource_version: None,
                }),
                ..DeleteParams::default()
            };
            match api.delete(&pod.name, &params).await {
                Ok(_) => {}
                // It is gone, or a new pod has its name.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => gone += 1,
                Err(error) => bail!("{url}: pod {}: {}", pod.name, one_line(&error)),
            }
        }
        let stored = if dry_run { "would be deleted" } else { "deleted" };
        let deleted = format!("{} {stored}", count(pods.len() - gone, "pod"));
        Ok(match gone {
            0 => deleted,
            gone => format!("{deleted}; {gone} had gone already"),
        })
    }
}

/// Shows a proposal, asks, and carries it out.
pub(super) async fn settle(
    args: &ChangeArgs,
    workload: &Served,
    proposed: Proposed,
) -> anyhow::Result<ExitCode> {
    let proposal = match proposed {
        Proposed::Change(proposal) => proposal,
        Proposed::Nothing(sentence) => {
            print::text(&format!("{}\n", printable(&sentence)))?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    if !agreed(args, workload, &proposal)? {
        return Ok(ExitCode::FAILURE);
    }
    write(args, &proposal).await
}

/// Shows a proposal and asks. Says so if the answer is no.
pub(super) fn agreed(args: &ChangeArgs, workload: &Served, proposal: &Proposal) -> anyhow::Result<bool> {
    print::text(&proposal.text)?;
    ensure!(
        args.workload.source.files.is_empty(),
        "{}: it was read from a file, which cannot be changed; leave out -f to change the cluster",
        workload.title()
    );
    let agreed = confirm(args, &proposal.question)?;
    if !agreed {
        print::text("Nothing was changed.\n")?;
    }
    Ok(agreed)
}

/// Carries out a proposal that someone has agreed to.
pub(super) async fn write(args: &ChangeArgs, proposal: &Proposal) -> anyhow::Result<ExitCode> {
    let source = &args.workload.source;
    let (client, url) = connect(source.kubeconfig.as_deref(), source.context.as_deref()).await?;
    let written = proposal.carry_out(&client, &url, args.dry_run).await?;
    print::text(&format!("{}\n", printable(&written)))?;
    Ok(ExitCode::SUCCESS)
}
