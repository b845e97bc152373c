//! Which nodes get a pod, and how many pods are created at a time.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;
use kube::{Api, api::DeleteParams};
use nodewise_proto::v1::{Plan, action::Kind};
use nodewise_testbed::AuditEvent;
use serde_json::json;

use crate::{
    audit::AuditPosition,
    budget::node_of,
    case::{Case, shared},
    cluster::EXECUTOR_USER,
    fixture::Fixture,
    proxy::Mark,
    workload_builder::{daemon_set, image_patch},
};

pub(super) const CASES: &[Case] = &[
    shared!(
        "create-one-pod-per-node",
        "Each node gets exactly one pod, the scheduler binds the pods, and no request is forbidden.",
        create_one_pod_per_node
    ),
    shared!(
        "slow-start-batches",
        "The batches of a plan are applied in order. Each batch is complete before the next one starts.",
        slow_start_batches
    ),
    shared!(
        "writes-are-planned",
        "The executor only creates and deletes pods, and creates revisions, that a plan named.",
        writes_are_planned
    ),
    shared!(
        "follow-taints-and-labels",
        "Pods follow the labels and taints of nodes. With NoSchedule a running pod stays and counts as misscheduled.",
        follow_taints_and_labels
    ),
    shared!(
        "follow-nodes",
        "A deleted node no longer counts, and a new node gets a pod.",
        follow_nodes
    ),
];

// D-69, D-108
async fn create_one_pod_per_node(fixture: &Fixture) -> Result<()> {
    let nodes = 50;
    let watch = fixture.watch("agent");
    fixture.start_agent(nodes).await?;
    let status = fixture.wait_for_rollout("agent").await?;
    ensure!(
        status.desired_number_scheduled == i32::try_from(nodes)? && status.number_misscheduled == 0,
        "{status:?}"
    );
    fixture.expect_one_pod_per_node("agent").await?;
    let seen = watch.seen().await?;
    ensure!(
        seen.created.len() == nodes,
        "{} pods were made",
        seen.created.len()
    );
    seen.expect_no_doubles()?;
    let bound = fixture
        .audited(AuditPosition::BEGINNING, |event| {
            event.subresource == "binding" && event.code == 201
        })
        .await?;
    ensure!(
        bound.len() == nodes && bound.iter().all(|event| event.user == "system:kube-scheduler"),
        "{} pods were bound, not all by the scheduler",
        bound.len()
    );
    expect_nothing_forbidden(fixture).await
}

/// Fails if a request of the executor in this namespace was forbidden.
pub(super) async fn expect_nothing_forbidden(fixture: &Fixture) -> Result<()> {
    let refused = fixture
        .audited(AuditPosition::BEGINNING, |event| {
            event.user == EXECUTOR_USER && event.code == 403
        })
        .await?;
    ensure!(refused.is_empty(), "a right is missing: {refused:?}");
    Ok(())
}

/// The tolerance for the order of audit timestamps: the apiserver may read the clock shortly after it has sent a
/// response.
const AFTER_THE_ANSWER: SignedDuration = SignedDuration::from_millis(2);

// D-77, D-78: the planner decides the sizes of the batches, the executor keeps their order.
async fn slow_start_batches(fixture: &Fixture) -> Result<()> {
    fixture.start_agent(31).await?;
    expect_batches_in_order(fixture, "agent").await
}

/// Fails unless each batch of pods of the workload was complete before the next one began.
pub(super) async fn expect_batches_in_order(fixture: &Fixture, name: &str) -> Result<()> {
    let creates = fixture
        .audited(AuditPosition::BEGINNING, is_create_of("pods"))
        .await?;
    let when: BTreeMap<&str, (Timestamp, Timestamp)> = creates
        .iter()
        .map(|event| (event.name.as_str(), (event.received, event.answered)))
        .collect();
    let mut compared = 0;
    for plan in fixture.plans(Mark::BEGINNING, name) {
        let batches = batches(&plan);
        for pair in batches.windows(2) {
            let of = |names: &Vec<String>| -> Vec<(Timestamp, Timestamp)> {
                names
                    .iter()
                    .filter_map(|name| when.get(name.as_str()).copied())
                    .collect()
            };
            let (earlier, later) = (of(&pair[0]), of(&pair[1]));
            let ended = earlier.iter().map(|(_, answered)| *answered).max();
            let began = later.iter().map(|(received, _)| *received).min();
            if let (Some(ended), Some(began)) = (ended, began) {
                compared += 1;
                ensure!(
                    began + AFTER_THE_ANSWER >= ended,
                    "a batch of {} pods began at {began}, and the one of {} before it ended at {ended}",
                    later.len(),
                    earlier.len()
                );
            }
        }
    }
    ensure!(compared >= 3, "only {compared} batches came after another one");
    Ok(())
}

/// The names of the pods that each batch of a plan creates.
fn batches(plan: &Plan) -> Vec<Vec<String>> {
    let batches = plan.phases.iter().flat_map(|phase| &phase.batches);
    let names = batches.map(|batch| {
        let kinds = batch.actions.iter().filter_map(|action| action.kind.as_ref());
        kinds
            .filter_map(|kind| match kind {
                Kind::CreatePod(create) => Some(create.pod_name.clone()),
                _ => None,
            })
            .collect()
    });
    names.filter(|batch: &Vec<String>| !batch.is_empty()).collect()
}

