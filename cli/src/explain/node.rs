//! Explains a node: its own conditions, what each DaemonSet does on it and why, and the pods of other workloads.

use anyhow::ensure;
use nodewise_proto::{pods::target_node, v1};

use crate::{
    args::{Output, SourceArgs},
    gaps,
    input::Served,
    kind::Kind,
    print,
    refusals::Refusals,
    text::{
        self, Page,
        explain::one_node::{self, Explanation, OnNode, OtherPod},
    },
    view,
};

/// Explains the node of this name. `events` is the cluster whose Events say why a DaemonSet has no pod there.
pub(super) async fn explain(
    source: &view::Source<'_>,
    events: &SourceArgs,
    (name, namespace): (&str, Option<&str>),
    output: Output,
) -> anyhow::Result<String> {
    let cluster = source.cluster;
    let facts = cluster.facts.as_ref().and_then(|facts| facts.node(name));
    let daemon_sets = daemon_sets(source, events, name, namespace).await?;
    let pods = others(source, name, namespace);
    let exists = facts.is_some();
    let has_pods = !pods.is_empty() || daemon_sets.iter().any(|one| !one.status.pods.is_empty());
    ensure!(
        exists || has_pods,
        "{}: no Node {name}, and no pod for it",
        cluster.source()
    );
    let explanation = Explanation {
        node: name,
        exists,
        unschedulable: facts.is_some_and(|facts| facts.unschedulable),
        conditions: facts.map_or(&[][..], |facts| &facts.conditions),
        daemon_sets,
        pods,
    };
    if output == Output::Json {
        return print::json_text(&explanation);
    }
    let mut page = Page::new(text::terminal_width());
    one_node::render(&mut page, &explanation, source.requests.now());
    Ok(page.into_text())
}

/// The DaemonSets on the node, each with what the apiserver said when it refused a pod that is missing.
async fn daemon_sets<'a>(
    source: &view::Source<'a>,
    events: &SourceArgs,
    name: &str,
    namespace: Option<&str>,
) -> anyhow::Result<Vec<OnNode<'a>>> {
    let cluster = source.cluster;
    let mut explained = Vec::new();
    for workload in cluster
        .workloads(Kind::DaemonSet)
        .iter()
        .filter(|one| is_in(one, namespace))
    {
        gaps::refuse(cluster, workload)?;
        let request = source.requests.request_for(workload);
        let explanation = source.engine.explain(&request, Some(name)).await?;
        let plan = source.engine.plan(&request).await?;
        explained.push((workload, explanation, plan));
    }
    let missing = explained
        .iter()
        .filter(|(_, explanation, plan)| nodewise_status::lacks_a_pod(plan, explanation));
    let missing: Vec<&Served> = missing.map(|(workload, ..)| *workload).collect();
    let refusals = if missing.is_empty() {
        Refusals::default()
    } else {
        Refusals::read(events, missing.into_iter()).await
    };
    let mut found = Vec::new();
    for (workload, explanation, plan) in &explained {
        let refusal = refusals.of(&workload.uid);
        let status = source.status_of(workload, refusal, plan, explanation)?;
        let refusal = status.last_refusal;
        found.extend(status.nodes.into_iter().map(|status| {
            OnNode {
                namespace: &workload.namespace,
                name: &workload.name,
                refusal: refusal
                    .clone()
                    .filter(|_| status.state() == v1::NodeState::Missing),
                status,
            }
        }));
    }
    Ok(found)
}

fn is_in(workload: &Served, namespace: Option<&str>) -> bool {
    namespace.is_none_or(|namespace| workload.namespace == namespace)
}

/// The pods on the node that no DaemonSet controls, sorted by namespace, workload and name.
fn others(source: &view::Source<'_>, name: &str, namespace: Option<&str>) -> Vec<OtherPod> {
    let cluster = source.cluster;
    let mut found = Vec::new();
    for (of, pods) in &cluster.pods {
        if namespace.is_some_and(|namespace| namespace != of) {
            continue;
        }
        for pod in pods
            .iter()
            .map(|pod| &pod.object)
            .filter(|pod| target_node(pod) == name)
        {
            let owner = cluster.controller_of(of, pod);
            if owner.is_some_and(|owner| owner.kind == Kind::DaemonSet) {
                continue;
            }
            let workload = match (owner, &pod.controller) {
                (Some(owner), _) => {
                    let controller = owner.controller.as_deref();
                    let top = controller.and_then(|uid| cluster.workload_of_uid(of, uid));
                    let top = top.unwrap_or(owner);
                    format!("{} {}", top.kind.name(), top.name)
                }
                (None, Some(controller)) => format!("{} {}", controller.kind, controller.name),
                (None, None) => String::new(),
            };
            found.extend(source.pod_status(pod, owner).map(|status| OtherPod {
                namespace: of.clone(),
                workload,
                status,
            }));
        }
    }
    found.sort_by(|a, b| {
        let key = |pod: &OtherPod| {
            (
                pod.namespace.clone(),
                pod.workload.clone(),
                pod.status.pod_name.clone(),
            )
        };
        key(a).cmp(&key(b))
    });
    found
}
