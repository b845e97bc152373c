//! Pod names: of replacements, and names that other pods already have.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use k8s_openapi::api::{
    apps::v1::DaemonSet,
    core::v1::{ConfigMap, Pod},
};
use kube::{
    ResourceExt as _,
    api::{DeleteParams, PostParams},
};
use nodewise_proto::v1::{self, Plan, action::Kind, reconcile_service_client::ReconcileServiceClient};
use prost::Message as _;
use serde_json::json;

use super::failures::create_quota;
use crate::{
    budget::node_of,
    case::{Case, shared},
    fixture::Fixture,
    proxy::Mark,
    workload_builder::{daemon_set, image_patch},
};

pub(super) const CASES: &[Case] = &[
    shared!(
        "pod-name-taken",
        "When a foreign pod has the planned name, the next plan uses another name, and the foreign pod is left alone.",
        pod_name_taken
    ),
    shared!(
        "replacement-has-another-name",
        "A pod that replaces another one of its revision has a different name, so that the old name disappears.",
        replacement_has_another_name
    ),
    shared!(
        "squatted-names",
        "Foreign pods that already have the names of a rollout's pods do not block the rollout.",
        squatted_names
    ),
];

/// The name of the first pod that a plan creates.
fn first_create(plan: &Plan) -> Option<String> {
    plan.actions().find_map(|action| match &action.kind {
        Some(Kind::CreatePod(create)) => Some(create.pod_name.clone()),
        _ => None,
    })
}

// The quota applies only to the DaemonSet's pods, which have no resource requests. It blocks them until the foreign pod
// exists.
async fn pod_name_taken(fixture: &Fixture) -> Result<()> {
    fixture.add_nodes(1).await?;
    let quotas = create_quota(
        fixture,
        json!({ "hard": { "pods": "0" }, "scopes": ["BestEffort"] }),
    )
    .await?;
    fixture.create(daemon_set("agent").build()).await?;
    let name = fixture
        .eventually("a refused create", async || {
            fixture.events("FailedCreate").await?.pop().context("no event")?;
            let plans = fixture.plans(Mark::BEGINNING, "agent");
            plans
                .iter()
                .find_map(first_create)
                .context("no plan creates a pod")
        })
        .await?;
    let stranger = create_foreign_pod(fixture, &name).await?;
    quotas.delete("few-pods", &DeleteParams::default()).await?;
    fixture.wait_for_rollout("agent").await?;
    fixture.expect_one_pod_per_node("agent").await?;
    expect_untouched(fixture, &stranger).await
}

/// A pod controlled by another kind, so that an executor need not cache it. A create with the same name fails.
async fn create_foreign_pod(fixture: &Fixture, name: &str) -> Result<Pod> {
    let owner: ConfigMap = serde_json::from_value(json!({ "metadata": { "generateName": "owner-" } }))?;
    let owner = fixture.api().create(&PostParams::default(), &owner).await?;
    let owner = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": owner.name_any(), "uid": owner.uid(), "controller": true });
    let stranger: Pod = serde_json::from_value(json!({
        "metadata": { "name": name, "labels": { "app": "stranger" }, "ownerReferences": [owner] },
        "spec": {
            "schedulerName": "nobody",
            "containers": [{ "name": "main", "image": "registry.example/stranger:1", "resources": { "requests": { "cpu": "1m" } } }],
        },
    }))?;
    Ok(fixture
        .pod_api()
        .create(&PostParams::default(), &stranger)
        .await?)
}

async fn expect_untouched(fixture: &Fixture, stranger: &Pod) -> Result<()> {
    let now = fixture.pod_api().get(&stranger.name_any()).await?;
    ensure!(
        now.metadata.uid == stranger.metadata.uid && now.metadata.deletion_timestamp.is_none(),
        "the stranger {} was not left alone",
        stranger.name_any()
    );
    Ok(())
}

// D-82: one pod fails and one is deleted. A second round checks that a name may be used again after its pod has gone.
async fn replacement_has_another_name(fixture: &Fixture) -> Result<()> {
    fixture.start_agent(2).await?;
    for round in 1..=2 {
        for fails in [true, false] {
            let pod = fixture.live_pods("agent").await?.pop().context("a pod")?;
            let (name, node) = (pod.name_any(), node_of(&pod));
            if fails {
                fixture.fail_pod(&name).await?;
            } else {
                fixture.pod_api().delete(&name, &DeleteParams::default()).await?;
            }
            fixture
                .eventually(format!("a replacement of {name} in round {round}"), async || {
                    let pods = fixture.live_pods("agent").await?;
                    let replacement = pods
                        .iter()
                        .find(|pod| node_of(pod) == node)
                        .context("the node has no pod")?;
                    ensure!(replacement.uid() != pod.uid(), "the pod is still there");
                    ensure!(
                        replacement.name_any() != name,
                        "the replacement is called {name} as well"
                    );
                    ensure!(
                        fixture.pod_api().get_opt(&name).await?.is_none(),
                        "{name} is still there"
                    );
                    fixture.expect_one_pod_per_node("agent").await
                })
                .await?;
        }
    }
    Ok(())
}

