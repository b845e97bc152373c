//! Explains a ReplicaSet pod by pod, and a Deployment ReplicaSet by ReplicaSet.

use anyhow::Context as _;
use nodewise_proto::v1;
use nodewise_status::TemplateFacts;
use serde::Serialize;

use super::{Case, warnings::Warnings};
use crate::{
    args::Output,
    causes::{self, Cause},
    gaps,
    input::Served,
    kind::Kind,
    print,
    request::WorkloadRequest,
    text::{
        Page,
        explain::replicas::{DeploymentText, ReplicaSetText, SetText},
    },
};

/// The JSON output.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Explanation<'a> {
    kind: &'static str,
    namespace: &'a str,
    name: &'a str,
    workload: &'a v1::WorkloadExplanation,
    causes: &'a [Cause],
    #[serde(skip_serializing_if = "Option::is_none")]
    images: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replica_sets: Option<Vec<SetElement<'a>>>,
    /// The warnings of the plan.
    #[serde(flatten)]
    warnings: &'a Warnings,
}

/// A ReplicaSet of a Deployment in the JSON output.
#[derive(Serialize)]
struct SetElement<'a> {
    name: &'a str,
    images: &'a [String],
    /// The explanation of the ReplicaSet, if it has pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    workload: Option<&'a v1::WorkloadExplanation>,
}

/// A ReplicaSet, with its own explanation if it has pods.
struct Set<'a> {
    served: &'a Served,
    facts: TemplateFacts,
    explanation: Option<v1::WorkloadExplanation>,
}

impl Set<'_> {
    fn element(&self) -> SetElement<'_> {
        SetElement {
            name: &self.served.name,
            images: &self.facts.images,
            workload: self.explanation.as_ref(),
        }
    }

    fn text(&self) -> SetText<'_> {
        SetText {
            name: &self.served.name,
            facts: &self.facts,
            explanation: self.explanation.as_ref(),
        }
    }
}

async fn workload_explanation(
    case: &Case<'_>,
    request: &WorkloadRequest<'_>,
) -> anyhow::Result<v1::WorkloadExplanation> {
    let answer = case.engine.explain(request, None).await?;
    answer
        .workload
        .with_context(|| format!("the service's answer has no explanation of {}", request.title()))
}

pub(super) async fn explain_replica_set(case: &Case<'_>, output: Output) -> anyhow::Result<String> {
    let set = case.workload;
    let request = case.requests.request_for(set);
    let explanation = workload_explanation(case, &request).await?;
    let plan = case.engine.plan(&request).await?;
    let facts = TemplateFacts::of_replica_set(set.json.get());
    let status = match &plan.status {
        Some(v1::plan::Status::ReplicaSetStatus(status)) => status.clone(),
        _ => v1::ReplicaSetStatus::default(),
    };
    let counts = (status.ready_replicas, status.available_replicas);
    let causes = causes::of(case.cluster, set, &facts, counts, case.requests.now());
    let warnings = Warnings::of(plan);
    if output == Output::Json {
        return print::json_text(&Explanation {
            kind: set.kind.name(),
            namespace: &set.namespace,
            name: &set.name,
            workload: &explanation,
            causes: &causes,
            images: Some(&facts.images),
            replica_sets: None,
            warnings: &warnings,
        });
    }
    let mut page = Page::new(case.width);
    ReplicaSetText {
        title: request.title(),
        explanation: &explanation,
        status: &status,
        causes: &causes,
        facts: &facts,
    }
    .render(&mut page);
    warnings.render(&mut page);
    case.render_second_owner(&mut page);
    Ok(page.into_text())
}

pub(super) async fn explain_deployment(case: &Case<'_>, output: Output) -> anyhow::Result<String> {
    let deployment = case.workload;
    if let Some(note) = gaps::note_without_pods(case.cluster, deployment) {
        print::note(&note);
    }
    let request = case.requests.request_for(deployment);
    let explanation = workload_explanation(case, &request).await?;
    let warnings = Warnings::of(case.engine.plan(&request).await?);
    let mut sets = Vec::with_capacity(explanation.replica_sets.len());
    let mut causes = Vec::from_iter(causes::of_creation(deployment));
    for counts in &explanation.replica_sets {
        let Some(set) = explained_set(case, &counts.name).await? else {
            continue;
        };
        let of_pods = (counts.ready, counts.available);
        causes.extend(causes::of(
            case.cluster,
            set.served,
            &set.facts,
            of_pods,
            case.requests.now(),
        ));
        sets.push(set);
    }
    if output == Output::Json {
        return print::json_text(&Explanation {
            kind: deployment.kind.name(),
            namespace: &deployment.namespace,
            name: &deployment.name,
            workload: &explanation,
            causes: &causes,
            images: None,
            replica_sets: Some(sets.iter().map(Set::element).collect()),
            warnings: &warnings,
        });
    }
    let mut page = Page::new(case.width);
    DeploymentText {
        title: request.title(),
        explanation: &explanation,
        causes: &causes,
        sets: sets.iter().map(Set::text).collect(),
    }
    .render(&mut page);
    warnings.render(&mut page);
    case.render_second_owner(&mut page);
    Ok(page.into_text())
}

/// A ReplicaSet of the Deployment.
async fn explained_set<'a>(case: &Case<'a>, name: &str) -> anyhow::Result<Option<Set<'a>>> {
    let deployment = case.workload;
    let mut all = case.cluster.workloads_in(Kind::ReplicaSet, &deployment.namespace);
    let Some(served) = all.find(|set| set.name == name) else {
        return Ok(None);
    };
    let pods = case.cluster.pods_in(&served.namespace);
    let has_pods = pods.iter().any(|pod| {
        let owner = pod.object.controller.as_ref();
        owner.is_some_and(|owner| owner.uid == served.uid)
    });
    let explanation = if has_pods {
        let request = case.requests.request_for(served);
        Some(workload_explanation(case, &request).await?)
    } else {
        None
    };
    Ok(Some(Set {
        served,
        facts: TemplateFacts::of_replica_set(served.json.get()),
        explanation,
    }))
}