fn is_create_of(resource: &'static str) -> impl Fn(&AuditEvent) -> bool {
    move |event| {
        event.user == EXECUTOR_USER
            && event.verb == "create"
            && event.resource == resource
            && event.subresource.is_empty()
    }
}

async fn writes_are_planned(fixture: &Fixture) -> Result<()> {
    fixture
        .start_as(6, daemon_set("agent").max_unavailable(2))
        .await?;
    fixture.patch("agent", image_patch(2)).await?;
    fixture.wait_until_settled("agent").await?;
    let plans = fixture.plans(Mark::BEGINNING, "agent");
    let actions = plans.iter().flat_map(nodewise_proto::v1::Plan::actions);
    let mut planned = BTreeSet::new();
    for kind in actions.filter_map(|action| action.kind.clone()) {
        match kind {
            Kind::CreatePod(create) => planned.insert(("create", "pods", create.pod_name)),
            Kind::CreateRevision(create) => planned.insert(("create", "controllerrevisions", create.name)),
            Kind::DeletePod(delete) => {
                planned.insert(("delete", "pods", delete.pod.unwrap_or_default().name))
            }
            _ => false,
        };
    }
    let writes = fixture.writes().await?;
    let mut held = 0;
    for event in writes.iter().filter(|event| event.subresource.is_empty()) {
        let kind = (event.verb.as_str(), event.resource.as_str());
        if matches!(
            kind,
            ("create", "pods" | "controllerrevisions") | ("delete" | "deletecollection", "pods")
        ) {
            held += 1;
            let of_a_plan = planned
                .iter()
                .any(|(verb, resource, name)| (*verb, *resource, name) == (kind.0, kind.1, &event.name));
            ensure!(of_a_plan, "no plan named this: {event:?}");
        }
    }
    ensure!(held >= 6 + 6 + 6 + 2, "only {held} writes");
    Ok(())
}

/// Waits until the live pods are on exactly these nodes.
async fn wait_until_pods_are_on(fixture: &Fixture, expected: &[&str]) -> Result<()> {
    fixture
        .eventually(format!("pods exactly on {expected:?}"), async || {
            let mut nodes: Vec<String> = fixture.live_pods("agent").await?.iter().map(node_of).collect();
            nodes.sort();
            ensure!(nodes == expected, "they are on {nodes:?}");
            Ok(())
        })
        .await
}

// D-20, D-84
async fn follow_taints_and_labels(fixture: &Fixture) -> Result<()> {
    let names = fixture.add_nodes(4).await?;
    let [a, b, c, d] = [&names[0], &names[1], &names[2], &names[3]].map(String::as_str);
    let label = |value: Option<&str>| json!({ "metadata": { "labels": { "agent": value } } });
    for node in [a, b, c] {
        fixture.patch_node(node, label(Some("yes"))).await?;
    }
    let selector = json!({ "agent": "yes" });
    let agent = daemon_set("agent").set("/spec/template/spec", "nodeSelector", selector);
    fixture.create(agent.build()).await?;
    wait_until_pods_are_on(fixture, &[a, b, c]).await?;

    fixture.patch_node(d, label(Some("yes"))).await?;
    wait_until_pods_are_on(fixture, &[a, b, c, d]).await?;

    fixture.patch_node(a, label(None)).await?;
    wait_until_pods_are_on(fixture, &[b, c, d]).await?;

    let taint =
        |effect: &str| json!({ "spec": { "taints": [{ "key": "k", "value": "v", "effect": effect }] } });
    fixture.patch_node(b, taint("NoExecute")).await?;
    wait_until_pods_are_on(fixture, &[c, d]).await?;

    fixture.patch_node(c, taint("NoSchedule")).await?;
    fixture
        .eventually("the tainted node to be counted as misscheduled", async || {
            let status = fixture.status("agent").await?;
            ensure!(
                status.number_misscheduled == 1 && status.desired_number_scheduled == 1,
                "{status:?}"
            );
            Ok(())
        })
        .await?;
    wait_until_pods_are_on(fixture, &[c, d]).await?;

    fixture
        .patch_node(b, json!({ "spec": { "taints": null } }))
        .await?;
    wait_until_pods_are_on(fixture, &[b, c, d]).await
}

// D-36, D-83, Q-19
async fn follow_nodes(fixture: &Fixture) -> Result<()> {
    fixture.start_agent(3).await?;
    let gone = fixture.node_names().await?.remove(1);
    let nodes: Api<Node> = Api::all(fixture.client());
    nodes.delete(&gone, &DeleteParams::default()).await?;
    fixture
        .eventually("a status without the deleted node", async || {
            let status = fixture.status("agent").await?;
            ensure!(
                status.desired_number_scheduled == 2 && status.current_number_scheduled == 2,
                "{status:?}"
            );
            Ok(())
        })
        .await?;
    fixture.add_nodes(2).await?;
    fixture
        .eventually("a pod on each of four nodes", async || {
            let status = fixture.observed_status("agent").await?;
            ensure!(status.number_available == Some(4), "{status:?}");
            // The pod garbage collector deletes the pod of the deleted node later.
            let mut on: Vec<String> = fixture.live_pods("agent").await?.iter().map(node_of).collect();
            on.retain(|node| *node != gone);
            on.sort();
            let nodes = fixture.node_names().await?;
            ensure!(on == nodes, "pods are on {on:?} of {nodes:?}");
            Ok(())
        })
        .await
}
