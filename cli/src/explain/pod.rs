//! Explains a pod: its own state, and what the controller of its workload decides about it.

use anyhow::bail;
use nodewise_proto::{pods::target_node, v1};
use serde::Serialize;

use super::{Case, explain as explain_workload};
use crate::{
    args::Output,
    input::{Projected, Served},
    kind::Kind,
    print,
    text::{self, Page, explain::one_pod},
    view,
};

/// The JSON output.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Explanation<'a> {
    namespace: &'a str,
    pod: Option<&'a v1::PodStatus>,
    /// The workload that controls it. Absent if that is none that is explained.
    #[serde(skip_serializing_if = "Option::is_none")]
    workload: Option<Workload<'a>>,
    /// Of a DaemonSet: what is decided about the pod's node.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'a v1::NodeExplanation>,
    /// Of a ReplicaSet: what is decided about the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    replica: Option<&'a v1::ReplicaExplanation>,
}

#[derive(Serialize)]
struct Workload<'a> {
    kind: &'static str,
    name: &'a str,
}

/// Explains the pod of this name.
pub(super) async fn explain(
    source: &view::Source<'_>,
    name: &str,
    namespace: Option<&str>,
    output: Output,
) -> anyhow::Result<String> {
    let (namespace, pod) = find(source, name, namespace)?;
    let owner = source.cluster.controller_of(namespace, &pod.object);
    let known = source.pod_status(&pod.object, owner);
    let Some(owner) = owner else {
        let controller = pod.object.controller.as_ref();
        if output == Output::Json {
            return print::json_text(&Explanation {
                namespace,
                pod: known.as_ref(),
                workload: None,
                node: None,
                replica: None,
            });
        }
        let mut page = Page::new(text::terminal_width());
        one_pod::render(&mut page, namespace, name, known.as_ref(), source.requests.now());
        one_pod::render_without_workload(&mut page, controller);
        return Ok(page.into_text());
    };
    let case = Case {
        cluster: source.cluster,
        workload: owner,
        requests: source.requests,
        engine: source.engine,
        width: text::terminal_width(),
    };
    let node = target_node(&pod.object);
    let node = (owner.kind == Kind::DaemonSet && !node.is_empty()).then_some(node);
    let request = source.requests.request_for(owner);
    let explanation = source.engine.explain(&request, node).await?;
    let top = top(source, owner);
    let (updated, available) = match of_node(&explanation, name) {
        Some(explained) => (explained.updated, Some(explained.available)),
        None => (is_updated(source, owner, top).await?, None),
    };
    let status = known.map(|known| v1::PodStatus {
        updated,
        available: available.unwrap_or(known.available),
        ..known
    });
    let replicas = explanation.workload.iter().flat_map(|workload| &workload.pods);
    let replica = replicas.into_iter().find(|replica| replica.pod_name == name);
    let about_node = node.and_then(|_| explanation.nodes.first());
    if output == Output::Json {
        return print::json_text(&Explanation {
            namespace,
            pod: status.as_ref(),
            workload: Some(Workload {
                kind: owner.kind.name(),
                name: &owner.name,
            }),
            node: about_node,
            replica,
        });
    }
    let mut page = Page::new(text::terminal_width());
    one_pod::render(&mut page, namespace, name, status.as_ref(), source.requests.now());
    one_pod::render_workload(&mut page, &owner.title(), replica);
    page.blank();
    let of_workload = explain_workload(
        &Case {
            workload: top,
            ..case
        },
        node,
        output,
    )
    .await?;
    Ok(page.into_text() + &of_workload)
}

/// What the explanation of a DaemonSet says about a pod.
fn of_node<'a>(explanation: &'a v1::ExplainResponse, name: &str) -> Option<&'a v1::PodExplanation> {
    let mut pods = explanation.nodes.iter().flat_map(|node| &node.pods);
    pods.find(|pod| pod.pod_name == name)
}

/// Whether a ReplicaSet has the template of its Deployment. One without a Deployment has its own.
async fn is_updated(source: &view::Source<'_>, set: &Served, top: &Served) -> anyhow::Result<bool> {
    if top.kind != Kind::Deployment {
        return Ok(set.kind == Kind::ReplicaSet);
    }
    let request = source.requests.request_for(top);
    let explanation = source.engine.explain(&request, None).await?;
    let mut sets = explanation
        .workload
        .iter()
        .flat_map(|workload| &workload.replica_sets);
    Ok(sets.any(|one| one.name == set.name && one.is_new))
}

/// The workload itself, or the Deployment of a ReplicaSet.
fn top<'a>(source: &view::Source<'a>, owner: &'a Served) -> &'a Served {
    let controller = owner.controller.as_deref();
    controller
        .and_then(|uid| source.cluster.workload_of_uid(&owner.namespace, uid))
        .unwrap_or(owner)
}

/// The only pod of this name, with its namespace.
fn find<'a>(
    source: &view::Source<'a>,
    name: &str,
    namespace: Option<&str>,
) -> anyhow::Result<(&'a str, &'a Projected<v1::Pod>)> {
    let cluster = source.cluster;
    let mut found: Vec<(&str, &Projected<v1::Pod>)> = Vec::new();
    for (of, pods) in &cluster.pods {
        if namespace.is_none_or(|namespace| namespace == of) {
            found.extend(
                pods.iter()
                    .filter(|pod| pod.object.name == name)
                    .map(|pod| (&**of, pod)),
            );
        }
    }
    found.sort_unstable_by_key(|(namespace, _)| *namespace);
    let from = cluster.source();
    match found.as_slice() {
        [one] => Ok(*one),
        [] => {
            let in_namespace = namespace.map(|namespace| format!(" in namespace {namespace}"));
            bail!("{from}: no Pod {name}{}", in_namespace.unwrap_or_default())
        }
        several => {
            let namespaces: Vec<&str> = several.iter().map(|(namespace, _)| *namespace).collect();
            bail!(
                "{from}: Pod {name} is in several namespaces: choose with -n {}",
                namespaces.join(" or -n ")
            )
        }
    }
}