/// The nodes of the rollout.
const NODES: usize = 10;

/// How much longer the rollout may take than one without strangers.
const DELAY: Duration = Duration::from_secs(5);

// Anyone can compute the names. On all nodes the first name is taken, on two of them the first three. A first rollout without strangers says how
// long one takes on this machine.
async fn squatted_names(fixture: &Fixture) -> Result<()> {
    let agent = fixture.start_agent(NODES).await?;
    let began = Instant::now();
    fixture.patch("agent", image_patch(2)).await?;
    fixture.wait_for_rollout("agent").await?;
    let alone = began.elapsed();
    let nodes = fixture.node_names().await?;
    let mut strangers = Vec::new();
    for (level, nodes) in [(0, &nodes[..]), (1, &nodes[..2]), (2, &nodes[..2])] {
        for name in names_of_next_version(fixture, &agent, nodes, level).await? {
            strangers.push(create_foreign_pod(fixture, &name).await?);
        }
    }
    let (began, asked) = (Instant::now(), fixture.proxy().mark());
    fixture.patch("agent", image_patch(3)).await?;
    fixture.wait_for_rollout("agent").await?;
    fixture.expect_one_pod_per_node("agent").await?;
    let took = began.elapsed();
    ensure!(
        took < 2 * alone + DELAY,
        "the rollout took {took:.1?}, and one without strangers {alone:.1?}"
    );
    let hit = fixture.plans(asked, "agent");
    let hit = hit
        .iter()
        .flat_map(Plan::actions)
        .filter(|action| match &action.kind {
            Some(Kind::CreatePod(create)) => strangers
                .iter()
                .any(|stranger| stranger.name_any() == create.pod_name),
            _ => false,
        });
    ensure!(
        hit.count() >= NODES,
        "the names that were taken are not those that were planned"
    );
    for stranger in &strangers {
        expect_untouched(fixture, stranger).await?;
    }
    Ok(())
}

/// The names that the service gives the pods of version 3 on these nodes after `taken` names were found taken. Anyone
/// who can read the DaemonSet can ask the service for them or compute them.
async fn names_of_next_version(
    fixture: &Fixture,
    agent: &DaemonSet,
    nodes: &[String],
    taken: u32,
) -> Result<Vec<String>> {
    let mut agent = serde_json::to_value(agent)?;
    agent["spec"]["template"]["spec"]["containers"][0]["image"] = json!("registry.example/agent:3");
    let bucket = |data: Vec<u8>| v1::Bucket {
        data: Some(Bytes::from(data)),
        ..Default::default()
    };
    let selector = agent["spec"]["template"]["spec"]["nodeSelector"]
        .as_object()
        .cloned();
    let labels: Vec<_> = selector
        .into_iter()
        .flatten()
        .map(|(key, value)| v1::Label {
            key,
            value: value.as_str().unwrap_or_default().to_owned(),
        })
        .collect();
    let named = |name: &String| v1::Node {
        name: name.clone(),
        labels: labels.clone(),
        ..Default::default()
    };
    let collision = |name: &String| v1::PodNameCollision {
        node_name: name.clone(),
        count: taken,
        ..Default::default()
    };
    let snapshot = v1::Snapshot {
        now: Some(nodewise_proto::Timestamp {
            seconds: jiff::Timestamp::now().as_second(),
            nanos: 0,
        }),
        workload: Some(v1::Workload {
            kind: Some(v1::workload::Kind::DaemonSet(v1::DaemonSet {
                object: agent.to_string().into(),
                ..v1::DaemonSet::default()
            })),
        }),
        caches_synced: true,
        bucket_count: 1,
        node_buckets: vec![bucket(
            v1::NodeBucket {
                nodes: nodes.iter().map(named).collect(),
                ..Default::default()
            }
            .encode_to_vec(),
        )],
        pod_buckets: vec![bucket(Vec::new())],
        state: Some(v1::ReconcileState {
            pod_name_collisions: nodes.iter().map(collision).collect(),
            ..Default::default()
        }),
        ..Default::default()
    };
    let request = v1::PlanRequest {
        snapshot: Some(snapshot),
        ..Default::default()
    };
    let mut service = ReconcileServiceClient::connect(fixture.proxy().url()).await?;
    let plan = service.plan(request).await?.into_inner().plan.context("a plan")?;
    let planned = plan.actions().filter_map(|action| match &action.kind {
        Some(Kind::CreatePod(create)) => Some(create.pod_name.clone()),
        _ => None,
    });
    let planned: Vec<_> = planned.collect();
    ensure!(planned.len() == nodes.len(), "{planned:?} for {nodes:?}");
    Ok(planned)
}
